//! What MCP servers said of their tools when they were used first. A server can change what it tells models after you allowed
//! it: that is shown, and asked about, before a model reads it.

use polylogue::tools::approval::visible;
use polylogue_mcp::ToolDescription;
use polylogue_runtime::Prepared;
use polylogue_team::Grant;

use super::pin::Pin;
use super::trust_file::TrustFile;
use crate::args::Permits;
use crate::error::CliError;
use crate::prompt;
use crate::signals::Signals;
use crate::stderr::print_note_wrapped;

/// Who may be asked, and what was allowed.
#[derive(Clone, Copy)]
pub(crate) struct Consent<'a> {
    pub(crate) permits: &'a Permits,
    /// Whether there may be a person to ask.
    pub(crate) asks: bool,
}

/// Compares what the MCP servers of `prepared` say of their tools with what they said before, and keeps it. What a server says
/// first counts as allowed with the server.
///
/// # Errors
/// When a server says something else, and that is not allowed.
pub(crate) async fn check(prepared: &Prepared, asking: Consent<'_>) -> Result<(), CliError> {
    let (servers, described) = (prepared.servers().declared(), prepared.servers().described());
    if described.is_empty() {
        return Ok(());
    }
    let known = TrustFile::read()?.servers;
    let (mut fresh, mut changed) = (Vec::new(), Vec::new());
    let mut descriptions = Vec::new();
    for pin in Pin::all(servers, &described) {
        match known.iter().find(|before| before.server == pin.server) {
            None => fresh.push(pin),
            Some(before) => {
                let tools: Vec<&String> = pin.changes(before).collect();
                descriptions.extend(tools.iter().map(|tool| shown(&pin.name, tool, &described)));
                if !tools.is_empty() || pin.tools.len() != before.tools.len() {
                    changed.push(pin);
                }
            }
        }
    }
    // Where nothing can be kept, every first time is the first.
    let _ = if fresh.is_empty() { Ok(()) } else { TrustFile::pin(fresh) };
    let what = format!("the tool descriptions of MCP servers have changed:\n{}", descriptions.join("\n"));
    match descriptions.is_empty() || asking.permits.trust {
        true if changed.is_empty() => Ok(()),
        true => TrustFile::pin(changed),
        false if prepared.access().grants.contains(&Grant::Mcp) => {
            print_note_wrapped(&what);
            Ok(())
        }
        false => ask(what, changed, asking).await,
    }
}

async fn ask(what: String, changed: Vec<Pin>, asking: Consent<'_>) -> Result<(), CliError> {
    const CHOICES: &str = "`yes` allows it from now on, `once` for this run, `no` refuses";
    const HINT: &str = "if you trust it, add `--allow mcp` for this run, or `--trust` to remember it";
    if !asking.asks || !prompt::is_possible() {
        return Err(CliError::usage(what).hint(HINT));
    }
    let question = format!("{what}\n{CHOICES}");
    match prompt::choose(&question, &["yes", "once", "no"], &mut Signals::new()?).await? {
        Some("yes") => TrustFile::pin(changed),
        Some("once") => Ok(()),
        _ => Err(CliError::usage("the tools of the MCP servers are not trusted; nothing was run").hint(HINT)),
    }
}

/// A tool, and exactly what its server says of it.
fn shown(server: &str, tool: &str, described: &[ToolDescription]) -> String {
    let of = described.iter().find(|found| found.server == server && found.tool == tool);
    let spec = of.map(|found| (&*found.spec.description, found.spec.parameters.to_string()));
    let (description, parameters) = spec.unwrap_or_default();
    format!("  {}: {}: {} {}", visible(server), visible(tool), visible(description), visible(&parameters))
}
