//! What a team file says, as types.
//!
//! The JSON Schema of team files is made of these types, and files are read by that schema: the comments here are
//! what people read in their editors.

use std::collections::BTreeMap;

use polylogue_core::{Name, Price};
use polylogue_models::Script;
use polylogue_tools::command::Declaration;
use polylogue_tools::http;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::approve::ApproveCalls;
use crate::calls::ApiDocument;
use crate::chat::{Brief, Chat, InnerChat};
use crate::endpoint::Endpoint;
use crate::member::{EndsOn, HumanInput, Nested};
use crate::memory::{AgentMemory, TeamMemory};
use crate::parameters::Parameters;
use crate::reasoning::{Reasons, RunsBlocks, Shot, TextBlock};
use crate::remote::{GivenTool, McpServers};
use crate::script::StepForm;
use crate::text::{ModelText, NameText, OwnModelText, PathText, Template, ToolText, VarText};
use crate::tooling::{RunTool, ToolLimits, ToolsBy, Trace};
use crate::web::Web;
use crate::working::{Consult, RunsCode, SandboxSettings, WorkFile};

/// A team: agents, how they talk with one another, and what they talk about.
///
/// Texts may hold `{{name}}` for the variables of `vars`; system texts, prompts and openings may hold `{{task}}`,
/// the task of the chat they are used in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Team {
    /// The team's name; the outermost chat has it too.
    #[schemars(with = "NameText")]
    pub name: Name,
    /// One line for lists of teams.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The task when the command line gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The model of every agent that names none, as `provider:model`. `--model` replaces it and every agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ModelText>")]
    pub model: Option<String>,
    /// Variables: `{{name}}` in a text of this file is replaced by the value, literally and once. `--var NAME=VALUE`
    /// replaces a value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, VarText>")]
    pub vars: BTreeMap<String, String>,
    /// How models are reached: endpoints of one's own by their names, which then go before the `:` of a model's, and
    /// providers that are known, with other settings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoints: BTreeMap<String, Endpoint>,
    /// Prices of models, by `provider:model`; they go before the built-in ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, ModelPrice>,
    /// Who there is. A team can do without when only other teams take part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
    /// The outermost chat.
    pub chat: Chat,
    /// Chats that take part in other chats, each as if it were one agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chats: Vec<InnerChat>,
    /// Teams of other files that take part in chats, each as if it were one agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<SubTeam>,
    /// Where programs run: code, and commands that are tools. Enclosed on this machine when left out.
    #[serde(default, skip_serializing_if = "SandboxSettings::is_default")]
    pub sandbox: SandboxSettings,
    /// Files that are in the work directory when a conversation begins, by their paths seen from this file's folder, below
    /// which they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("uniqueItems" = true))]
    pub files: Vec<WorkFile>,
    /// Commands that are tools. They run where code does, and never through a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Declaration>,
    /// MCP servers, whose tools agents can be given: by name, or the path of a JSON document with `mcpServers`. They are
    /// programs that run outside the sandbox, which has to be allowed on the command line as well.
    #[serde(default, skip_serializing_if = "McpServers::is_empty")]
    pub mcp: McpServers,
    /// Calls over HTTP that are tools. Their hosts have to be allowed on the command line as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<http::Declaration>,
    /// Services whose operations are tools, as OpenAPI documents describe them. They have to be allowed as well.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub openapi: BTreeMap<String, ApiDocument>,
    /// What the tools `web_search` and `web_fetch` find and read.
    #[serde(default, skip_serializing_if = "Web::is_none")]
    pub web: Web,
    /// Whose memory the agents with `memory` have, and how things are found in it.
    #[serde(default, skip_serializing_if = "TeamMemory::is_default")]
    pub memory: TeamMemory,
    /// Limits of the whole run; of a team within a team, they do not count.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// What the agents reply when there is no model: the nth step of an agent is its nth model call.
    #[serde(default, skip_serializing_if = "Script::is_empty")]
    #[schemars(with = "Vec<StepForm>")]
    pub script: Script,
    /// How fast scripted agents speak, in words per second; 0 is at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub script_pace: Option<f64>,
}

/// Somebody who can take part in chats: a model with a part to play, or a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name, in any script: a letter, then letters, digits, `_`, `-`, `'`, `’`, `·` and single spaces, at most 64 characters.
    #[schemars(with = "NameText")]
    pub name: Name,
    /// What it is for, in a line; others are told this of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether it is a person. A person is asked when it is their turn, and has no `system`, `model`, `parameters`,
    /// `tools`, `tools_by`, `trace`, `answers`, `repairs`, `reasons`, `examples`, `blocks`, `offers`, `consults`, `handoffs`, `memory` and `sees`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub human: bool,
    /// Its system text.
    #[serde(default, skip_serializing_if = "Template::is_empty")]
    pub system: Template,
    /// Its model, as `provider:model`, where it is not the team's; `none` for an agent that speaks by none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OwnModelText>")]
    pub model: Option<String>,
    /// How its model writes.
    #[serde(default, skip_serializing_if = "Parameters::is_none")]
    pub parameters: Parameters,
    /// The tools it may call: its model is told of them, and it runs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("uniqueItems" = true))]
    pub tools: Vec<GivenTool>,
    /// How long a call of one of its tools may take, and how much it may return.
    #[serde(default, skip_serializing_if = "ToolLimits::is_none")]
    pub tool_limits: ToolLimits,
    /// How its model is made to call tools, and to answer in a form; by the best way that it knows when left out.
    #[serde(default, skip_serializing_if = "ToolsBy::is_auto")]
    pub tools_by: ToolsBy,
    /// What it remembers of a turn in which it called tools step by step; what it said in the end when left out.
    #[serde(default, skip_serializing_if = "Trace::is_answer")]
    pub trace: Trace,
    /// The JSON Schema that all that it says has to satisfy, whatever its model can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub answers: Option<Map<String, Value>>,
    /// How often an answer that does not satisfy the schema is repaired, 3 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub repairs: Option<u32>,
    /// In what way it reasons before it says something; it just says it when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Reasons>,
    /// Examples of what it hears and says, which its model reads before every conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Shot>,
    /// Blocks in what it says that programs read. The first that stands in a message, in the order given here, counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<TextBlock>,
    /// The tools its model is told of, and somebody else runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ToolText>", extend("uniqueItems" = true))]
    pub offers: Vec<String>,
    /// The tools it runs for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("uniqueItems" = true))]
    pub runs: Vec<RunTool>,
    /// What it runs of the blocks in what it hears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_blocks: Option<RunsBlocks>,
    /// Agents, chats and teams that it may ask as it calls a tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consults: Vec<Consult>,
    /// Whether it runs the code in what it hears, and how: `true` for Python, shell and JavaScript.
    #[serde(default, skip_serializing_if = "RunsCode::is_off")]
    pub runs_code: RunsCode,
    /// When a person is asked before it calls one of its tools, or runs one for others; never when left out, but where
    /// nothing encloses programs always before tools that run them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<ApproveCalls>,
    /// To whom it may hand over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<NameText>", extend("uniqueItems" = true))]
    pub handoffs: Vec<Name>,
    /// Whether it remembers things from one conversation to the next, and how: `true` for the tools `remember`, `recall` and
    /// `forget`, and for being reminded of up to five facts before it speaks.
    #[serde(default, skip_serializing_if = "AgentMemory::is_off")]
    pub memory: AgentMemory,
    /// When a person is asked before it replies by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human_input: Option<HumanInput>,
    /// How many replies in a row it gives that no person had a part in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_auto_replies: Option<u32>,
    /// A message that ends the chat when it hears it, unless a person goes on: the text that it is, or a mapping that
    /// says more of it. `TERMINATE` when left out and there is `human_input` or `max_auto_replies`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_on: Option<EndsOn>,
    /// What it says when nothing else replies. An empty text says nothing, and the chat continues, as in AutoGen. Without it, a chat
    /// ends when an agent has neither a model nor a person and nothing to reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_reply: Option<String>,
    /// Whether its person may clear what agents see: `clear history`, `clear history NAME`, `clear history 5`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub clear_command: bool,
    /// Chats of its own, which reply for it: the first whose `when` fits the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub nested: Vec<Nested>,
    /// What it gets to see of a conversation.
    #[serde(default, skip_serializing_if = "Sees::is_default")]
    pub sees: Sees,
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
        let is_direct = self.reasons.is_none() && self.blocks.is_empty();
        self.speaks_by_model() && !self.is_layered() && is_direct
    }

    /// Whether it has several ways to reply.
    pub(crate) fn is_layered(&self) -> bool {
        let overseen =
            self.human_input.is_some() || self.max_auto_replies.is_some() || self.ends_on.is_some();
        let runs = !self.runs.is_empty() || !self.runs_code.is_off() || self.runs_blocks.is_some();
        let replies = runs || !self.nested.is_empty() || self.auto_reply.is_some();
        overseen || replies || self.clear_command
    }
}

/// What an agent gets to see of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sees {
    /// Whether what others say begins with their names.
    pub names: ShowNames,
    /// How much of a long conversation it sees: the latest part. Everything when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// What is put before the words of others, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub prefix: BTreeMap<Name, String>,
}

impl Sees {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether what others say begins with their names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShowNames {
    /// When more than two are in the room.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The latest part of a conversation. The system text is always seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// At most this many messages.
    Messages(#[schemars(range(min = 1))] u32),
    /// At most this many tokens, as they are estimated.
    Tokens(#[schemars(range(min = 1))] u32),
}

/// What a model costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ModelPrice {
    /// Nothing.
    Free(Free),
    /// Dollars for a million tokens.
    Tokens(TokenPrice),
}

/// The word `free`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Free {
    /// It costs nothing.
    Free,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenPrice {
    /// For a million tokens read.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub input: f64,
    /// For a million tokens read from the prompt cache; as `input` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cached: Option<f64>,
    /// For a million tokens written.
    #[schemars(range(min = 0, max = 1_000_000))]
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

/// A team of another file, which takes part in chats as if it were one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubTeam {
    /// Its name here.
    #[schemars(with = "NameText")]
    pub name: Name,
    /// Its file, seen from this file's folder.
    #[schemars(with = "PathText")]
    pub file: String,
    /// How its task is made of the conversation around it.
    #[serde(default)]
    pub brief: Brief,
    /// What the file says.
    #[schemars(skip)]
    pub team: Box<Team>,
}

/// Limits of a whole run. Whichever is met first ends it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub calls: Option<u64>,
    /// Tokens read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// Dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cost: Option<f64>,
    /// Chats within chats.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub depth: Option<u32>,
}

impl Limits {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(bool: &bool) -> bool {
    !*bool
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
    pub fn examples_of(&self, name: &Name) -> Option<&[Shot]> {
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
