//! Conversations of prepared teams, and every team that ships on the strict servers of the providers.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "these are tests"
)]

mod conversations;
mod dialects;
mod forks;
mod moves;
mod questions;
mod tenants;
mod unanswered;
mod workers;
