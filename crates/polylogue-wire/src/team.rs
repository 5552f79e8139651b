//! Teams, and the check of their texts.

use polylogue_core::Money;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The teams that a token may see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Teams {
    /// The teams, by id.
    pub teams: Vec<Listed>,
}

/// A team in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Listed {
    /// A team that is served.
    Served(Box<Team>),
    /// A team that cannot be prepared.
    Broken {
        /// The id.
        id: String,
        /// The error.
        error: String,
        /// How to fix it.
        hint: Option<String>,
        /// The version of the file, when that was just replaced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
    },
}

/// A team that is served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Team {
    /// The id: the name of its file.
    pub id: String,
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The task.
    pub task: Option<String>,
    /// The participants of the outermost chat.
    pub participants: Vec<Participant>,
    /// The edges of the outermost chat: who can speak after whom.
    pub edges: Vec<Edge>,
    /// How the next speaker of the outermost chat is selected, if every participant can follow every other one: then it has no edges.
    pub selected_by: Option<String>,
    /// The variables.
    pub inputs: Vec<Input>,
    /// The models of the agents.
    pub models: Vec<String>,
    /// Whether the script speaks for the agents.
    pub scripted: bool,
    /// The limits of conversations.
    pub limits: TeamLimits,
    /// The version of the file, when that was just replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why the changed file is not used.
    pub changed: Option<Refused>,
}

/// A participant of the outermost chat of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Participant {
    /// The name.
    pub name: String,
    /// The kind: `model`, `person`, `program` or `chat`.
    pub kind: String,
    /// The model, or several: the first, and those asked when it fails. `None` if it has none, or the team names none.
    pub model: Option<String>,
    /// The number of the color on the page, from 0 to 11.
    pub color: usize,
}

/// An edge of the outermost chat of a team: who can speak after whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// The participant that speaks before; `None` for the beginning of the chat.
    pub from: Option<String>,
    /// The participant that speaks next; `None` for the end of the chat.
    pub to: Option<String>,
    /// The condition; `None` for always.
    pub when: Option<String>,
}

/// A variable of a team.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// The name.
    pub name: String,
    /// The default value.
    pub default: String,
}

/// Limits of the conversations of a team.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TeamLimits {
    /// The limit on turns in all chats.
    pub turns: Option<u64>,
    /// The limit on model calls.
    pub calls: Option<u64>,
    /// The limit on input and output tokens.
    pub tokens: Option<u64>,
    /// The limit on cost.
    pub cost: Option<Money>,
}

/// The reason why a team file is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// The error.
    pub error: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// The text of a team file, as it was read last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// The id of the team.
    pub id: String,
    /// The text.
    pub text: String,
    /// The version, which a replacement names; `None` if it cannot be replaced.
    pub version: Option<String>,
}

/// The request to replace the text of a team file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewText {
    /// The new text of the team file.
    pub text: String,
}

/// The request to check the text of a team file. Nothing in it is executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The text of a team file.
    pub text: String,
    /// The id of the team whose file it is: it can then name the files next to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Whether a conversation could begin.
    pub ok: bool,
    /// Mistakes and warnings, as `polylogue check --json` prints them.
    pub problems: Value,
    /// The preview of the team, if there are no mistakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<Outline>,
}

/// The preview of a team.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outline {
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The task.
    pub task: Option<String>,
    /// The variables.
    pub inputs: Vec<InputName>,
    /// The number of agents.
    pub agents: usize,
    /// The number of chats.
    pub chats: usize,
    /// The graph: who can follow whom.
    pub graph: Value,
}

/// The name of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputName {
    /// The name.
    pub name: String,
}
