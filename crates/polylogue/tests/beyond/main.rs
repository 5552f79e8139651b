//! Patterns that AutoGen 0.2 does not have: handing over, a shared state, debates, plans with a ledger, graphs. Every
//! conversation here is also cut after each of its events, and has to come to the same end in fresh agents.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod approval;
mod consult;
mod debate;
mod flow;
mod flow_build;
mod flow_random;
mod handoff;
mod ledger;
mod origins;
mod stage;
mod state;
mod used;
