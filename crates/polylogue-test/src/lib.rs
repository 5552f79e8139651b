//! Support for tests of Polylogue, and of programs built on it.
//!
//! - [`server`]: a chat-completions server over real sockets that plays a script, judges every request as the strictest
//!   servers do, and misbehaves on demand
//! - [`mod@print`]: logs as text, for tests that compare whole transcripts
//! - [`cut`]: the property that any prefix of a log is a valid conversation
//! - [`generated`]: parts of documents that are generated from the program
//! - [`http`]: requests to servers that are other processes
//! - [`mutations`]: texts that are changed at random, for tests of parsers
//! - [`pdf`]: documents with few and many pages
//! - [`picture`]: pictures of any size
//! - [`postgres`]: servers of Postgres in temporary folders
//! - [`queue`]: the conformance suite of queues
//! - [`random`]: numbers that follow from a seed
//! - [`skip`]: tests that cannot run on a machine
//! - [`store`]: the conformance suite of stores
//! - [`teams`]: team files that tests of several crates run
//! - [`tool`]: tools from functions, and calls of tools without a conversation
//! - [`venv`]: virtual environments of Python

pub mod cut;
pub mod generated;
pub mod http;
pub mod mutations;
pub mod pdf;
pub mod picture;
pub mod postgres;
pub mod print;
pub mod queue;
pub mod random;
pub mod server;
pub mod skip;
pub mod store;
pub mod teams;
pub mod tool;
#[cfg(unix)]
pub mod venv;
