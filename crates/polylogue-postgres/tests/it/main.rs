//! Tests of the store on real servers, started and ended by each test.

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
mod asked;
mod budgets;
mod conformance;
mod cuts;
mod damage;
mod failover;
mod full;
mod inbox;
mod keys;
mod limits;
mod pooled;
mod proxy;
mod queue;
mod rivals;
mod settings;
mod shared_commits;
mod support;
mod unsuitable;
mod writers;
