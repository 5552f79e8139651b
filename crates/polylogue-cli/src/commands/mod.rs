//! The commands, one room each.

pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod import;
pub(crate) mod limit;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod new;
mod remote;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod trust;
pub(crate) mod verify;
pub(crate) mod work;

use std::io::{self, Write};
use std::path::PathBuf;

use polylogue::{AnyModel, AnyStore, Assistant, Capabilities, LimitOverrides, LogId, Meta, Store};
use polylogue_mcp::{Catalog, Described};
use polylogue_models::Script;
use polylogue_team::Team;
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::place;
use crate::screen::Sanitized;
use crate::trust::Want;
use crate::trust::book::TrustFile;

/// What is kept with a conversation so that it can be run again, whatever became of the team file.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredRun {
    /// The team as it was loaded, variables filled.
    pub(crate) team: Team,
    /// Whether its script spoke.
    pub(crate) offline: bool,
    /// What its models can do, where the command line says so: a turn that was begun in one way cannot go on in another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) capabilities: Option<Capabilities>,
    /// Identifies the content of the team file and of what it includes.
    #[serde(default)]
    pub(crate) digest: String,
    /// What it was allowed of what it asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<Want>,
    /// The user's own document of MCP servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mcp: Option<PathBuf>,
    /// What models were told of the tools of MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remote_tools: Vec<Described>,
    /// The limits of the command line it began with, over those of the team.
    #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
    pub(crate) limits: LimitOverrides,
    /// Shows that this user allowed it: a store of another user allows nothing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seal: Option<String>,
}

impl StoredRun {
    /// The same with the user's seal, where it matters.
    pub(crate) fn sealed(self) -> Self {
        // Rules for approvals may be about this team.
        let has_rules = place::of_rules().is_some_and(|rules| rules.exists());
        if self.allowed.is_empty() && self.mcp.is_none() && !has_rules {
            return self;
        }
        let seal = self.content().and_then(|content| TrustFile::seal(&content));
        Self { seal, ..self }
    }

    /// Whether this user allowed what is in it.
    pub(crate) fn is_sealed(&self) -> Result<bool, CliError> {
        let Some((seal, content)) = self.seal.as_ref().zip(self.content()) else { return Ok(false) };
        Ok(TrustFile::read()?.is_sealed(&content, seal))
    }

    fn content(&self) -> Option<Vec<u8>> {
        serde_json::to_vec(&(&self.team, &self.digest, &self.allowed, &self.mcp)).ok()
    }

    /// Identifies the stored team.
    pub(crate) fn own_digest(&self) -> String {
        let team = serde_json::to_vec(&self.team).unwrap_or_default();
        format!("kept-{}", blake3::hash(&team).to_hex())
    }

    /// The agents that speak by models, to be looked at, with the tools that they had.
    pub(crate) fn assistants(&self) -> polylogue::Result<Vec<Assistant>> {
        let silent = |_: &str| Ok(AnyModel::new(Script::default().model("none")));
        self.team.assistants_with(&silent, Catalog::of_described(self.remote_tools.clone()))
    }

    pub(crate) async fn of(store: &AnyStore, id: &LogId) -> Result<Self, CliError> {
        let meta = store.meta(id).await?;
        if meta.team.is_null() {
            let what = format!(
                "the conversation `{id}` was begun by a program of its own, which alone knows its agents"
            );
            return Err(CliError::usage(what).hint(format!("`polylogue show {id}` shows what was said")));
        }
        serde_json::from_value(meta.team).map_err(|error| {
            CliError::failed(format!("the team of the conversation `{id}` cannot be read: {error}"))
        })
    }
}

/// The limits of the command line that the conversation with this `meta` began with.
pub(crate) fn limits_of(meta: &Meta) -> LimitOverrides {
    let limits = meta.team.get("limits").cloned();
    limits.and_then(|limits| serde_json::from_value(limits).ok()).unwrap_or_default()
}

/// Writes to the output what a terminal can be shown. A closed output is no error.
pub(crate) fn write(text: &Sanitized) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("the output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
