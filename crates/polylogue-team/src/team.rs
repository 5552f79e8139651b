//! What a team file says, as types.
//!
//! The JSON Schema of team files is made of these types, and files are read by that schema: the comments here are
//! what people read in their editors.

use std::collections::BTreeMap;

use polylogue_core::{Name, Params, Price};
use polylogue_models::Script;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::chat::{Brief, Chat, InnerChat};
use crate::endpoint::Endpoint;
use crate::script::StepForm;
use crate::text::{ModelText, NameText, PathText, Template, ToolText, VarText};

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
    /// Its name: a letter, then letters, digits, `_` and `-`, at most 64.
    #[schemars(with = "NameText")]
    pub name: Name,
    /// What it is for, in a line; others are told this of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether it is a person. A person is asked when it is their turn, and has no `system`, `model`, `parameters`,
    /// `tools` and `sees`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub human: bool,
    /// Its system text.
    #[serde(default, skip_serializing_if = "Template::is_empty")]
    pub system: Template,
    /// Its model, as `provider:model`, where it is not the team's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ModelText>")]
    pub model: Option<String>,
    /// How its model writes.
    #[serde(default, skip_serializing_if = "Parameters::is_none")]
    pub parameters: Parameters,
    /// The built-in tools it may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ToolText>", extend("uniqueItems" = true))]
    pub tools: Vec<String>,
    /// What it gets to see of a conversation.
    #[serde(default, skip_serializing_if = "Sees::is_default")]
    pub sees: Sees,
}

/// How a model writes. What is left out is left to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Randomness, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub temperature: Option<f64>,
    /// Only the likeliest tokens that together have this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// Only this many of the likeliest tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub top_k: Option<u32>,
    /// Makes the provider's randomness repeatable, where it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// The longest reply, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub max_tokens: Option<u32>,
    /// Texts that end a reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The JSON Schema that replies have to satisfy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// Further fields, given to the provider as they are.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Parameters {
    /// Whether everything is left to the provider.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl From<Parameters> for Params {
    fn from(of: Parameters) -> Self {
        Self {
            temperature: of.temperature,
            top_p: of.top_p,
            top_k: of.top_k,
            seed: of.seed,
            max_tokens: of.max_tokens,
            stop: of.stop,
            schema: of.schema.map(Value::Object),
            extra: of.extra,
        }
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
        for agent in &mut self.agents {
            agent.model = None;
        }
        let inner = self.chats.iter_mut().map(|inner| &mut inner.chat);
        for chat in std::iter::once(&mut self.chat).chain(inner) {
            chat.summary.forget_model();
        }
        for sub in &mut self.teams {
            sub.team.use_model(model);
        }
    }

    /// Whoever calls a model in this team and the teams within it, in the order of the file: agents that are no
    /// persons, and the authors of reflected summaries.
    #[must_use]
    pub fn voices(&self) -> Vec<Name> {
        self.voices_as(&self.name)
    }

    /// The same when the outermost chat is called `name`, as that of a team within a team is.
    pub(crate) fn voices_as(&self, name: &Name) -> Vec<Name> {
        let agents = self.agents.iter().filter(|agent| !agent.human).map(|agent| agent.name.clone());
        let inner = self.chats.iter().map(|inner| (&inner.name, &inner.chat));
        let chats = std::iter::once((name, &self.chat)).chain(inner);
        let summarizers = chats.filter_map(|(name, chat)| chat.summarizer(name));
        let within = self.teams.iter().flat_map(|sub| sub.team.voices_as(&sub.name));
        agents.chain(summarizers).chain(within).collect()
    }
}
