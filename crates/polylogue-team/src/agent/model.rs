//! What only an agent with a model has.

use std::collections::BTreeMap;

use polylogue::Assistant;
use polylogue::agents::tooling::{ToolCalling, ToolHistory};
use polylogue_config::{At, ByName, Config, Same, Switch};
use polylogue_core::{Name, ShowNames, ViewOptions, Window};

use crate::compaction::CompactionKeys;
use crate::memory::AgentMemory;
use crate::model_list::ModelList;
use crate::output_blocks::OutputBlock;
use crate::parameters::Parameters;
use crate::reasoning::{Example, Reasoning};
use crate::text::{ParticipantOrUser, ParticipantRef, Schema, Template};
use crate::tooling::{ToolCallingKey, ToolEntry, ToolHistoryKey, ToolRef, ToolSearchKeys};
use crate::working::AgentTool;

/// What only an agent with a model has.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct ModelKeys {
    /// System message of the agent.
    #[key(default = Template::default())]
    pub system: At<Template>,
    /// Model of the agent, as `provider:model`, or a list: the first, and those asked when it fails. `none` for an agent without a model.
    #[key(as = Option<At<ModelList>>, none = "the model of the team", nonempty, unique)]
    pub model: Option<At<String>>,
    /// Sampling parameters of the agent's model.
    pub parameters: At<Parameters>,
    /// Tools that the model can call and that the agent executes itself.
    #[key(unique)]
    pub tools: At<Vec<At<ToolEntry>>>,
    /// Way in which the model calls tools and satisfies an output schema.
    #[key(as = At<ToolCallingKey>, default = ToolCalling::Auto)]
    pub tool_calling: At<ToolCalling>,
    /// Messages that remain in the agent's history after a turn in which it called tools step by step.
    #[key(as = At<ToolHistoryKey>, default = ToolHistory::Answer)]
    pub tool_history: At<ToolHistory>,
    /// Searches the agent's tools instead of sending the definitions of all: the model finds them by `search_tools` and
    /// calls them by `call_tool`.
    #[key(default = Switch::On(ToolSearchKeys::absent()))]
    pub tool_search: At<Switch<ToolSearchKeys>>,
    /// Maximum number of rounds of tool calls in a turn. After the last one, the model is prompted to answer without
    /// tools.
    #[key(default = Assistant::DEFAULT_MAX_TOOL_ROUNDS, range = 1..=1_000)]
    pub max_tool_rounds: At<u32>,
    /// JSON Schema that each reply must satisfy. It is enforced even if the model does not support schemas.
    #[key(none = "free text", nonempty)]
    pub output_schema: Option<At<Schema>>,
    /// Maximum number of retries after a reply that does not satisfy `output_schema`. Then the chat ends.
    #[key(none = "3", range = 0..=100, requires = "output_schema")]
    pub output_retries: Option<At<u32>>,
    /// Reasoning strategy that the agent follows before it replies.
    #[key(none = "none: it replies directly")]
    pub reasoning: Option<At<Reasoning>>,
    /// Few-shot examples: user messages and replies that the model reads before every conversation.
    pub examples: At<Vec<Example>>,
    /// Marked blocks that are parsed from the agent's replies. In a message with several, the first block of this list
    /// counts.
    pub output_blocks: At<Vec<OutputBlock>>,
    /// Tools that the model can call and that another agent executes (see `executes_tools`).
    #[key(as = At<Vec<ToolRef>>, unique)]
    pub suggests_tools: At<Vec<At<String>>>,
    /// Agents, chats and teams that the model can call as tools.
    pub agent_tools: At<Vec<AgentTool>>,
    /// Maximum number of background tasks of the agent that are open at the same time in a chat. A further one is refused.
    #[key(default = polylogue::tools::background::DEFAULT_MAX_BACKGROUND, range = 1..=64, requires = "agent_tools")]
    pub max_background_tasks: At<usize>,
    /// Participants to which the agent can hand over with the `handoffs` pattern. Each is a tool of the model.
    #[key(as = At<Vec<ParticipantRef>>, unique)]
    pub handoffs: At<Vec<At<Name>>>,
    /// Remembers facts across conversations. `true` adds the tools `remember`, `recall` and `forget`, and recalls up to
    /// five matching facts before each reply.
    pub memory: At<Switch<AgentMemory>>,
    /// View of the conversation that the agent's model receives.
    #[key(default = View::absent())]
    pub view: At<View>,
    /// When and how the older part of the agent's history is replaced by a summary. `false` never compacts it: a request
    /// that exceeds the context window fails.
    #[key(none = "the `compaction` of the team")]
    pub compaction: Option<At<Switch<CompactionKeys>>>,
}

/// View of a conversation that an agent's model receives.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct View {
    /// Whether messages of other participants begin with the speaker's name.
    #[key(as = ShowNamesKey, default = ShowNames::Auto)]
    pub names: ShowNames,
    /// Latest part of the conversation that the model receives.
    #[key(as = Option<WindowKey>, none = "the whole conversation")]
    pub window: Option<Window>,
    /// Text that is inserted before the messages of a participant, by its name.
    #[key(as = ByName<ParticipantOrUser, Same<String>>)]
    pub prefix: BTreeMap<At<Name>, String>,
}

/// Whether messages of other participants begin with the speaker's name.
#[derive(Config)]
#[config(name = "ShowNames", for = ShowNames)]
enum ShowNamesKey {
    /// In chats with more than two participants.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Latest part of a conversation. The system message is always included.
#[derive(Config)]
#[config(name = "Window", for = Window)]
enum WindowKey {
    /// Maximum number of messages.
    #[key(range = 1..)]
    Messages(usize),
    /// Maximum number of tokens, estimated.
    #[key(range = 1..)]
    Tokens(usize),
}

impl View {
    /// The view as the library has it.
    pub(crate) fn options(&self) -> ViewOptions {
        let window = self.window.unwrap_or(Window::All);
        let prefix = self.prefix.iter().map(|(name, text)| (name.value.clone(), text.clone())).collect();
        ViewOptions { names: self.names, window, prefix, ..ViewOptions::default() }
    }
}
