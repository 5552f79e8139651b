//! Programs and those who are asked: what is named is there, and what is given fits together.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use polylogue::handoff::Handoff;
use polylogue_core::{Name, Tool as _};
use polylogue_tools::code::Sandbox;
use polylogue_tools::command::Command;

use super::{Kind, Outline, Participant, name};
use crate::build::{FILES, known_tools, of_one_chat};
use crate::diagnostic::Report;
use crate::team::Team;
use crate::yaml::Node;

/// Keys of prompted tools; `files` stands for several tools and has none.
const TAUGHT: [&str; 5] = ["mandatory", "examples", "max_errors", "max_call_errors", "scope"];

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    check_sandbox(outline.root.get("sandbox"), report);
    check_commands(outline.root, report);
    for participant in &outline.participants {
        if matches!(participant.kind, Kind::Agent | Kind::Proxy | Kind::Person) {
            check_files(participant.node, report);
            check_scopes(participant.node, report);
            check_consults(participant, report);
        }
    }
    check_ways(outline, report);
}

fn check_sandbox(sandbox: &Node, report: &mut Report<'_>) {
    let place = sandbox.get("backend").text().unwrap_or("native");
    let contained = matches!(place, "docker" | "podman");
    match sandbox.entry("image") {
        Some(image) if !contained => {
            let hint = "add `backend: docker` or `backend: podman`, or leave it out";
            report.error_with_hint(&image.key_span, "there is an `image` for containers only", hint);
        }
        None if contained => {
            let hint = "add `image`, such as `image: python:3.12-slim`";
            report.error_with_hint(
                &sandbox.get("backend").span,
                format!("`backend: {place}` needs an image"),
                hint,
            );
        }
        _ => {}
    }
    if let Some(network) = sandbox.entry("network").filter(|_| place != "native") {
        let message =
            format!("hosts are let through for enclosed programs only, not with `backend: {place}`");
        report.error_with_hint(&network.key_span, message, "leave out `network`, or `backend`");
    }
    if let Some(readable) = sandbox.entry("readable").filter(|_| place == "none") {
        let message = "with `backend: none` programs can read everything anyway";
        report.error_with_hint(&readable.key_span, message, "leave out `readable`, or `backend`");
    }
    for path in sandbox.get("readable").items() {
        if path.text().is_some_and(|text| !text.is_empty() && !Path::new(text).is_absolute()) {
            let hint = "write the whole path, or bring the file along with `files`";
            report.error_with_hint(&path.span, "this path does not begin at the root", hint);
        }
    }
}

/// Commands have names of their own. Whether they are whole is found out when there are no other mistakes.
fn check_commands(root: &Node, report: &mut Report<'_>) {
    let commands = root.get("commands").items();
    if commands.is_empty() {
        return;
    }
    let known = known_tools();
    let mut seen = HashSet::new();
    for command in commands {
        let at = command.get("name");
        let Some(text) = at.text().filter(|_| !report.full()) else { continue };
        if text == FILES || known.iter().any(|tool| tool.spec().name == text) {
            report.error(&at.span, format!("there is a tool `{text}` already"));
        } else if !seen.insert(text) {
            report.error(&at.span, format!("there is a command `{text}` already"));
        }
    }
}

/// `files` stands for several tools.
fn check_files(agent: &Node, report: &mut Report<'_>) {
    let named = |tool: &Node| tool.text() == Some(FILES) || tool.get("tool").text() == Some(FILES);
    for key in ["tools", "suggests_tools", "executes_tools"] {
        let tools = agent.get(key).items();
        if !tools.iter().any(named) {
            continue;
        }
        for tool in tools {
            let text = tool.text().or_else(|| tool.get("tool").text()).unwrap_or_default();
            if text.ends_with("_file") || text.ends_with("_files") {
                report.error(&tool.span, format!("`{text}` is among `{FILES}` already"));
            }
            for entry in TAUGHT.iter().filter_map(|key| tool.entry(key)).filter(|_| text == FILES) {
                let message = format!("`{FILES}` stands for several tools");
                let hint = "name the one that is meant, such as `read_file`";
                report.error_with_hint(&entry.key_span, message, hint);
            }
        }
    }
}

/// Only tools that keep state have a `scope`.
fn check_scopes(agent: &Node, report: &mut Report<'_>) {
    let lists =
        [agent.get("tools"), agent.get("executes_tools"), agent.get("runs_output_blocks").get("tools")];
    for tool in lists.into_iter().flat_map(Node::items) {
        let name = tool.get("tool").text().unwrap_or_default();
        if let Some(entry) = tool.entry("scope").filter(|_| !name.is_empty() && of_one_chat(name).is_none()) {
            let hint = "`set_state` and `chess` have a `scope`; leave it out here";
            report.error_with_hint(
                &entry.key_span,
                format!("`{name}` keeps no state that could belong to a chat"),
                hint,
            );
        }
    }
}

/// Reports agent tools that are unknown, duplicate or the agent itself.
fn check_consults(participant: &Participant<'_>, report: &mut Report<'_>) {
    let tools = participant.node.get("tools").items().iter();
    let mut seen: HashSet<String> = tools
        .filter_map(|tool| tool.text().or_else(|| tool.get("tool").text()).map(str::to_owned))
        .chain(handoffs(participant.node))
        .collect();
    for (who, at, consult) in consults(participant.node) {
        if report.full() {
            return;
        }
        if who == participant.name {
            report.error(&at.span, format!("`{who}` would ask itself"));
        }
        let (tool, at) = match consult.entry("tool") {
            Some(entry) => (entry.value.text().unwrap_or_default().to_owned(), &entry.value),
            None => (tool_name(who, ""), at),
        };
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if tool.len() > 64 || !tool.chars().all(is_legal) {
            let hint = "a tool has a name of at most 64 ASCII letters, digits, `_` and `-`";
            report.error_with_hint(&at.span, format!("no tool can be called `{tool}`"), hint);
        }
        if !seen.insert(tool.clone()) {
            let hint = "give one of them another name with `tool`";
            report.error_with_hint(
                &at.span,
                format!("`{}` has a tool `{tool}` already", participant.name),
                hint,
            );
        }
    }
}

/// The name of the tool that is called after `who`, behind `prefix`.
pub(super) fn tool_name(who: &str, prefix: &str) -> String {
    Name::new(who).map_or_else(|_| format!("{prefix}{who}"), |name| name.tool_name(prefix))
}

/// The tools by which an agent hands over.
pub(super) fn handoffs(agent: &Node) -> impl Iterator<Item = String> + '_ {
    agent.get("handoffs").items().iter().filter_map(|to| Some(tool_name(to.text()?, Handoff::PREFIX)))
}

/// Those whom an agent may ask, with where that is said.
pub(super) fn consults(agent: &Node) -> impl Iterator<Item = (&str, &Node, &Node)> {
    agent.get("agent_tools").items().iter().filter_map(|consult| {
        let at = if consult.text().is_some() { consult } else { consult.get("who") };
        Some((name(at)?, at, consult))
    })
}

/// Every way from one who asks to one who is asked is an agent of its own.
fn check_ways(outline: &Outline<'_>, report: &mut Report<'_>) {
    const MOST: usize = 500;
    let asks: HashMap<&str, Vec<&str>> = outline
        .participants
        .iter()
        .map(|participant| (participant.name, consults(participant.node).map(|(who, ..)| who).collect()))
        .collect();
    for participant in &outline.participants {
        let mut ways = 0;
        count(&asks, &mut vec![participant.name], &mut ways, MOST);
        if let Some(entry) = participant.node.entry("agent_tools").filter(|_| ways > MOST) {
            let message = format!(
                "`{}` and those it asks can ask one another in more than {MOST} ways",
                participant.name
            );
            return report.error(&entry.key_span, message);
        }
    }
}

fn count<'n>(asks: &HashMap<&str, Vec<&'n str>>, around: &mut Vec<&'n str>, ways: &mut usize, most: usize) {
    let next = around.last().and_then(|who| asks.get(who)).into_iter().flatten();
    for who in next {
        *ways += 1;
        if *ways > most || around.contains(who) {
            continue;
        }
        around.push(who);
        count(asks, around, ways, most);
        around.pop();
    }
}

/// Reports commands that cannot be built, and unused ones.
pub(super) fn check_declared(root: &Node, team: &Team, report: &mut Report<'_>) {
    let nodes = root.get("commands").items();
    for (declared, node) in team.commands.iter().zip(nodes) {
        if let Err(error) = Command::new(declared.clone(), Sandbox::enclosed("work")) {
            report.error(&node.get("name").span, error.to_string());
        } else if !team.names_tool(&declared.name) {
            let hint = "name it among the `tools` of an agent, or leave it out";
            let message = format!("no agent has the command `{}`", declared.name);
            report.warning(&node.get("name").span, message, hint);
        }
    }
}
