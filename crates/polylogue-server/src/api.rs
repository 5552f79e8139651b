//! The native API, and what says that the server is well.

pub(crate) mod calls;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod conversations;
pub(crate) mod feed;
pub(crate) mod files;
pub(crate) mod forking;
pub(crate) mod graph;
pub(crate) mod health;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod openapi;
mod participants;
pub(crate) mod raising;
pub(crate) mod resuming;
pub(crate) mod session;
pub(crate) mod steering;
pub(crate) mod teams;
pub(crate) mod tokens;
pub(crate) mod transfer;
pub(crate) mod verify;
