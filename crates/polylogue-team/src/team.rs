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

/// A team: agents, how they talk with one another, and what they talk about.
///
/// Texts can hold `{{name}}` for the variables of `vars`; system messages, prompts and openings can hold `{{task}}`, the task
/// of the chat they are used in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
pub struct Team {
    /// The name of the team and of its outermost chat.
    #[key(as = NewParticipant)]
    pub name: Name,
    /// One line for lists of teams.
    #[key(default = String::new())]
    pub description: String,
    /// The task, if the command line gives none.
    #[key(none = "the command line must give one")]
    pub task: Option<String>,
    /// The model of agents without one of their own, as `provider:model`. `--model` replaces it and every agent's own.
    #[key(as = Option<ModelText>, none = "`--model`, or the script")]
    pub model: Option<String>,
    /// Variables: `{{name}}` in a text of this file is replaced by the value, literally and once. `--var NAME=VALUE`
    /// replaces a value.
    #[key(as = BTreeMap<String, VarText>)]
    pub vars: BTreeMap<String, String>,
    /// How models are reached: endpoints of your own by their names, which are then used before the `:` of a model, and known
    /// providers with other settings.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// Prices of models, by `provider:model`. They replace the built-in ones.
    pub prices: BTreeMap<String, ModelPrice>,
    /// The agents. A team of teams needs none.
    pub agents: Vec<Agent>,
    /// The outermost chat.
    pub chat: Chat,
    /// Chats that take part in other chats like an agent.
    pub chats: Vec<InnerChat>,
    /// Teams of other files that take part in chats like an agent.
    pub teams: Vec<SubTeam>,
    /// Where programs run: code, and commands that are tools.
    pub sandbox: SandboxSettings,
    /// Files in the work directory when a conversation begins, by their paths relative to this file's folder, below which they
    /// are.
    #[key(unique)]
    pub files: Vec<WorkFile>,
    /// Commands that are tools. They run where code does, and never through a shell.
    #[key(as = Vec<CommandKeys>)]
    pub commands: Vec<Declaration>,
    /// MCP servers whose tools agents can have: by name, or the path of a JSON document with `mcpServers`. They run outside the
    /// sandbox, and must be allowed on the command line as well.
    #[key(as = ServersForm, default = McpServers::default())]
    pub mcp: McpServers,
    /// Calls over HTTP that are tools. Their hosts must be allowed on the command line as well.
    #[key(as = Vec<CallKeys>)]
    pub calls: Vec<http::Declaration>,
    /// Services whose operations are tools, described by OpenAPI documents. They must be allowed as well.
    pub openapi: BTreeMap<String, ApiDocument>,
    /// What the tools `web_search` and `web_fetch` find and read.
    pub web: Web,
    /// The memory of agents with `memory`.
    pub memory: TeamMemory,
    /// Limits of the whole run. Those of a team within a team are ignored.
    pub limits: Limits,
    /// What agents reply without a model: the nth step of an agent is its nth model call.
    #[key(as = Steps)]
    pub script: Script,
    /// How fast scripted agents speak, in words per second; 0 for all at once.
    #[key(none = "0", range = 0..=10_000)]
    pub script_pace: Option<f64>,
}

/// An agent: a model with a role, a person, or neither.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
pub struct Agent {
    /// Its name, in any script: a letter, then letters, digits, `_`, `-`, `'`, `’`, `·` and single spaces, at most 64
    /// characters.
    #[key(as = NewParticipant)]
    pub name: Name,
    /// What it is for, in one line, for the other participants.
    #[key(default = String::new())]
    pub description: String,
    /// Whether it is a person. A person is asked when it is their turn, and has no `system`, `model`, `parameters`,
    /// `tools`, `tool_calling`, `tool_history`, `output_schema`, `output_retries`, `reasoning`, `examples`, `output_blocks`, `suggests_tools`, `agent_tools`, `handoffs`,
    /// `memory` and `view`.
    #[key(default = false)]
    pub human: bool,
    /// Its system message.
    #[key(default = Template::default())]
    pub system: Template,
    /// Its model, as `provider:model`; `none` for an agent without one.
    #[key(as = Option<OwnModelText>, none = "the team's")]
    pub model: Option<String>,
    /// How its model writes.
    pub parameters: Parameters,
    /// Tools that its model can call, and that it runs.
    #[key(unique)]
    pub tools: Vec<GivenTool>,
    /// Limits on every call of its tools.
    #[key(default = ToolLimits::default())]
    pub tool_limits: ToolLimits,
    /// How its model calls tools and keeps to an output schema.
    #[key(default = ToolCalling::Auto)]
    pub tool_calling: ToolCalling,
    /// What it keeps in its history of a turn in which it called tools step by step.
    #[key(default = ToolHistory::Answer)]
    pub tool_history: ToolHistory,
    /// The JSON Schema that its replies must satisfy, whatever its model supports.
    #[key(none = "free text", nonempty)]
    pub output_schema: Option<Map<String, Value>>,
    /// How often a reply that does not satisfy the schema is retried.
    #[key(none = "3", range = 0..=100)]
    pub output_retries: Option<u32>,
    /// How it reasons before it replies.
    #[key(none = "it replies at once")]
    pub reasoning: Option<Reasoning>,
    /// Examples of what it receives and replies, which its model reads before every conversation.
    pub examples: Vec<Example>,
    /// Blocks that are read in its replies. The first in this order that a message contains counts.
    pub output_blocks: Vec<OutputBlock>,
    /// Tools that its model can call, and that another agent runs.
    #[key(as = Vec<ToolRef>, unique)]
    pub suggests_tools: Vec<String>,
    /// Tools that it runs for others.
    #[key(unique)]
    pub executes_tools: Vec<RunTool>,
    /// Which blocks of the messages it receives it runs.
    #[key(none = "none")]
    pub runs_output_blocks: Option<RunsOutputBlocks>,
    /// Agents, chats and teams that are its tools.
    pub agent_tools: Vec<AgentTool>,
    /// Whether it runs the code in the messages it receives, and how: `true` for Python, shell and JavaScript.
    #[key(as = Switch<CodeKeys>)]
    pub code_execution: CodeExecution,
    /// When a person is asked before it calls one of its tools, or runs one for others.
    #[key(none = "never; always for tools that run programs which nothing encloses")]
    pub approval: Option<ApprovalRule>,
    /// Whom it can hand over to.
    #[key(as = Vec<ParticipantRef>, unique)]
    pub handoffs: Vec<Name>,
    /// Whether it remembers facts from one conversation to the next: `true` for the tools `remember`, `recall` and `forget`,
    /// and for up to five recalled facts before it speaks.
    #[key(as = Switch<Memory>)]
    pub memory: AgentMemory,
    /// When a person is asked before it replies.
    #[key(none = "never")]
    pub human_input: Option<HumanInputMode>,
    /// Maximum number of replies in a row without input of a person.
    #[key(none = "none", range = 0..=1_000_000)]
    pub max_auto_replies: Option<u32>,
    /// A message that ends the chat when it receives it, unless its person continues: the whole text, or a mapping.
    #[key(none = "`TERMINATE` with `human_input` or `max_auto_replies`", nonempty)]
    pub terminate_on: Option<TerminateOn>,
    /// Its reply when nothing else replies. With an empty text it says nothing, and the chat continues, as in AutoGen. Without
    /// it, the chat ends if an agent has neither a model nor a person, and no reply.
    #[key(none = "none")]
    pub default_reply: Option<String>,
    /// Whether its person can clear histories: `clear history`, `clear history NAME`, `clear history 5`.
    #[key(default = false)]
    pub clear_command: bool,
    /// Nested chats that reply for it: the first whose `when` fits the message.
    #[key(nonempty)]
    pub nested_chats: Vec<NestedChat>,
    /// What it sees of a conversation.
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

/// What an agent sees of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "View")]
pub struct ViewKeys {
    /// Whether messages of others begin with their names.
    #[key(default = ShowNames::Auto)]
    pub names: ShowNames,
    /// How much of a long conversation it sees: the latest part.
    #[key(none = "everything")]
    pub window: Option<Window>,
    /// Texts before the messages of others, by their names.
    #[key(as = ByName<Participant, Same<String>>)]
    pub prefix: BTreeMap<Name, String>,
}

impl Default for ViewKeys {
    fn default() -> Self {
        Self::absent()
    }
}

/// Whether messages of others begin with their names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum ShowNames {
    /// In chats of more than two.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The latest part of a conversation. The system message is always seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum Window {
    /// At most this many messages.
    #[key(range = 1..)]
    Messages(u32),
    /// At most this many tokens, estimated.
    #[key(range = 1..)]
    Tokens(u32),
}

/// The price of a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "Price", by_shape)]
pub enum ModelPrice {
    /// Nothing.
    Free(Free),
    /// US dollars for a million tokens.
    Tokens(TokenPrice),
}

/// The word `free`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum Free {
    /// It costs nothing.
    Free,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Config)]
pub struct TokenPrice {
    /// For input tokens.
    #[key(range = 0..=1_000_000)]
    pub input: f64,
    /// For input tokens from the prompt cache.
    #[key(none = "as `input`", range = 0..=1_000_000)]
    pub cached: Option<f64>,
    /// For output tokens.
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

/// A team of another file that takes part in chats like an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "TeamFile")]
pub struct SubTeam {
    /// Its name here.
    #[key(as = NewParticipant)]
    pub name: Name,
    /// Its file, relative to this file's folder.
    #[key(as = PathText)]
    pub file: String,
    /// Which part of the surrounding conversation is its task.
    #[key(default = TaskFrom::Last)]
    pub task_from: TaskFrom,
    /// The team of the file.
    #[key(skip)]
    pub team: Box<Team>,
}

/// Limits of a whole run. The first that is reached ends it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, Config)]
pub struct Limits {
    /// Number of model calls.
    #[key(none = "none", range = 1..)]
    pub calls: Option<u64>,
    /// Number of tokens, input and output.
    #[key(none = "none", range = 1..)]
    pub tokens: Option<u64>,
    /// Money, in US dollars.
    #[key(none = "none", range = 0..=1_000_000)]
    pub cost: Option<f64>,
    /// Depth of chats within chats.
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

    /// Whoever calls a model in this team and the teams within it, in the order of the file: agents that have one, whoever
    /// picks speakers, and the authors of reflected summaries.
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
        let staff = chats.flat_map(|(name, chat)| chat.staff(name));
        let within = self.teams.iter().flat_map(|sub| sub.team.voices_as(&sub.name));
        agents.chain(staff).chain(within).collect()
    }
}
