//! What agents do besides speaking, how models are taught to do it, and what they remember.

pub mod consult;
pub mod memory;
pub mod state;
pub mod tool;
pub mod tooling;
