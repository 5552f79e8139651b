//! What a team file says of MCP servers, and of which of their tools agents get.

use std::collections::{BTreeMap, BTreeSet};

use polylogue_mcp::Allowed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::team::Team;
use crate::text::{OptionText, PathText};
use crate::tooling::OwnTool;

/// MCP servers, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, with = "ServersForm")]
pub struct McpServers(pub BTreeMap<String, McpServer>);

impl McpServers {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[expect(
    dead_code,
    reason = "a schema is made of it; a path is replaced by what is in the file when it is read"
)]
enum ServersForm {
    /// The usual JSON document with `mcpServers`, by its path seen from this file's folder, below which it is.
    File(#[schemars(with = "PathText")] String),
    /// The servers.
    Servers(BTreeMap<String, McpServer>),
}

/// An MCP server: a program of this machine, or an address. `${NAME}` in its texts is a variable of the environment of whoever
/// runs the team.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// The program that is the server. It runs outside the sandbox, in the folder of the team file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment, besides what every program needs. Keys come as `${NAME}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The folder it runs in, where that is not the team file's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PathText>")]
    pub cwd: Option<String>,
    /// The address of a server that runs elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub url: Option<String>,
    /// What requests to that address carry. Keys come as `${NAME}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl McpServer {
    /// What it is, in a line: its command, or its address.
    #[must_use]
    pub fn in_words(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => {
                [command].into_iter().chain(&self.args).map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            (None, url) => url.clone().unwrap_or_default(),
        }
    }

    /// The variables of the environment that it is handed, by name.
    #[must_use]
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

/// Tools of an agent or of a task: one by its name, or those of an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum GivenTool {
    /// One by its name, or `files`.
    Own(OwnTool),
    /// Those of an MCP server.
    Mcp(McpTools),
}

impl GivenTool {
    pub(crate) fn own(&self) -> Option<&OwnTool> {
        match self {
            Self::Own(own) => Some(own),
            Self::Mcp(_) => None,
        }
    }

    fn mcp(&self) -> Option<&McpTools> {
        match self {
            Self::Own(_) => None,
            Self::Mcp(tools) => Some(tools),
        }
    }
}

/// The tools of an MCP server: all of them, unless it is said which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpTools {
    /// The server: one of this file's `mcp`, or of the file that the command line names.
    #[schemars(with = "OptionText")]
    pub mcp: String,
    /// These tools only, by the server's names for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<OptionText>", length(min = 1), extend("uniqueItems" = true))]
    pub only: Vec<String>,
    /// All tools but these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<OptionText>", length(min = 1), extend("uniqueItems" = true))]
    pub but: Vec<String>,
}

impl McpTools {
    pub(crate) fn allowed(&self) -> Allowed {
        match (&*self.only, &*self.but) {
            ([], []) => Allowed::All,
            ([], but) => Allowed::but(but),
            (only, _) => Allowed::only(only),
        }
    }
}

impl Team {
    /// The MCP servers whose tools somebody in this team, or in one within it, is to have, by name.
    #[must_use]
    pub fn mcp_wanted(&self) -> BTreeSet<&str> {
        let own = self.given_tools().filter_map(GivenTool::mcp).map(|tools| tools.mcp.as_str());
        own.chain(self.teams.iter().flat_map(|sub| sub.team.mcp_wanted())).collect()
    }

    /// The MCP servers that this team and those within it declare, by name.
    #[must_use]
    pub fn mcp_declared(&self) -> BTreeMap<&str, &McpServer> {
        let mut all: BTreeMap<_, _> = self.teams.iter().flat_map(|sub| sub.team.mcp_declared()).collect();
        all.extend(self.mcp.0.iter().map(|(name, server)| (name.as_str(), server)));
        all
    }

    /// The same as the usual JSON document, `mcpServers`.
    #[must_use]
    pub fn mcp_document(&self) -> Value {
        json!({ "mcpServers": self.mcp_declared() })
    }

    /// The tools that agents and tasks of this team are given.
    pub(crate) fn given_tools(&self) -> impl Iterator<Item = &GivenTool> {
        let chats = std::iter::once(&self.chat).chain(self.chats.iter().map(|inner| &inner.chat));
        let for_tasks = chats.flat_map(|chat| chat.pattern.tasks()).flat_map(|task| &task.tools);
        self.agents.iter().flat_map(|agent| &agent.tools).chain(for_tasks)
    }
}
