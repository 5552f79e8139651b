//! Who speaks next.

pub mod carry;
pub mod debate;
pub mod flow;
pub mod group;
pub mod handoff;
pub mod joining;
pub mod ledger;
pub mod order;
pub mod prerequisites;

pub(crate) mod retrace;
