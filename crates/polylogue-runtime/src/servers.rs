//! The MCP servers of a team: whose they are, whether they may be started, and their progress reports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use polylogue_http::Proxies;
use polylogue_mcp::{Catalog, Progress, Servers, ToolDescription};
use polylogue_team::{BuildContext, Grant, McpServer, Team, Usage};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{Access, Error, RequestedPermission, Result};

/// The servers whose tools the agents of a team have. They run until this is dropped.
#[derive(Default)]
pub struct TeamServers {
    catalog: Option<Catalog>,
    declared: Map<String, Value>,
    progress: Option<UnboundedReceiver<Progress>>,
}

impl TeamServers {
    /// Starts those that the agents of `team` need, if they may be started.
    pub(crate) async fn start(team: &Team, file: Option<&Path>, access: &Access) -> Result<Self> {
        let names = team.mcp_wanted();
        if names.is_empty() {
            return match file {
                None => Ok(Self::default()),
                Some(_) => Err(Error::ServersUnused { team: team.name.clone() }),
            };
        }
        let own = file.map(own_servers).transpose()?.unwrap_or_default();
        let of_team = team.mcp_declared();
        let strange: BTreeMap<&str, &McpServer> = (of_team.into_iter())
            .filter(|(name, _)| names.contains(name) && !own.contains_key(*name))
            .collect();
        if let Some(missing) =
            names.iter().find(|name| !own.contains_key(**name) && !strange.contains_key(*name))
        {
            return Err(Error::ServerMissing { team: team.name.clone(), server: (*missing).to_owned() });
        }
        let usage = Usage { own_servers: own.keys().cloned().collect(), ..Usage::default() };
        check(team, &usage, access)?;
        let mut all = own;
        all.extend(strange.iter().map(|(name, server)| ((*name).to_owned(), server.to_json())));
        let (sender, progress) = unbounded_channel();
        let (document, env) = (json!({ "mcpServers": all }).to_string(), access.env.clone());
        let (places, proxies) = (env.clone(), Proxies::of(&env));
        let servers = Servers::with_variables(&document, move |name| env.get(name))?.through(proxies);
        let servers = servers.placed_by(move |name| places.address(name));
        let servers = servers.on_progress(move |progress| {
            // No one else may read it.
            let _ = sender.send(progress.clone());
        });
        let catalog = servers.catalog(names).await?;
        Ok(Self { catalog: Some(catalog), declared: all, progress: Some(progress) })
    }

    /// Returns the declarations of the servers, by name, as in `mcpServers`.
    pub const fn declared(&self) -> &Map<String, Value> {
        &self.declared
    }

    /// Takes the progress reports of calls that take long: each is returned once.
    pub fn take_progress(&mut self) -> Option<UnboundedReceiver<Progress>> {
        self.progress.take()
    }

    /// `context` with their tools.
    pub(crate) fn add_resources(&self, context: BuildContext) -> BuildContext {
        match &self.catalog {
            Some(catalog) => context.with_tools(catalog.clone()),
            None => context,
        }
    }

    /// Their tools.
    pub(crate) fn catalog(&self) -> Catalog {
        self.catalog.clone().unwrap_or_default()
    }

    /// Returns what models learn of their tools.
    pub fn described(&self) -> Vec<ToolDescription> {
        self.catalog.as_ref().map(Catalog::described).unwrap_or_default()
    }
}

/// Returns the names of the servers in the user's document.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn server_names(file: Option<&Path>) -> Result<BTreeSet<String>> {
    Ok(file.map(own_servers).transpose()?.unwrap_or_default().into_iter().map(|(name, _)| name).collect())
}

/// The servers of the user's document.
fn own_servers(file: &Path) -> Result<Map<String, Value>> {
    let wrong = |why: String| Error::BadServers { file: file.to_owned(), why };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    Servers::from_json(&text).map_err(|error| wrong(error.to_string()))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(document.get("mcpServers").and_then(Value::as_object).cloned().unwrap_or_default())
}

/// Refuses servers of the team that were not allowed, and variables for them. This was asked before: nothing is started if it was
/// forgotten.
fn check(team: &Team, usage: &Usage, access: &Access) -> Result<()> {
    let wants = RequestedPermission::of_team(team, &Usage { offline: true, ..usage.clone() });
    let of_servers = |want: &&RequestedPermission| match want.grant() {
        Some(Grant::Mcp) => true,
        Some(Grant::Env) => want.what.contains(" -> the MCP server "),
        _ => false,
    };
    if access.covers(wants.iter().filter(of_servers)) {
        return Ok(());
    }
    Err(Error::ServersNotAllowed { team: team.name.clone() })
}
