//! Tools: agent tools, approval, memory, state.

pub mod agent_tool;
pub mod approval;
pub mod memory;
pub mod state;
pub mod tool;
