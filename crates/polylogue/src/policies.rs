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

pub use carryover::{Carryover, WithCarryover};
pub use dag::Dag;
pub use debate::Debate;
pub use graph::Graph;
pub use group::{Group, HumanSelector, Selector};
pub use handoff::{Handoff, handoffs};
pub use joining::joining;
pub use orchestrator::Orchestrator;
pub use order::{parallel, reflected, round_robin, sequential, summed_up, without};
pub use polylogue_core::until;
