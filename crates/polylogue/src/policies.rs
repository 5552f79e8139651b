//! Policies: who speaks next.

pub mod carryover;
pub mod dag;
pub mod debate;
pub mod graph;
pub mod group;
pub mod handoff;
pub mod late_joiner;
pub mod orchestrator;
pub mod order;

pub(crate) mod replay;

pub use carryover::{Carryover, WithCarryover};
pub use dag::Dag;
pub use debate::Debate;
pub use graph::Graph;
pub use group::{Group, HumanSelector, Selector};
pub use handoff::{Handoff, handoffs};
pub use late_joiner::with_late_joiner;
pub use orchestrator::Orchestrator;
pub use order::{last_message_without, parallel, round_robin, sequential, with_summary, with_summary_by};
pub use polylogue_core::with_termination;
