//! Definitions of AutoGen to team files.
//!
//! [`import`] reads the component JSON of AutoGen Studio and AgentChat (`{provider, component_type, config, ...}`), and
//! what is declarative of an AutoGen 0.2 program written down as JSON (agents with `llm_config`, a group chat, a list of
//! chats). It writes a team file, and says of everything that could not be carried over where it stands and why.
//!
//! Nothing in a definition is executed, and no key of one gets into the team file.

mod agents;
mod classic;
mod coding;
mod component;
mod cursor;
mod draft;
mod fallback;
mod graph;
mod group;
mod manager;
mod models;
mod nested;
mod sequence;
mod stops;
mod yaml;

use std::fmt;

use serde_json::Value;

use crate::diagnostic::Diagnostics;
use crate::load::{Overrides, parse};
use cursor::At;
use draft::Draft;

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The team file.
    pub yaml: String,
    /// What was not carried over, or not as it was.
    pub notes: Vec<Note>,
    /// The environment variables that hold the keys which the definition held, or left to the environment.
    pub variables: Vec<String>,
    /// What is wrong with the team file, because it was wrong with the definition. Empty for one that can be used.
    pub problems: Diagnostics,
}

/// Something that was not carried over, or not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it stands in the definition, such as `$.config.participants[0]`.
    pub path: String,
    /// What became of it, and why.
    pub what: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// A text that is no definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    path: String,
    what: String,
}

impl ImportError {
    fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.path, self.what) }
    }
}

impl std::error::Error for ImportError {}

type Result<T> = std::result::Result<T, ImportError>;

/// Makes a team file of the definition in `text`; the team file says that it is of `file_name`.
///
/// # Errors
/// When the text is no JSON, or no definition that is known; the error says where.
///
/// ```
/// let text = r#"{
///     "provider": "autogen_agentchat.teams.RoundRobinGroupChat", "component_type": "team", "label": "pair",
///     "config": {"max_turns": 4, "participants": [
///         {"provider": "autogen_agentchat.agents.AssistantAgent", "config": {
///             "name": "Ann", "system_message": "You are Ann.",
///             "model_client": {"provider": "autogen_ext.models.openai.OpenAIChatCompletionClient",
///                              "config": {"model": "gpt-4o", "api_key": "secret"}}}},
///         {"provider": "autogen_agentchat.agents.UserProxyAgent", "config": {"name": "Bob"}}
///     ]}
/// }"#;
/// let imported = polylogue_team::import::import(text, "pair.json")?;
/// assert!(imported.yaml.contains("participants: [Ann, Bob]") && !imported.yaml.contains("secret"));
/// assert_eq!(imported.variables, ["OPENAI_API_KEY"]);
/// # Ok::<(), polylogue_team::import::ImportError>(())
/// ```
pub fn import(text: &str, file_name: &str) -> Result<Imported> {
    let root: Value = serde_json::from_str(text)
        .map_err(|error| ImportError::new("", format!("this is no JSON: {error}")))?;
    let mut draft = Draft::new(file_name);
    let at = At::root(&root);
    if component::is_component(&root) {
        component::team_of(&at, &mut draft)?;
    } else {
        classic::team_of(&at, &mut draft)?;
    }
    let (yaml, notes, variables) = draft.finish();
    let problems = match parse(&yaml, "the team file", &Overrides::default()) {
        Ok(_) => Diagnostics::default(),
        Err(problems) => problems,
    };
    Ok(Imported { yaml, notes, variables, problems })
}
