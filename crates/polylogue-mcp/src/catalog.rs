//! The tools of several servers under unique names, as listed at one time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use polylogue_core::{
    AnyTool, ConfigError, Result, Tool, ToolCx, ToolError, ToolResult, ToolSpec, UnknownName,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::allowed::Allowed;
use crate::names::names;
use crate::server::Server;
use crate::tool::Remote;

/// The tools of some servers, from which agents get theirs. Their names are unique, so that one agent can have tools of several
/// servers. See [`Servers::catalog`](crate::Servers::catalog).
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    servers: BTreeMap<String, Vec<(String, AnyTool)>>,
}

/// Description of a tool for models, known without a running server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolDescription {
    /// The server.
    pub server: String,
    /// The tool's name at the server.
    pub tool: String,
    /// Description of the tool for models.
    pub spec: ToolSpec,
}

impl Catalog {
    /// The tools of `servers`, which were listed, in the order of the servers' names.
    pub(crate) fn of(servers: &BTreeMap<&str, &Arc<Server>>, lists: &[Arc<[rmcp::model::Tool]>]) -> Self {
        let mut catalog = Self::default();
        let mut all = Vec::new();
        for ((server_name, server), list) in servers.iter().zip(lists) {
            let mut known = BTreeSet::new();
            let fresh = list.iter().filter(|listed| known.insert(&*listed.name));
            all.extend(fresh.map(|listed| (*server_name, *server, listed)));
            catalog.servers.insert((*server_name).to_owned(), Vec::new());
        }
        let named: Vec<(&str, &str)> =
            all.iter().map(|(server, _, listed)| (*server, &*listed.name)).collect();
        for (name, (server_name, server, listed)) in names(&named).into_iter().zip(all) {
            let tool = AnyTool::new(Remote::new(name, Arc::clone(server), listed));
            catalog.servers.entry(server_name.to_owned()).or_default().push((listed.name.to_string(), tool));
        }
        catalog
    }

    /// Creates a catalog of known tools that cannot be called, to show their descriptions.
    pub fn of_described(all: impl IntoIterator<Item = ToolDescription>) -> Self {
        let mut catalog = Self::default();
        for ToolDescription { server, tool, spec } in all {
            let tools: &mut Vec<_> = catalog.servers.entry(server).or_default();
            tools.push((tool, AnyTool::new(MissingServerTool(spec))));
        }
        catalog
    }

    /// Returns the descriptions of all tools.
    pub fn described(&self) -> Vec<ToolDescription> {
        let mut all = Vec::new();
        for (server, tools) in &self.servers {
            let described = |(tool, any): &(String, AnyTool)| {
                let (server, tool, spec) = (server.clone(), tool.clone(), any.spec().clone());
                ToolDescription { server, tool, spec }
            };
            all.extend(tools.iter().map(described));
        }
        all
    }

    /// Returns the tools of `server` that are `allowed`, in its order.
    ///
    /// # Errors
    /// When the server is not in the catalog, or lacks a named tool.
    pub fn tools(&self, server: &str, allowed: &Allowed) -> Result<Vec<AnyTool>> {
        let Some(tools) = self.servers.get(server) else {
            let why = "was not asked for its tools".to_owned();
            return Err(ConfigError::McpServer { name: server.to_owned(), why }.into());
        };
        knows(server, allowed, tools)?;
        let included = tools.iter().filter(|(name, _)| allowed.includes(name));
        Ok(included.map(|(_, tool)| tool.clone()).collect())
    }
}

/// Refuses names in `include` or `exclude` that no tool has: a misspelled one would allow another tool than meant.
fn knows(server: &str, allowed: &Allowed, tools: &[(String, AnyTool)]) -> Result<()> {
    let unknown = allowed.named().iter().find(|name| !tools.iter().any(|(known, _)| known == *name));
    unknown.map_or(Ok(()), |name| {
        let known = tools.iter().map(|(name, _)| name);
        let place = format!("of the MCP server `{server}`");
        Err(UnknownName::new("tool", name).within(place).known(known).into())
    })
}

/// A tool without a server.
struct MissingServerTool(ToolSpec);

impl Tool for MissingServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        Err(ToolError(format!("the server of `{}` is not there", self.0.name)))
    }
}
