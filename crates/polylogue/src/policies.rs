//! Policies: who speaks next.

pub mod carryover;
pub mod dag;
pub mod debate;
pub mod graph;
pub mod group;
pub mod handoff;
pub mod joining;
pub mod orchestrator;
pub mod order;

pub(crate) mod replay;
