//! Tools: agent tools, approval, memory, large results, search, state.

pub mod agent_tool;
pub mod approval;
pub mod background;
pub mod memory;
pub mod results;
pub mod search;
pub mod state;
pub mod tool;

pub(crate) mod known;
pub(crate) mod runner;

pub use agent_tool::AgentTool;
pub use approval::Approval;
pub use memory::GetHistory;
pub use tool::FunctionTool;
