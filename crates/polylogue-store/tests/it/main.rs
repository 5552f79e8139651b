//! Tests of the stores from outside.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests"
)]

mod archive;
mod broken;
mod conformance;
mod integrity;
mod interrupted;
mod jsonl;
mod keys;
mod lists;
mod privacy;
mod processes;
mod queue;
mod replaced;
mod shared_file;
mod sqlite;
mod support;
mod takeover;
