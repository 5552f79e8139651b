//! Team files as they are read, right ones, wrong ones and bad ones, and the teams that ship, as they run by their scripts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests"
)]

mod bound;
mod build;
mod calls;
mod changes;
mod check_page;
mod common;
mod compaction;
mod corpus;
mod diagnostics;
mod diagrams;
mod endpoints;
mod files;
mod formatting;
mod fuzz_targets;
mod hostile;
mod media;
mod memory;
mod mutations;
mod names;
mod patterns;
mod permissions;
mod reasoning;
mod running;
mod schema;
mod shipped;
mod society;
mod solving;
mod state_keys;
#[cfg(target_os = "linux")]
mod venvs;
mod web;
mod words;
mod working;
