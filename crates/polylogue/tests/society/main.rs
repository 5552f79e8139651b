//! Role-play societies: what CAMEL's and LazyLLM's role-plays do and ought to do, by the items 64, 67 and 72 to 88 of a list of
//! 90, through the public API. Where Polylogue differs on purpose, `docs/compatibility.md` says why.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod course;
mod critic;
mod cut;
mod ends;
mod preparation;
mod random;
mod roles;
mod set;
#[allow(dead_code)]
#[path = "../autogen/stage.rs"]
mod stage;
