//! MCP servers of a team file, and of the document that it names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use polylogue_config::At;
use serde::Deserialize;
use serde_json::Value;

use super::Loader;
use crate::diagnostic::Report;
use crate::mcp::{McpServer, McpServers};
use crate::team::Team;

/// How many files of the folder of a team its MCP servers can name.
const MOST_PROGRAMS: usize = 64;

/// What a document says of a server that is for programs like this one.
const KEYS: [&str; 6] = ["command", "args", "env", "cwd", "url", "headers"];

impl Loader<'_> {
    /// Gives `team` the servers of the document that it names, and its servers the folder that they run in: that of the team
    /// file, wherever the team is run. Nothing is started.
    pub(super) fn put_servers(&self, team: &mut Team, report: &mut Report<'_>) {
        if let McpServers::File(named) = &team.mcp.value {
            match self.work_file(named).and_then(|text| of_document(&text)) {
                Ok(servers) => team.mcp.value = McpServers::Servers(servers),
                Err(why) if team.mcp.ok => {
                    report.error(&team.mcp.span, format!("no MCP servers are in `{named}`: {why}"));
                }
                Err(_) => {}
            }
        }
        let Some(folder) = self.folder() else { return };
        for server in team.mcp.value.servers_mut().filter(|server| server.command.is_some()) {
            let own = server.cwd.as_deref().unwrap_or_default();
            // A variable is known only when the server is started.
            if !own.starts_with("${") {
                let cwd = Path::new(&folder).join(own);
                server.cwd = Some(cwd.components().as_path().to_string_lossy().into_owned());
            }
        }
    }

    /// Notes the programs below the folder of the team file that its servers are made of, as far as they can be read. More of them than
    /// are read would not be part of what the user trusts, so that is an error.
    pub(super) fn note_programs(&self, team: &Team, report: &mut Report<'_>) {
        let servers = team.mcp.servers().values();
        let words = servers.flat_map(|server| server.command.iter().chain(&server.args));
        let (mut seen, mut count) = (BTreeSet::new(), 0);
        for word in words.filter(|word| seen.insert(word.as_str())) {
            // What is elsewhere, missing or too large is not of the team.
            let Ok((_, path)) = self.below(word) else { continue };
            let Ok(bytes) = self.files.read(&path) else { continue };
            count += 1;
            if count > MOST_PROGRAMS {
                let message =
                    format!("MCP servers can name at most {MOST_PROGRAMS} files of the folder of a team");
                return report.error_with_hint(
                    &team.mcp.span,
                    message,
                    "name a folder, or one program that reads the others",
                );
            }
            self.contents.note(&path, &bytes);
        }
    }

    /// The folder of the file that is being read, by its whole path.
    pub(super) fn folder(&self) -> Option<String> {
        let (_, shown) = self.around.last()?;
        let folder = Path::new(shown).parent().unwrap_or(Path::new(""));
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        self.files.absolute(folder).to_str().map(str::to_owned)
    }
}

/// The servers of the usual document that are not disabled, each with what matters here.
fn of_document(text: &str) -> Result<BTreeMap<String, At<McpServer>>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Some(servers) = value.get("mcpServers").and_then(Value::as_object) else {
        return Err("it is not an object with `mcpServers`".into());
    };
    let is_on = |(_, server): &(&String, &Value)| server.get("disabled") != Some(&Value::Bool(true));
    let mut all = BTreeMap::new();
    for (name, server) in servers.iter().filter(is_on) {
        let Some(server) = server.as_object() else { return Err(format!("`{name}` is not an object")) };
        let kept = server.iter().filter(|(key, _)| KEYS.contains(&key.as_str()));
        let kept = Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect());
        let server =
            serde_json::from_value::<ServerOfDocument>(kept).map_err(|error| format!("`{name}`: {error}"))?;
        all.insert(name.clone(), McpServer::from(server).into());
    }
    Ok(all)
}

/// A server as a document has it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ServerOfDocument {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
}

impl From<ServerOfDocument> for McpServer {
    fn from(ServerOfDocument { command, args, env, cwd, url, headers }: ServerOfDocument) -> Self {
        Self { command, args, env, cwd, url, headers }
    }
}
