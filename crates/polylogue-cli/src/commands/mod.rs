//! The commands, one room each.

pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod import;
pub(crate) mod mcp;
pub(crate) mod memory;
mod remote;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod show;
pub(crate) mod verify;
pub(crate) mod work;

use std::io::{self, Write};
use std::path::PathBuf;

use polylogue::{AnyModel, AnyStore, Assistant, LogId, Skills, Store};
use polylogue_mcp::{Catalog, Described};
use polylogue_models::Script;
use polylogue_team::Team;
use serde::{Deserialize, Serialize};

use crate::screen::Shown;
use crate::trouble::Trouble;

/// What is kept with a conversation so that it can be run again, whatever became of the team file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The team as it was loaded, variables filled.
    pub(crate) team: Team,
    /// Whether its script spoke.
    pub(crate) offline: bool,
    /// What its models can do, where the command line says so: a turn that was begun in one way cannot go on in another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) skills: Option<Skills>,
    /// What its programs may do beyond what the sandbox gives them, by the words for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<String>,
    /// The user's own document of MCP servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mcp: Option<PathBuf>,
    /// What models were told of the tools of MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remote_tools: Vec<Described>,
}

impl Kept {
    /// The agents that speak by models, to be looked at, with the tools that they had.
    pub(crate) fn assistants(&self) -> polylogue::Result<Vec<Assistant>> {
        let silent = |_: &str| Ok(AnyModel::new(Script::default().model("none")));
        self.team.assistants_with(&silent, Catalog::of_described(self.remote_tools.clone()))
    }

    pub(crate) async fn of(store: &AnyStore, id: &LogId) -> Result<Self, Trouble> {
        let meta = store.meta(id).await?;
        if meta.team.is_null() {
            let what = format!(
                "the conversation `{id}` was begun by a program of its own, which alone knows its agents"
            );
            return Err(Trouble::usage(what).hint(format!("`polylogue show {id}` shows what was said")));
        }
        serde_json::from_value(meta.team).map_err(|error| {
            Trouble::failed(format!("the team of the conversation `{id}` cannot be read: {error}"))
        })
    }
}

/// Writes to the output what a terminal can be shown. That nobody reads it is no error.
pub(crate) fn write(text: &Shown) -> Result<(), Trouble> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Trouble::failed(format!("the output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
