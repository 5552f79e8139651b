//! What MCP servers said of their tools when they were used first. A server can change what it tells models after you allowed
//! it: that is shown, and asked about, before a model reads it.

use std::collections::BTreeMap;

use polylogue::tools::approval::visible;
use polylogue_mcp::Described;
use polylogue_runtime::Prepared;
use polylogue_team::Grant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::book::TrustFile;
use crate::args::Permits;
use crate::error::CliError;
use crate::prompt;
use crate::signals::Signals;
use crate::tell::tell_wrapped;

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
    fn all(servers: &Map<String, Value>, described: &[Described]) -> Vec<Self> {
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
    fn changes<'s>(&'s self, before: &'s Self) -> impl Iterator<Item = &'s String> {
        let is_same = |(tool, digest): &(&String, &String)| before.tools.get(*tool) == Some(digest);
        self.tools.iter().filter(move |said| !is_same(said)).map(|(tool, _)| tool)
    }
}

fn of_tool(tool: &Described) -> (String, String) {
    let said = json!([tool.spec.description, tool.spec.parameters]).to_string();
    (tool.tool.clone(), blake3::hash(said.as_bytes()).to_hex().to_string())
}

/// Values of variables and headers may be secrets, and are no part of it.
fn identity(name: &str, declared: Option<&Value>) -> String {
    let of = |key: &str| declared.and_then(|server| server.get(key)).cloned().unwrap_or_default();
    let server = json!([name, of("command"), of("args"), of("url")]).to_string();
    blake3::hash(server.as_bytes()).to_hex().to_string()
}

/// Who may be asked, and what was allowed.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) permits: &'a Permits,
    /// Whether there may be a person to ask.
    pub(crate) asks: bool,
}

/// Compares what the MCP servers of `prepared` say of their tools with what they said before, and keeps it. What a server says
/// first counts as allowed with the server.
///
/// # Errors
/// When a server says something else, and that is not allowed.
pub(crate) async fn check(prepared: &Prepared, asking: Asking<'_>) -> Result<(), CliError> {
    let (servers, described) = (prepared.servers().declared(), prepared.servers().described());
    if described.is_empty() {
        return Ok(());
    }
    let known = TrustFile::read()?.servers;
    let (mut fresh, mut changed) = (Vec::new(), Vec::new());
    let mut told = Vec::new();
    for pin in Pin::all(servers, &described) {
        match known.iter().find(|before| before.server == pin.server) {
            None => fresh.push(pin),
            Some(before) => {
                let tools: Vec<&String> = pin.changes(before).collect();
                told.extend(tools.iter().map(|tool| shown(&pin.name, tool, &described)));
                if !tools.is_empty() || pin.tools.len() != before.tools.len() {
                    changed.push(pin);
                }
            }
        }
    }
    // Where nothing can be kept, every first time is the first.
    let _ = if fresh.is_empty() { Ok(()) } else { TrustFile::pin(fresh) };
    let what = format!("what MCP servers say of their tools has changed:\n{}", told.join("\n"));
    match told.is_empty() || asking.permits.trust {
        true if changed.is_empty() => Ok(()),
        true => TrustFile::pin(changed),
        false if prepared.access().grants.contains(&Grant::Mcp) => {
            tell_wrapped(&what);
            Ok(())
        }
        false => ask(what, changed, asking).await,
    }
}

async fn ask(what: String, changed: Vec<Pin>, asking: Asking<'_>) -> Result<(), CliError> {
    const CHOICES: &str = "`yes` allows it from now on, `once` for this run, `no` refuses";
    const HINT: &str = "if you trust it, add `--allow mcp` for this run, or `--trust` to remember it";
    if !asking.asks || !prompt::is_possible() {
        return Err(CliError::usage(what).hint(HINT));
    }
    let question = format!("{what}\n{CHOICES}");
    match prompt::choose(&question, &["yes", "once", "no"], &mut Signals::new()?).await? {
        Some("yes") => TrustFile::pin(changed),
        Some("once") => Ok(()),
        _ => {
            Err(CliError::usage("the tools of the MCP servers are not trusted, and nothing was run")
                .hint(HINT))
        }
    }
}

/// A tool, and exactly what its server says of it.
fn shown(server: &str, tool: &str, described: &[Described]) -> String {
    let of = described.iter().find(|found| found.server == server && found.tool == tool);
    let spec = of.map(|found| (&*found.spec.description, found.spec.parameters.to_string()));
    let (description, parameters) = spec.unwrap_or_default();
    format!("  {}: {}: {} {}", visible(server), visible(tool), visible(description), visible(&parameters))
}
