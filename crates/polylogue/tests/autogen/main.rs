//! What AutoGen 0.2 does and ought to do, item by item of a conformance list of 100, through the public API (`docs/conformance/autogen.md`). Where Polylogue
//! differs on purpose, `docs/compatibility.md` says why.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

#[cfg(target_os = "linux")]
mod code;
mod groups;
mod nested;
mod people;
mod replies;
mod results;
mod sequences;
#[allow(dead_code)]
mod stage;
mod tools;
mod traps;
mod two_agents;
