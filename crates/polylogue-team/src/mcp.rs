//! MCP servers and their tools.

use std::collections::{BTreeMap, BTreeSet};

use polylogue_config::{At, Config};
use polylogue_core::{AnyTool, Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use polylogue_mcp::Allowed;
use serde_json::{Value, json};

use crate::text::PathText;

/// MCP servers in this file, or the path of a document with them.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(by_shape)]
pub enum McpServers {
    /// Path of a JSON document with `mcpServers`, below the folder of this file. The loader replaces it by the servers.
    #[key(as = PathText)]
    File(String),
    /// MCP servers by name.
    Servers(BTreeMap<String, At<McpServer>>),
}

impl Default for McpServers {
    fn default() -> Self {
        Self::Servers(BTreeMap::new())
    }
}

impl McpServers {
    /// Returns the servers by name.
    pub fn servers(&self) -> &BTreeMap<String, At<McpServer>> {
        static NONE: BTreeMap<String, At<McpServer>> = BTreeMap::new();
        match self {
            Self::File(_) => &NONE,
            Self::Servers(servers) => servers,
        }
    }

    pub(crate) fn servers_mut(&mut self) -> impl Iterator<Item = &mut McpServer> {
        let servers = if let Self::Servers(servers) = self { Some(servers) } else { None };
        servers.into_iter().flatten().map(|(_, server)| &mut server.value)
    }
}

/// An MCP server: a local program or an address. `${NAME}` in its texts is replaced by an environment variable of the
/// user who runs the team.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub struct McpServer {
    /// Program of a local server. It runs outside the sandbox.
    #[key(none = "none: the server has a `url`", nonempty)]
    pub command: Option<String>,
    /// Command-line arguments of the program.
    pub args: Vec<String>,
    /// Environment variables of the program, in addition to a minimal set. Write secrets as `${NAME}`.
    pub env: BTreeMap<String, String>,
    /// Working directory of the program.
    #[key(as = Option<PathText>, none = "the folder of the team file")]
    pub cwd: Option<String>,
    /// Address of a remote server.
    #[key(none = "none: the server has a `command`", nonempty)]
    pub url: Option<String>,
    /// Headers of requests to `url`. Write secrets as `${NAME}`.
    pub headers: BTreeMap<String, String>,
}

impl McpServer {
    /// Describes the server in a line: its command, or its address.
    pub fn in_words(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => {
                [command].into_iter().chain(&self.args).map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            (None, url) => url.clone().unwrap_or_default(),
        }
    }

    /// Returns the server as in `mcpServers` of the usual JSON document.
    pub fn to_json(&self) -> Value {
        self.write()
    }

    /// Returns the names of the environment variables that it receives.
    pub fn variables(&self) -> BTreeSet<&str> {
        let alone = [&self.command, &self.cwd, &self.url];
        let texts = alone.into_iter().flatten().chain(&self.args).chain(self.env.values());
        texts.chain(self.headers.values()).flat_map(|text| variables(text)).collect()
    }
}

/// The names in the `${NAME}` and `${NAME:-otherwise}` of a text.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    let inside = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    inside.map(|(inside, _)| inside.split_once(":-").map_or(inside, |(name, _)| name))
}

/// Tools of an MCP server: all, unless `include` or `exclude` is given.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct McpTools {
    /// Name of the server in `mcp` of this file or in the file that the command line names.
    #[key(nonempty)]
    pub mcp: At<String>,
    /// Tools to use, by the server's names for them.
    #[key(nonempty, unique)]
    pub include: At<Vec<String>>,
    /// Tools not to use, by the server's names for them.
    #[key(nonempty, unique)]
    pub exclude: At<Vec<String>>,
    /// Maximum cost of a call of each of these tools in US dollars. It is reserved before the call, and counts where the result does
    /// not report its cost.
    #[key(none = "what the server says, else free", range = 0..=1_000_000)]
    pub max_cost: Option<f64>,
}

impl McpTools {
    pub(crate) fn allowed(&self) -> Allowed {
        match (self.include.as_slice(), self.exclude.as_slice()) {
            ([], []) => Allowed::All,
            ([], excluded) => Allowed::exclude(excluded),
            (included, _) => Allowed::include(included),
        }
    }

    /// What stands for the tools of a server that does not run: as many as are named, or two, since a model is asked fewer questions about
    /// one alone.
    pub(crate) fn unknown_tools(&self) -> Vec<AnyTool> {
        let named: Vec<&str> = self.include.iter().map(String::as_str).collect();
        let names = if named.is_empty() { vec!["1", "2"] } else { named };
        let tool = |name: &str| {
            let name = format!("{}_{name}", self.mcp.as_str());
            AnyTool::new(UnknownTool(ToolSpec::new(name, "", json!({"type": "object"}))))
        };
        names.into_iter().map(tool).collect()
    }
}

/// A tool of which nothing is known, and which is never called.
struct UnknownTool(ToolSpec);

impl Tool for UnknownTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        Err(ToolError(format!("the server of `{}` does not run", self.0.name)))
    }
}
