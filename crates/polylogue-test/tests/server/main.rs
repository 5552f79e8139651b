//! The scripted server, seen by clients that see every byte.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "clippy knows only functions marked `#[test]` as tests"
)]

mod client;
mod dialects;
mod ollama;
mod playbook;
mod quirks;
mod refusals;
mod replies;
mod validation;
