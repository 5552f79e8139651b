//! How models call tools.

use polylogue::{AnyTool, Outcome, StateScope};
use polylogue_config::{As, Config};
use polylogue_tools::Bounded;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::duration::Time;
use crate::text::ToolRef;

/// How a model calls tools and keeps to an output schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "ToolCalling")]
pub enum ToolCalling {
    /// The best way that the model supports.
    #[default]
    Auto,
    /// Function calls of the provider.
    Native,
    /// Replies constrained by a JSON Schema.
    Schema,
    /// Step by step, with the provider's JSON mode where JSON is requested.
    Json,
    /// Step by step, in plain text.
    Text,
}

/// What an agent keeps in its history of a turn in which it called tools step by step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "ToolHistory")]
pub enum ToolHistory {
    /// Its reply.
    #[default]
    Answer,
    /// Five messages: the task, that the tool can be used, that it will be used, its arguments, and its result, which is
    /// also the reply.
    Full,
}

/// Limits on every call of an agent's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(nonempty)]
pub struct ToolLimits {
    /// Time limit of a call. A call that takes longer fails, and the agent continues.
    #[key(none = "the tool's own limit")]
    pub timeout: Option<Time>,
    /// Limit on the text and data of a result, in bytes. The rest is cut, of a long text from the middle, and the result says
    /// so.
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
    /// Its name.
    #[key(as = ToolRef)]
    pub tool: String,
    /// Who shares the state of `set_state` and `chess`: the `team`, with nested chats and their next runs, or one run of the
    /// `chat`.
    #[key(as = Option<ToolScope>, none = "`team`")]
    pub scope: Option<StateScope>,
    /// Whether it must be used in every turn in which the agent speaks to others.
    #[key(default = false)]
    pub mandatory: bool,
    /// Examples for models that write arguments as text. They are in no history.
    pub examples: Vec<ToolExample>,
    /// How often in a row the tool may reject a call that was written as text. One more ends the chat.
    #[key(none = "5", range = 0..=1000)]
    pub max_errors: Option<u32>,
    /// How often in a row arguments written as text may not fit the tool. One more ends the chat.
    #[key(none = "5", range = 0..=1000)]
    pub max_call_errors: Option<u32>,
}

/// A tool that an agent runs for others: its name, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(shorthand = "tool")]
pub struct RunTool {
    /// Its name.
    #[key(as = ToolRef)]
    pub tool: String,
    /// Who shares the state of `set_state` and `chess`: the `team`, with nested chats and their next runs, or one run of the
    /// `chat`.
    #[key(as = Option<ToolScope>, none = "`team`")]
    pub scope: Option<StateScope>,
}

/// Who shares the state of a tool.
#[derive(Config)]
enum ToolScope {
    /// The team: the outermost chat with all nested chats, and their next runs.
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
    /// The request, in words.
    #[key(nonempty)]
    pub user: String,
    /// The arguments for it.
    #[key(required)]
    pub args: Map<String, Value>,
}
