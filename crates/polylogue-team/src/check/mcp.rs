//! MCP servers: they are valid, hold no secret, and exist for the agents with their tools.

use std::collections::{BTreeMap, HashSet};

use polylogue_config::{At, Config as _};
use polylogue_mcp::Servers;
use serde_json::json;

use crate::agent::Agent;
use crate::codes;
use crate::diagnostic::Report;
use crate::mcp::McpServer;
use crate::secret::{is_secret_name, looks_like_key};
use crate::source::Span;
use crate::suggest;
use crate::team::Team;
use crate::tooling::ToolEntry;

/// Reports servers of the same name in teams of other files.
pub(super) fn check_teams(team: &Team, teams: &[Option<Team>], report: &mut Report<'_>) {
    let own = |name: &str| team.mcp.servers().get(name).is_some_and(|server| server.given().is_some());
    let mut seen: BTreeMap<&str, (&McpServer, &str)> = BTreeMap::new();
    for (sub, team) in team.teams.iter().zip(teams) {
        let Some(team) = team else { continue };
        for (name, server) in team.mcp_declared() {
            let (first, whose) = *seen.entry(name).or_insert((server, team.name.as_str()));
            let whose = if own(name) { "this file".to_owned() } else { format!("the team `{whose}`") };
            if own(name) || first != server {
                let message =
                    format!("this team has an MCP server `{name}`, and {whose} another of that name");
                report.error_with_hint(&sub.file.span, message, "give one of them another name");
            }
        }
    }
}

/// Reports invalid and unused servers, and tools of unknown servers.
pub(super) fn check_built(team: &Team, report: &mut Report<'_>) {
    let (wanted, declared) = (team.mcp_wanted(), team.mcp_declared());
    for (name, server) in team.mcp.servers() {
        let at = server.given().unwrap_or(&team.mcp.span);
        check_server(name, server, at, report);
        if !wanted.contains(name.as_str()) && server.given().is_some() {
            let hint = format!("add `{{mcp: {name}}}` to the `tools` of an agent, or leave it out");
            report.warning(codes::UNUSED, at, format!("no agent has tools of the MCP server `{name}`"), hint);
        }
    }
    for keys in team.agents.iter().filter_map(Agent::model) {
        check_given(&keys.tools, &declared, report);
    }
    for task in team.all_chats().flat_map(|(_, chat)| chat.pattern.part().tasks()) {
        check_given(&task.tools, &declared, report);
    }
}

fn check_server(name: &str, server: &McpServer, at: &Span, report: &mut Report<'_>) {
    let document = json!({"mcpServers": {name: server.write()}}).to_string();
    if let Err(error) = Servers::with_variables(&document, |_| None) {
        report.error(at, error.to_string());
    }
    for (key, text) in server.env.iter().chain(&server.headers) {
        if !text.contains("${") && !text.is_empty() && (is_secret_name(key) || looks_like_key(text)) {
            let message = format!("the MCP server `{name}` has a secret, `{key}`, in a file");
            let hint = "write `${NAME}` instead, the name of an environment variable that has it";
            report.error_with_hint(at, message, hint);
        }
    }
    let others = server.args.iter().chain(&server.url);
    if others.into_iter().any(|text| looks_like_key(text)) {
        let hint = "write `${NAME}` instead, the name of an environment variable that has it";
        let message = format!("the MCP server `{name}` has a secret in a file");
        report.error_with_hint(at, message, hint);
    }
}

/// The tools of servers in one list. `declared` are the servers that there are, by name.
fn check_given(tools: &[At<ToolEntry>], declared: &BTreeMap<&str, &McpServer>, report: &mut Report<'_>) {
    let mut seen = HashSet::new();
    for given in tools.iter().filter_map(|given| given.mcp()).filter(|given| given.mcp.ok) {
        let name = given.mcp.as_str();
        // A file without servers uses those of the command line.
        if !declared.is_empty() && !declared.contains_key(name) && !report.full() {
            let hint = suggest::hint(name, declared.keys().copied());
            report.error_with_hint(&given.mcp.span, format!("there is no MCP server `{name}`"), hint);
        }
        if !seen.insert(name) {
            let hint = "put them together, in one `include` or one `exclude`";
            report.error_with_hint(&given.mcp.span, format!("tools of `{name}` are already listed"), hint);
        }
        if let (Some(_), Some(exclude)) = (given.include.given(), given.exclude.given()) {
            let hint = "remove one of them: `include` names the tools to use, `exclude` those not to use";
            report.error_with_hint(exclude, "`include` and `exclude` cannot both be given", hint);
        }
    }
}
