//! Agents: models, people, functions, reasoning patterns, and sessions that call agents without a chat.

pub mod compaction;
pub mod reason;
pub mod session;
pub mod tooling;

pub(crate) mod assistant;
pub(crate) mod function;
pub(crate) mod human;
pub(crate) mod lenient;
mod prompted;

use std::sync::Arc;

pub use assistant::Assistant;
pub use function::{ActFuture, Function};
pub use human::Human;
pub use prompted::{PromptedTool, ToolCalling};
pub use session::Session;

/// Makes a system message from the task.
type SystemFn = Arc<dyn Fn(&str) -> Arc<str> + Send + Sync>;
