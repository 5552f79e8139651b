//! How models call tools.

use polylogue::{AnyTool, Outcome, StateScope};
use polylogue_config::{As, Config};
use polylogue_tools::Bounded;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::duration::Time;
use crate::text::ToolRef;

/// Way in which a model calls tools and satisfies an output schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "ToolCalling")]
pub enum ToolCalling {
    /// Best way that the model supports.
    #[default]
    Auto,
    /// Function calls of the provider's API.
    Native,
    /// Replies constrained by a JSON Schema.
    Schema,
    /// Prompted step by step, with the provider's JSON mode where JSON is requested.
    Json,
    /// Prompted step by step, in plain text.
    Text,
}

/// Messages that remain in an agent's history after a turn in which it called tools step by step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "ToolHistory")]
pub enum ToolHistory {
    /// The reply.
    #[default]
    Answer,
    /// Five messages: the task, the question whether to use the tool, the decision, the arguments, and the result,
    /// which is also the reply.
    Full,
}

/// Limits on each call of an agent's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(nonempty)]
pub struct ToolLimits {
    /// Time limit of a call, such as `30 s`. A call that takes longer fails, and the agent continues.
    #[key(none = "the limit of the tool")]
    pub timeout: Option<Time>,
    /// Maximum size of a result in bytes. Longer text is cut in the middle, and the result says so.
    #[key(default = most_bytes(), range = 100..=65_536)]
    pub max_output_bytes: u32,
}

fn most_bytes() -> u32 {
    u32::try_from(Outcome::MAX_BYTES).unwrap_or(u32::MAX)
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self::absent()
    }
}

impl ToolLimits {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// `tool` within these limits.
    pub(crate) fn around(self, tool: AnyTool) -> AnyTool {
        if self.is_none() {
            return tool;
        }
        let bytes = usize::try_from(self.max_output_bytes).unwrap_or(Outcome::MAX_BYTES);
        let tool = Bounded::new(tool).at_most(bytes);
        AnyTool::new(match self.timeout {
            Some(time) => tool.within(time.into()),
            None => tool,
        })
    }
}

/// A tool of an agent or a task: its name, or a mapping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
#[config(shorthand = "tool")]
pub struct OwnTool {
    /// Name of the tool.
    #[key(as = ToolRef)]
    pub tool: String,
    /// Scope of the state of `set_state` and `chess`: `team` shares it with nested chats and later runs, `chat` limits
    /// it to one run of the chat.
    #[key(as = Option<ToolScope>, none = "`team`")]
    pub scope: Option<StateScope>,
    /// Requires a call of the tool in every turn in which the agent speaks to others.
    #[key(default = false)]
    pub mandatory: bool,
    /// Examples for models that write arguments as text. They are not in any history.
    pub examples: Vec<ToolExample>,
    /// Maximum number of consecutive calls written as text that the tool rejects. One more ends the chat.
    #[key(none = "5", range = 0..=1000)]
    pub max_errors: Option<u32>,
    /// Maximum number of consecutive calls written as text whose arguments do not match the tool. One more ends the
    /// chat.
    #[key(none = "5", range = 0..=1000)]
    pub max_call_errors: Option<u32>,
}

/// A tool that an agent executes for others: its name, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(shorthand = "tool")]
pub struct RunTool {
    /// Name of the tool.
    #[key(as = ToolRef)]
    pub tool: String,
    /// Scope of the state of `set_state` and `chess`: `team` shares it with nested chats and later runs, `chat` limits
    /// it to one run of the chat.
    #[key(as = Option<ToolScope>, none = "`team`")]
    pub scope: Option<StateScope>,
}

/// Scope of the state of a tool.
#[derive(Config)]
enum ToolScope {
    /// The team: the outermost chat with all nested chats, and later runs of them.
    Team,
    /// One run of one chat.
    Chat,
}

impl As<StateScope> for ToolScope {
    fn into_value(self) -> StateScope {
        match self {
            Self::Team => StateScope::Team,
            Self::Chat => StateScope::Chat,
        }
    }

    fn from_value(value: &StateScope) -> Self {
        match value {
            StateScope::Chat => Self::Chat,
            _ => Self::Team,
        }
    }
}

/// An example of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "ToolExample")]
pub struct ToolExample {
    /// Request that leads to the call.
    #[key(nonempty)]
    pub user: String,
    /// Arguments of the call.
    #[key(required)]
    pub args: Map<String, Value>,
}
