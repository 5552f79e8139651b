//! How models call tools.

use indexmap::IndexMap;
use polylogue::agents::tooling::{PromptedTool, ToolCalling, ToolHistory};
use polylogue_config::{At, Config};
use polylogue_core::{AnyTool, Outcome, StateScope};
use polylogue_tools::Bounded;
use serde_json::{Map, Value};

use crate::duration::Time;
use crate::text::ToolRef;

/// Way in which a model calls tools and satisfies an output schema.
#[derive(Config)]
#[config(name = "ToolCalling", for = ToolCalling)]
pub(crate) enum ToolCallingKey {
    /// Best way that the model supports.
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
#[derive(Config)]
#[config(name = "ToolHistory", for = ToolHistory)]
pub(crate) enum ToolHistoryKey {
    /// The reply.
    Answer,
    /// Five messages: the task, the question whether to use the tool, the decision, the arguments, and the result,
    /// which is also the reply.
    Full,
}

/// Limits on each call of an agent's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
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
#[derive(Debug, Clone, PartialEq, Config)]
#[config(shorthand = "tool")]
pub struct OwnTool {
    /// Name of the tool.
    #[key(as = ToolRef)]
    pub tool: At<String>,
    /// Scope of the state of `set_state` and `chess`: `team` shares it with nested chats and later runs, `chat` limits
    /// it to one run of the chat.
    #[key(as = Option<At<ToolScope>>, none = "`team`")]
    pub scope: Option<At<StateScope>>,
    /// Requires a call of the tool in every turn in which the agent speaks to others.
    #[key(default = false)]
    pub mandatory: At<bool>,
    /// Examples for models that write arguments as text. They are not in any history.
    pub examples: At<Vec<ToolExample>>,
    /// Maximum number of consecutive calls written as text that the tool rejects. One more ends the chat.
    #[key(default = PromptedTool::DEFAULT_MAX_ERRORS, range = 0..=1000)]
    pub max_errors: At<u32>,
    /// Maximum number of consecutive calls written as text whose arguments do not match the tool. One more ends the
    /// chat.
    #[key(default = PromptedTool::DEFAULT_MAX_ERRORS, range = 0..=1000)]
    pub max_call_errors: At<u32>,
}

/// A tool that an agent executes for others: its name, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "tool")]
pub struct RunTool {
    /// Name of the tool.
    #[key(as = ToolRef)]
    pub tool: At<String>,
    /// Scope of the state of `set_state` and `chess`: `team` shares it with nested chats and later runs, `chat` limits
    /// it to one run of the chat.
    #[key(as = Option<At<ToolScope>>, none = "`team`")]
    pub scope: Option<At<StateScope>>,
}

/// Scope of the state of a tool.
#[derive(Config)]
#[config(for = StateScope)]
enum ToolScope {
    /// The team: the outermost chat with all nested chats, and later runs of them.
    Team,
    /// One run of one chat.
    Chat,
}

/// An example of a tool call.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "ToolExample")]
pub struct ToolExample {
    /// Request that leads to the call.
    #[key(nonempty)]
    pub user: String,
    /// Arguments of the call.
    #[key(required)]
    pub args: At<IndexMap<String, At<Value>>>,
}

impl OwnTool {
    /// `tool` with how it is prompted.
    pub(crate) fn prompted(&self, tool: AnyTool) -> PromptedTool {
        let mut prompted =
            PromptedTool::new(tool).max_errors(*self.max_errors).max_call_errors(*self.max_call_errors);
        if *self.mandatory {
            prompted = prompted.mandatory();
        }
        for ToolExample { user, args } in self.examples.iter() {
            let args: Map<String, Value> =
                args.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect();
            prompted = prompted.example(user, args.into());
        }
        prompted
    }
}
