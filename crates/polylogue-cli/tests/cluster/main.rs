//! Worker processes on real servers of Postgres, and on one file, killed, frozen and drained.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests"
)]

mod answers;
mod budgets;
mod builds;
mod commands;
mod damaged;
mod database;
mod dev;
mod earlier;
mod files;
mod frozen;
mod keeping;
mod killed;
mod limits;
mod live;
mod moved;
mod needs;
mod notes;
mod one_file;
mod options;
mod place;
mod refused;
mod releases;
mod said;
mod scripts;
mod shipped;
mod sql;
mod states;
