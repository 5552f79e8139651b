//! What an MCP server said of its tools, as digests.

use std::collections::BTreeMap;

use polylogue_mcp::ToolDescription;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A server, and what it said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin {
    /// Identifies the server: its name, and its program or address.
    pub(crate) server: String,
    /// What it is called.
    pub(crate) name: String,
    /// Identifies what it said of each tool: description and schema.
    pub(crate) tools: BTreeMap<String, String>,
    pub(crate) time_ms: u64,
}

impl Pin {
    /// The servers that are declared as `servers`, each with its tools of `described`.
    pub(super) fn all(servers: &Map<String, Value>, described: &[ToolDescription]) -> Vec<Self> {
        let names = described.iter().map(|tool| &tool.server).collect::<std::collections::BTreeSet<_>>();
        let pin = |name: &String| Self {
            server: identity(name, servers.get(name)),
            name: name.clone(),
            tools: described.iter().filter(|tool| tool.server == *name).map(of_tool).collect(),
            time_ms: 0,
        };
        names.into_iter().map(pin).collect()
    }

    /// The tools that it says more or something else of than `before`.
    pub(super) fn changes<'s>(&'s self, before: &'s Self) -> impl Iterator<Item = &'s String> {
        let is_same = |(tool, digest): &(&String, &String)| before.tools.get(*tool) == Some(digest);
        self.tools.iter().filter(move |said| !is_same(said)).map(|(tool, _)| tool)
    }
}

fn of_tool(tool: &ToolDescription) -> (String, String) {
    let said = json!([tool.spec.description, tool.spec.parameters]).to_string();
    (tool.tool.clone(), blake3::hash(said.as_bytes()).to_hex().to_string())
}

/// Values of variables and headers may be secrets, and are no part of it.
fn identity(name: &str, declared: Option<&Value>) -> String {
    let of = |key: &str| declared.and_then(|server| server.get(key)).cloned().unwrap_or_default();
    let server = json!([name, of("command"), of("args"), of("url")]).to_string();
    blake3::hash(server.as_bytes()).to_hex().to_string()
}
