//! Workers: claims, guards, drains, and the simulation of many of them on virtual time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "these are tests"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "simulated times and numbers are small"
)]

mod broken;
mod faults;
mod running;
mod simulated;
mod world;
