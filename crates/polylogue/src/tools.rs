//! What agents do besides speaking: tools, who is asked before they are called, and what they remember.

pub mod agent_tool;
pub mod approval;
pub mod memory;
pub mod state;
pub mod tool;
