//! The MCP servers of a run: whose they are, whether they may be started, and what they say meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use polylogue_http::Proxies;
use polylogue_mcp::{Catalog, Described, Progress, Servers};
use polylogue_team::{BuildContext, Grant, McpServer, Team, Usage};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::error::CliError;
use crate::trust::pins::{self, Asking};
use crate::trust::{Access, Want, wants_of};

/// The servers whose tools the agents of a team are to have; they run, and end when this is dropped.
#[derive(Default)]
pub(super) struct Remote {
    catalog: Option<Catalog>,
    /// What they say of calls that take long.
    pub(super) progress: Option<UnboundedReceiver<Progress>>,
}

/// What is wanted of them.
pub(super) struct Wanted<'a> {
    /// The user's own document of servers.
    pub(super) file: Option<&'a Path>,
    pub(super) access: &'a Access,
    pub(super) asking: Asking<'a>,
}

impl Remote {
    /// Starts those that the agents of `team` need, if they may be started.
    pub(super) async fn start(team: &Team, wanted: &Wanted<'_>) -> Result<Self, CliError> {
        let names = team.mcp_wanted();
        if names.is_empty() {
            return match wanted.file {
                None => Ok(Self::default()),
                Some(_) => Err(unused(team)),
            };
        }
        let own = wanted.file.map(own_servers).transpose()?.unwrap_or_default();
        let of_team = team.mcp_declared();
        let strange: BTreeMap<&str, &McpServer> = (of_team.into_iter())
            .filter(|(name, _)| names.contains(name) && !own.contains_key(*name))
            .collect();
        if let Some(missing) =
            names.iter().find(|name| !own.contains_key(**name) && !strange.contains_key(*name))
        {
            let what = format!("`{}` needs the MCP server `{missing}`, which is not declared", team.name);
            return Err(CliError::usage(what).hint("name a file that declares it, with `--mcp FILE`"));
        }
        let usage = Usage { own_servers: own.keys().cloned().collect(), ..Usage::default() };
        check(team, &usage, wanted.access)?;
        let mut all = own;
        all.extend(strange.iter().map(|(name, server)| ((*name).to_owned(), json!(server))));
        let (tell, progress) = unbounded_channel();
        let (document, env) = (json!({ "mcpServers": all }).to_string(), wanted.access.env.clone());
        let (places, proxies) = (env.clone(), Proxies::of(&env));
        let servers = Servers::with_variables(&document, move |name| env.get(name))?.through(proxies);
        let servers = servers.placed_by(move |name| places.address(name));
        let servers = servers.on_progress(move |progress| {
            // No one else may read it.
            let _ = tell.send(progress.clone());
        });
        let catalog = servers.catalog(names).await?;
        pins::check(&all, &catalog.described(), wanted.access, wanted.asking).await?;
        Ok(Self { catalog: Some(catalog), progress: Some(progress) })
    }

    /// `place` with their tools.
    pub(super) fn furnish(&self, place: BuildContext) -> BuildContext {
        match &self.catalog {
            Some(catalog) => place.with_tools(catalog.clone()),
            None => place,
        }
    }

    /// What models learn of their tools.
    pub(super) fn described(&self) -> Vec<Described> {
        self.catalog.as_ref().map(Catalog::described).unwrap_or_default()
    }
}

/// The whole path of the user's document, to be found again from elsewhere.
pub(super) fn kept(file: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    let whole = file.map(std::path::absolute).transpose();
    whole.map_err(|error| CliError::usage(format!("the file for `--mcp` cannot be found: {error}")))
}

fn unused(team: &Team) -> CliError {
    let what = format!("no agent of `{}` has tools of MCP servers", team.name);
    CliError::usage(what).hint("add `{mcp: NAME}` to the `tools` of an agent, or leave out `--mcp`")
}

/// The names of the servers in the user's document.
pub(super) fn own_names(file: Option<&Path>) -> Result<BTreeSet<String>, CliError> {
    Ok(file.map(own_servers).transpose()?.unwrap_or_default().into_iter().map(|(name, _)| name).collect())
}

/// The servers of the user's document.
fn own_servers(file: &Path) -> Result<Map<String, Value>, CliError> {
    let wrong = |why: String| CliError::usage(format!("no MCP servers are in `{}`: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    Servers::from_json(&text).map_err(|error| wrong(error.to_string()))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(document.get("mcpServers").and_then(Value::as_object).cloned().unwrap_or_default())
}

/// Refuses servers of the team that were not allowed, and variables for them. This was asked before: nothing is started if it was
/// forgotten.
fn check(team: &Team, usage: &Usage, access: &Access) -> Result<(), CliError> {
    let wants = wants_of(team, &Usage { offline: true, ..usage.clone() });
    let of_servers = |want: &&Want| match want.grant() {
        Some(Grant::Mcp) => true,
        Some(Grant::Env) => want.what.contains(" -> the MCP server "),
        _ => false,
    };
    if access.covers(wants.iter().filter(of_servers)) {
        return Ok(());
    }
    Err(CliError::usage(format!("the MCP servers of `{}` were not allowed", team.name))
        .hint("if you trust it, add `--allow mcp,env`, or `--trust` to remember it"))
}
