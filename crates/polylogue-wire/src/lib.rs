//! The types of the native API, `/api/v1`: what `polylogue-server` reads and writes, and what `polylogue-client` writes and reads.
//!
//! Each body, document and frame is one type here, so that a server and its clients cannot disagree. The crate has no sockets, no store
//! and no runtime; events are those of the kernel.
//!
//! | module | types |
//! |---|---|
//! | [`conversation`] | conversations, pages of them, and what begins, continues and changes one |
//! | [`stream`] | frames of event streams |
//! | [`calls`] | the timeline of calls, and what models were sent |
//! | [`cluster`] | what workers run, and what waits for them |
//! | [`compare`] | two conversations side by side |
//! | [`files`] | the files of a conversation |
//! | [`memory`] | what agents remember |
//! | [`usage`] | usage and cost, of which what is not known is left out |
//! | [`team`] | teams, and the check of their texts |
//! | [`token`] | tokens and their scopes |
//! | [`problem`] | errors |
//!
//! Documents that a newer server sends may have further fields, which are ignored.

mod call_row;
mod scope;

pub mod calls;
pub mod cluster;
pub mod compare;
pub mod conversation;
pub mod files;
pub mod memory;
pub mod problem;
pub mod stream;
pub mod team;
pub mod token;
pub mod usage;

pub use scope::Scope;
