//! Live text of conversations that other processes run. Events come from the store that all processes share; the pieces of replies, which are
//! never stored, come from the process that runs the conversation. Each process that can be reached offers an internal stream at an
//! address of its own, which is in the database, as is the secret for it; users' tokens mean nothing there.
//!
//! | part | does |
//! |---|---|
//! | `wire` | lines of JSON over TCP, with bounds; each side proves that it knows the secret |
//! | `node` | offers what this process runs |
//! | `relay` | one conversation, from its holder to those who follow it |
//! | `pieces` | which pieces are of one reply from its first on: a reader has a reply whole or not at all; joined, for readers who come later |
//! | `news` | what those who follow a conversation learn of it, and the replies so far for those who come later |
//! | `peer` | one process that is followed, over one connection for all conversations |
//! | `follower` | which conversations are followed, and where: one query for all of them, at announcements and twice a second |

pub(crate) mod follower;
pub(crate) mod news;
mod node;
mod peer;
pub(crate) mod pieces;
mod relay;
mod wire;

pub use node::{LiveError, LiveNode, LiveOptions};
