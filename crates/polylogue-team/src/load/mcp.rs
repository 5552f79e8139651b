//! MCP servers of a team file, and of the document that it names.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::Loader;
use crate::diagnostic::Report;
use crate::remote::McpServer;
use crate::yaml::{Data, Node};

/// What a document says of a server that is for programs like this one.
const KEYS: [&str; 6] = ["command", "args", "env", "cwd", "url", "headers"];

/// The servers of a file.
pub(super) struct Servers {
    /// Those of the document that it names, if it does.
    read: Option<Map<String, Value>>,
    /// Where its programs run.
    folder: Option<String>,
}

impl Loader<'_> {
    /// The servers of the document that `root` names, and where those of `root` run. Nothing is started.
    pub(super) fn mcp_servers(&self, root: &Node, report: &mut Report<'_>) -> Servers {
        let mcp = root.get("mcp");
        let read = match &mcp.data {
            Data::Text(named) => {
                let read = self.work_file(named).and_then(|text| of_document(&text));
                let wrong = |why| report.error(&mcp.span, format!("no MCP servers are in `{named}`: {why}"));
                read.map_err(wrong).ok()
            }
            _ => None,
        };
        Servers { read, folder: self.folder() }
    }

    /// Notes the programs below the folder of the team file that its servers are made of, as far as they can be read.
    pub(super) fn note_programs(&self, team: &Value) {
        let servers = team.get("mcp").and_then(Value::as_object).into_iter().flat_map(Map::values);
        for server in servers {
            let arguments = server.get("args").and_then(Value::as_array).into_iter().flatten();
            for word in server.get("command").into_iter().chain(arguments).filter_map(Value::as_str) {
                // What is elsewhere, missing or too large is not of the team.
                let _ = self.below(word).and_then(|(_, path)| self.read(&path).map_err(|error| error.why));
            }
        }
    }

    /// The folder of the file that is being read, by its whole path.
    fn folder(&self) -> Option<String> {
        let (_, shown) = self.around.last()?;
        let folder = Path::new(shown).parent().unwrap_or(Path::new(""));
        let folder = std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        folder.ok()?.to_str().map(str::to_owned)
    }
}

/// The servers of the usual document that are not disabled, each with what matters here.
fn of_document(text: &str) -> Result<Map<String, Value>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Some(servers) = value.get("mcpServers").and_then(Value::as_object) else {
        return Err("it is no object with `mcpServers`".into());
    };
    let is_on = |(_, server): &(&String, &Value)| server.get("disabled") != Some(&Value::Bool(true));
    let mut all = Map::new();
    for (name, server) in servers.iter().filter(is_on) {
        let Some(server) = server.as_object() else { return Err(format!("`{name}` is no object")) };
        let kept = server.iter().filter(|(key, _)| KEYS.contains(&key.as_str()));
        let kept = Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect());
        serde_json::from_value::<McpServer>(kept.clone()).map_err(|error| format!("`{name}`: {error}"))?;
        all.insert(name.clone(), kept);
    }
    Ok(all)
}

/// Puts servers where the type of a team has them, each with the folder that it runs in: that of the team file, wherever the
/// team is run.
pub(super) fn put_servers(value: &mut Value, Servers { read, folder }: Servers) {
    let Some(team) = value.as_object_mut().filter(|team| team.contains_key("mcp")) else { return };
    if let Some(read) = read {
        team.insert("mcp".to_owned(), Value::Object(read));
    }
    let servers = team.get_mut("mcp").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
    for server in servers.filter_map(Value::as_object_mut).filter(|server| server.contains_key("command")) {
        let Some(folder) = &folder else { continue };
        let own = server.get("cwd").and_then(Value::as_str).unwrap_or_default();
        // A variable is known only when the server is started.
        if !own.starts_with("${") {
            let cwd = Path::new(folder).join(own);
            server.insert("cwd".to_owned(), json!(cwd.components().as_path().to_string_lossy()));
        }
    }
}
