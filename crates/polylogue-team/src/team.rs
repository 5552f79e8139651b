//! Teams and agents.

use std::collections::BTreeMap;

use polylogue_config::{ByName, Config, Same, Switch};
use polylogue_core::{Name, Price};
use polylogue_models::Script;
use polylogue_tools::command::Declaration;
use polylogue_tools::http;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::approval::ApprovalRule;
use crate::calls::{ApiDocument, CallKeys};
use crate::chat::{Chat, InnerChat, TaskFrom};
use crate::command::CommandKeys;
use crate::endpoint::Endpoint;
use crate::member::{HumanInputMode, NestedChat, TerminateOn};
use crate::memory::{AgentMemory, Memory, TeamMemory};
use crate::parameters::Parameters;
use crate::reasoning::{Example, OutputBlock, Reasoning, RunsOutputBlocks};
use crate::remote::{GivenTool, McpServers, ServersForm};
use crate::script::Steps;
use crate::text::{
    ModelText, NewParticipant, OwnModelText, Participant, ParticipantRef, PathText, Template, ToolRef,
    VarText,
};
use crate::tooling::{RunTool, ToolCalling, ToolHistory, ToolLimits};
use crate::web::Web;
use crate::working::{AgentTool, CodeExecution, CodeKeys, SandboxSettings, WorkFile};

/// A team: its agents, its chats, and the task.
///
/// Texts can contain `{{name}}` for the variables of `vars`. System messages, prompts and openings can also contain
/// `{{task}}`, the task of the chat in which they are used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
pub struct Team {
    /// Name of the team and of its outermost chat.
    #[key(as = NewParticipant)]
    pub name: Name,
    /// One-line description for lists of teams.
    #[key(default = String::new())]
    pub description: String,
    /// Task of the team. A task on the command line replaces it.
    #[key(none = "none: the command line must give one")]
    pub task: Option<String>,
    /// Model of every agent that sets none, as `provider:model`. `--model` replaces it and the model of every agent.
    #[key(as = Option<ModelText>, none = "`--model`, or the script")]
    pub model: Option<String>,
    /// Variables by name. `{{name}}` in a text of this file is replaced by the value, once and literally. `--var
    /// NAME=VALUE` replaces a value.
    #[key(as = BTreeMap<String, VarText>)]
    pub vars: BTreeMap<String, String>,
    /// Model endpoints by name. The name of a custom endpoint is the provider before the `:` of a model; the name of a
    /// known provider changes the settings of that provider.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// Model prices by `provider:model`. They replace the built-in prices and count toward cost limits.
    pub prices: BTreeMap<String, ModelPrice>,
    /// Agents of the team. A team that consists of other teams needs none.
    pub agents: Vec<Agent>,
    /// Outermost chat, with which a run begins. Its summary is the result of the run.
    pub chat: Chat,
    /// Inner chats. Each takes part in other chats like an agent and replies with its summary.
    pub chats: Vec<InnerChat>,
    /// Teams in other files. Each takes part in chats like an agent and replies with its summary.
    pub teams: Vec<SubTeam>,
    /// Sandbox for code and `commands`, with its limits.
    pub sandbox: SandboxSettings,
    /// Files that are copied into the work directory when a conversation begins. Paths are relative to the folder of
    /// this file and must lie below it.
    #[key(unique)]
    pub files: Vec<WorkFile>,
    /// Commands that agents can call as tools. They run in the sandbox, without a shell.
    #[key(as = Vec<CommandKeys>)]
    pub commands: Vec<Declaration>,
    /// MCP servers by name, or the path of a JSON document with `mcpServers`. Agents use their tools with `tools:
    /// [{mcp: NAME}]`. Local servers run outside the sandbox; every server must also be allowed on the command line.
    #[key(as = ServersForm, default = McpServers::default())]
    pub mcp: McpServers,
    /// HTTP requests that agents can call as tools. Their hosts must also be allowed on the command line.
    #[key(as = Vec<CallKeys>)]
    pub calls: Vec<http::Declaration>,
    /// OpenAPI services by name. Their operations are tools. Their hosts must also be allowed on the command line.
    pub openapi: BTreeMap<String, ApiDocument>,
    /// Pages, search engine and fetch settings of the tools `web_search` and `web_fetch`.
    pub web: Web,
    /// Long-term memory of agents that set `memory`.
    pub memory: TeamMemory,
    /// Limits of the whole run. The limits of a team within a team are ignored.
    pub limits: Limits,
    /// Scripted model replies, which replace the models in tests and demonstrations. The nth step of an agent is the
    /// reply to its nth model call.
    #[key(as = Steps)]
    pub script: Script,
    /// Speed of scripted replies in words per second. `0` prints them at once.
    #[key(none = "0", range = 0..=10_000)]
    pub script_pace: Option<f64>,
}

/// An agent: a participant that replies by a model, a person or a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
pub struct Agent {
    /// Name of the agent, in any script: a letter, then letters, digits, `_`, `-`, `'`, `’`, `·` and single spaces; at
    /// most 64 characters.
    #[key(as = NewParticipant)]
    pub name: Name,
    /// One-line description of what the agent is for. Other participants and model-based speaker selection see it.
    #[key(default = String::new())]
    pub description: String,
    /// Makes the agent a person, who is asked for input in each turn. A person cannot have `system`, `model`,
    /// `parameters`, `tools`, `tool_calling`, `tool_history`, `output_schema`, `output_retries`, `reasoning`,
    /// `examples`, `output_blocks`, `suggests_tools`, `agent_tools`, `handoffs`, `memory` and `view`.
    #[key(default = false)]
    pub human: bool,
    /// System message of the agent.
    #[key(default = Template::default())]
    pub system: Template,
    /// Model of the agent, as `provider:model`. `none` for an agent without a model.
    #[key(as = Option<OwnModelText>, none = "the model of the team")]
    pub model: Option<String>,
    /// Sampling parameters of the agent's model.
    pub parameters: Parameters,
    /// Tools that the model can call and that the agent executes itself.
    #[key(unique)]
    pub tools: Vec<GivenTool>,
    /// Limits on each call of the agent's tools.
    #[key(default = ToolLimits::default())]
    pub tool_limits: ToolLimits,
    /// Way in which the model calls tools and satisfies an output schema.
    #[key(default = ToolCalling::Auto)]
    pub tool_calling: ToolCalling,
    /// Messages that remain in the agent's history after a turn in which it called tools step by step.
    #[key(default = ToolHistory::Answer)]
    pub tool_history: ToolHistory,
    /// JSON Schema that each reply must satisfy. It is enforced even if the model does not support schemas.
    #[key(none = "free text", nonempty)]
    pub output_schema: Option<Map<String, Value>>,
    /// Maximum number of retries after a reply that does not satisfy `output_schema`. Then the turn fails.
    #[key(none = "3", range = 0..=100)]
    pub output_retries: Option<u32>,
    /// Reasoning strategy that the agent follows before it replies.
    #[key(none = "none: it replies directly")]
    pub reasoning: Option<Reasoning>,
    /// Few-shot examples: user messages and replies that the model reads before every conversation.
    pub examples: Vec<Example>,
    /// Marked blocks that are parsed from the agent's replies. In a message with several, the first block of this list
    /// counts.
    pub output_blocks: Vec<OutputBlock>,
    /// Tools that the model can call and that another agent executes (see `executes_tools`).
    #[key(as = Vec<ToolRef>, unique)]
    pub suggests_tools: Vec<String>,
    /// Tools that the agent executes when other agents call them (see `suggests_tools`).
    #[key(unique)]
    pub executes_tools: Vec<RunTool>,
    /// Output blocks of received messages that the agent executes.
    #[key(none = "none")]
    pub runs_output_blocks: Option<RunsOutputBlocks>,
    /// Agents, chats and teams that the model can call as tools.
    pub agent_tools: Vec<AgentTool>,
    /// Executes code blocks in received messages. `true` executes Python, shell and JavaScript.
    #[key(as = Switch<CodeKeys>)]
    pub code_execution: CodeExecution,
    /// Condition under which a person must approve a tool call before the agent executes it, for itself or for others.
    #[key(none = "never; always for tools that run programs without a sandbox")]
    pub approval: Option<ApprovalRule>,
    /// Participants to which the agent can hand over with the `handoffs` pattern. Each is a tool of the model.
    #[key(as = Vec<ParticipantRef>, unique)]
    pub handoffs: Vec<Name>,
    /// Remembers facts across conversations. `true` adds the tools `remember`, `recall` and `forget`, and recalls up to
    /// five matching facts before each reply.
    #[key(as = Switch<Memory>)]
    pub memory: AgentMemory,
    /// When a person is asked for input before the agent replies.
    #[key(none = "never")]
    pub human_input: Option<HumanInputMode>,
    /// Maximum number of consecutive replies without human input.
    #[key(none = "none", range = 0..=1_000_000)]
    pub max_auto_replies: Option<u32>,
    /// Received message that ends the chat, unless the agent's person continues it. A text alone must be the whole
    /// message.
    #[key(none = "`TERMINATE` with `human_input` or `max_auto_replies`", nonempty)]
    pub terminate_on: Option<TerminateOn>,
    /// Reply if nothing else produces one. An empty text says nothing, and the chat continues, as in AutoGen. Without
    /// this key, the chat ends when an agent without a model and without a person has no reply.
    #[key(none = "none")]
    pub default_reply: Option<String>,
    /// Lets the agent's person clear histories with `clear history`, `clear history NAME` and `clear history 5`.
    #[key(default = false)]
    pub clear_command: bool,
    /// Nested chats that reply for the agent. The first whose `when` matches the message replies.
    #[key(nonempty)]
    pub nested_chats: Vec<NestedChat>,
    /// View of the conversation that the agent's model receives.
    #[key(default = ViewKeys::default())]
    pub view: ViewKeys,
}

/// The model of an agent that speaks by none.
pub(crate) const NO_MODEL: &str = "none";

impl Agent {
    /// Whether it has a model: it is no person, and its model is not `none`.
    #[must_use]
    pub fn speaks_by_model(&self) -> bool {
        !self.human && self.model.as_deref() != Some(NO_MODEL)
    }

    /// Whether it speaks by a model and by nothing else, and just says what that says.
    pub(crate) fn is_plain(&self) -> bool {
        let is_direct = self.reasoning.is_none() && self.output_blocks.is_empty();
        self.speaks_by_model() && !self.is_layered() && is_direct
    }

    /// Whether it has several ways to reply.
    pub(crate) fn is_layered(&self) -> bool {
        let overseen =
            self.human_input.is_some() || self.max_auto_replies.is_some() || self.terminate_on.is_some();
        let runs = !self.executes_tools.is_empty()
            || !self.code_execution.is_off()
            || self.runs_output_blocks.is_some();
        let replies = runs || !self.nested_chats.is_empty() || self.default_reply.is_some();
        overseen || replies || self.clear_command
    }
}

/// View of a conversation that an agent's model receives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "View")]
pub struct ViewKeys {
    /// Whether messages of other participants begin with the speaker's name.
    #[key(default = ShowNames::Auto)]
    pub names: ShowNames,
    /// Latest part of the conversation that the model receives.
    #[key(none = "the whole conversation")]
    pub window: Option<Window>,
    /// Text that is inserted before the messages of a participant, by its name.
    #[key(as = ByName<Participant, Same<String>>)]
    pub prefix: BTreeMap<Name, String>,
}

impl Default for ViewKeys {
    fn default() -> Self {
        Self::absent()
    }
}

/// Whether messages of other participants begin with the speaker's name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum ShowNames {
    /// In chats with more than two participants.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Latest part of a conversation. The system message is always included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum Window {
    /// Maximum number of messages.
    #[key(range = 1..)]
    Messages(u32),
    /// Maximum number of tokens, estimated.
    #[key(range = 1..)]
    Tokens(u32),
}

/// Price of a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "Price", by_shape)]
pub enum ModelPrice {
    /// No cost.
    Free(Free),
    /// US dollars per million tokens.
    Tokens(TokenPrice),
}

/// The word `free`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum Free {
    /// Calls cost nothing.
    Free,
}

/// Price in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Config)]
pub struct TokenPrice {
    /// US dollars per million input tokens.
    #[key(range = 0..=1_000_000)]
    pub input: f64,
    /// US dollars per million input tokens that the provider read from its prompt cache.
    #[key(none = "the same as `input`", range = 0..=1_000_000)]
    pub cached: Option<f64>,
    /// US dollars per million output tokens.
    #[key(range = 0..=1_000_000)]
    pub output: f64,
}

impl From<ModelPrice> for Price {
    fn from(price: ModelPrice) -> Self {
        match price {
            ModelPrice::Free(Free::Free) => Self::FREE,
            ModelPrice::Tokens(TokenPrice { input, cached, output }) => Self { input, cached, output },
        }
    }
}

/// A team in another file. It takes part in chats like an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "TeamFile")]
pub struct SubTeam {
    /// Name of the participant in this team.
    #[key(as = NewParticipant)]
    pub name: Name,
    /// Path of the team file, relative to the folder of this file.
    #[key(as = PathText)]
    pub file: String,
    /// Part of the surrounding conversation that becomes the team's task.
    #[key(default = TaskFrom::Last)]
    pub task_from: TaskFrom,
    /// The team of the file.
    #[key(skip)]
    pub team: Box<Team>,
}

/// Limits of a whole run. The run ends when the first one is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, Config)]
pub struct Limits {
    /// Maximum number of model calls.
    #[key(none = "none", range = 1..)]
    pub calls: Option<u64>,
    /// Maximum number of input and output tokens together.
    #[key(none = "none", range = 1..)]
    pub tokens: Option<u64>,
    /// Maximum cost in US dollars.
    #[key(none = "none", range = 0..=1_000_000)]
    pub cost: Option<f64>,
    /// Maximum depth of chats within chats.
    #[key(none = "8", range = 1..=64)]
    pub depth: Option<u32>,
}

/// A team without anything, which stands for one that could not be read.
impl Default for Team {
    fn default() -> Self {
        Self::hole()
    }
}

impl Team {
    /// Gives every agent of the team and of the teams within it the model `model`.
    pub fn use_model(&mut self, model: &str) {
        self.model = Some(model.to_owned());
        for agent in self.agents.iter_mut().filter(|agent| agent.speaks_by_model()) {
            agent.model = None;
        }
        let inner = self.chats.iter_mut().map(|inner| &mut inner.chat);
        for chat in std::iter::once(&mut self.chat).chain(inner) {
            chat.forget_models();
        }
        for sub in &mut self.teams {
            sub.team.use_model(model);
        }
    }

    /// The examples that the model of the agent `name` reads before every conversation: what is asked, and what it says.
    #[must_use]
    pub fn examples_of(&self, name: &Name) -> Option<&[Example]> {
        let own = self.agents.iter().find(|agent| agent.name == *name).map(|agent| &*agent.examples);
        own.or_else(|| self.teams.iter().find_map(|sub| sub.team.examples_of(name)))
    }

    /// What the agent, chat or team `name` is for, in the words of the file.
    pub(crate) fn description_of(&self, name: &Name) -> &str {
        let agents = self.agents.iter().map(|agent| (&agent.name, &*agent.description));
        let chats = self.chats.iter().map(|chat| (&chat.name, &*chat.description));
        let teams = self.teams.iter().map(|sub| (&sub.name, &*sub.team.description));
        agents
            .chain(chats)
            .chain(teams)
            .find(|(of, _)| *of == name)
            .map_or("", |(_, description)| description)
    }

    /// Names of all that call a model in this team and the teams within it, in the order of the file: agents with a model,
    /// speaker selectors, and the authors of reflected summaries.
    #[must_use]
    pub fn voices(&self) -> Vec<Name> {
        self.voices_as(&self.name)
    }

    /// The same when the outermost chat is called `name`, as that of a team within a team is.
    pub(crate) fn voices_as(&self, name: &Name) -> Vec<Name> {
        let agents =
            self.agents.iter().filter(|agent| agent.speaks_by_model()).map(|agent| agent.name.clone());
        let inner = self.chats.iter().map(|inner| (&inner.name, &inner.chat));
        let chats = std::iter::once((name, &self.chat)).chain(inner);
        let private_agents = chats.flat_map(|(name, chat)| chat.private_agents(name));
        let within = self.teams.iter().flat_map(|sub| sub.team.voices_as(&sub.name));
        agents.chain(private_agents).chain(within).collect()
    }
}
