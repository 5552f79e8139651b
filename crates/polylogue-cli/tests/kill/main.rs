//! `kill -9` at random moments of a real run, repeatedly: no finished model call is asked for again, nothing
//! finished is lost, and the conversation ends as if nothing had happened.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests"
)]

mod billed;
mod desk;
mod evidence;
mod killed;
mod memory;
mod place;
mod random;
mod replies;
mod serving;
mod steered;
mod tools;
