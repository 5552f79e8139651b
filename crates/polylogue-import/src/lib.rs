//! Converts AutoGen definitions to team files.
//!
//! [`import`] reads the component JSON of AutoGen Studio and AgentChat (`{provider, component_type, config, ...}`), and the
//! declarative part of an AutoGen 0.2 program as JSON (agents with `llm_config`, a group chat, a list of chats). It returns
//! the YAML text of a team file, and a note with place and reason for everything that was left out or changed.
//!
//! Nothing in a definition is executed, and none of its API keys gets into the team file.

mod component;
mod cursor;
mod draft;
mod models;
mod program;
mod report;
mod yaml;

use polylogue_team::{Diagnostics, Overrides, parse};
use serde_json::Value;

use cursor::At;
use draft::Draft;
pub use report::{ImportError, Note};

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The text of the team file.
    pub yaml: String,
    /// What was left out or changed.
    pub notes: Vec<Note>,
    /// The environment variables that must be set: they replace the definition's API keys.
    pub variables: Vec<String>,
    /// Whether the team file has a task. Otherwise, the command line must give one.
    pub has_task: bool,
    /// Errors of the team file that come from errors of the definition. Empty for a team file that can be used.
    pub problems: Diagnostics,
}

/// Converts the definition in `text` to a team file, whose first line names `file_name` as its source.
///
/// # Errors
/// When the text is not JSON, or not a known kind of definition; the error names the place.
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
/// let imported = polylogue_import::import(text, "pair.json")?;
/// assert!(imported.yaml.contains("participants: [Ann, Bob]") && !imported.yaml.contains("secret"));
/// assert_eq!(imported.variables, ["OPENAI_API_KEY"]);
/// # Ok::<(), polylogue_import::ImportError>(())
/// ```
pub fn import(text: &str, file_name: &str) -> Result<Imported, ImportError> {
    let root: Value = serde_json::from_str(text)
        .map_err(|error| ImportError::new("", format!("this is not valid JSON: {error}")))?;
    let mut draft = Draft::new(file_name);
    let at = At::root(&root);
    if component::is_component(&root) {
        component::team_of(&at, &mut draft)?;
    } else {
        program::team_of(&at, &mut draft)?;
    }
    let (yaml, notes, variables) = draft.finish();
    let (has_task, problems) = match parse(&yaml, "the team file", &Overrides::default()) {
        Ok(loaded) => (loaded.team.task.is_some(), Diagnostics::default()),
        Err(problems) => (false, problems),
    };
    Ok(Imported { yaml, notes, variables, has_task, problems })
}
