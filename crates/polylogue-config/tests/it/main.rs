//! Types derived from a subset of a team file, read from files with and without mistakes.

#![allow(clippy::unwrap_used, reason = "tests")]

mod derived;
mod mistakes;
mod schema;
mod team;
mod writing;
