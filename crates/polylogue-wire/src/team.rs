//! Teams, and the check of their texts.

use polylogue_core::Money;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The teams that a token may see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Teams {
    /// The teams, by id.
    pub teams: Vec<Listed>,
}

/// A team in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Listed {
    /// One that is served.
    Served(Box<Team>),
    /// One that cannot be prepared.
    Broken {
        /// Its id.
        id: String,
        /// Why.
        error: String,
        /// What to do.
        hint: Option<String>,
    },
}

/// A team that is served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Team {
    /// Its id: the name of its file.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its task.
    pub task: Option<String>,
    /// Its variables.
    pub inputs: Vec<Input>,
    /// The models of its agents.
    pub models: Vec<String>,
    /// Whether its agents speak by its script.
    pub scripted: bool,
    /// Limits of its conversations.
    pub limits: TeamLimits,
    /// The version of its file, when that was just replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why its changed file is not used.
    pub changed: Option<Refused>,
}

/// A variable of a team.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its value if none is given.
    pub default: String,
}

/// Limits of the conversations of a team.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamLimits {
    /// Turns in all chats.
    pub turns: Option<u64>,
    /// Model calls.
    pub calls: Option<u64>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
    /// Cost.
    pub cost: Option<Money>,
}

/// Why a team file is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Why.
    pub error: String,
    /// What to do.
    pub hint: Option<String>,
}

/// The text of a team file, as it was read last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The id of the team.
    pub id: String,
    /// The text.
    pub text: String,
    /// Its version, which a replacement names; `None` if it cannot be replaced.
    pub version: Option<String>,
}

/// A new text of a team file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewText {
    /// The text.
    pub text: String,
}

/// The text of a team file that is to be checked. Nothing in it is executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The text.
    pub text: String,
    /// The id of the team whose file it is: it can then name the files next to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
}

/// What a check has found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Whether a conversation could begin.
    pub ok: bool,
    /// Mistakes and warnings, as `polylogue check --json` prints them.
    pub problems: Value,
    /// What a preview of the team shows, if there are no mistakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<Outline>,
}

/// What a preview of a team shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outline {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its task.
    pub task: Option<String>,
    /// Its variables.
    pub inputs: Vec<InputName>,
    /// The number of its agents.
    pub agents: usize,
    /// The number of its chats.
    pub chats: usize,
    /// Who can follow whom.
    pub graph: Value,
}

/// The name of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputName {
    /// The name.
    pub name: String,
}
