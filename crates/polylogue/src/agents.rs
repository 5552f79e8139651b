//! Agents: models, people, functions, reasoning patterns, and sessions that call agents without a chat.

pub mod compaction;
pub mod reason;
pub mod session;
pub mod tooling;

pub(crate) mod assistant;
pub(crate) mod check;
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

/// In an implementation of [`Agent`](polylogue_core::Agent) around another one: these methods are those of the agent in the field.
macro_rules! as_inner {
    ($agent:ident: $($method:ident),+) => { $(crate::agents::as_inner!(@$method $agent);)+ };
    (@name $agent:ident) => {
        fn name(&self) -> &polylogue_core::Name {
            polylogue_core::Agent::name(&self.$agent)
        }
    };
    (@description $agent:ident) => {
        fn description(&self) -> &str {
            polylogue_core::Agent::description(&self.$agent)
        }
    };
    (@layers $agent:ident) => {
        fn layers(&self) -> Vec<polylogue_core::Layer> {
            polylogue_core::Agent::layers(&self.$agent)
        }
    };
    (@background $agent:ident) => {
        fn background(&self, target: &str) -> Option<polylogue_core::AnyAgent> {
            polylogue_core::Agent::background(&self.$agent, target)
        }
    };
}
pub(crate) use as_inner;
