//! Sandbox, commands and agent tools: what is named is there, and what is given fits together.

use std::collections::{HashMap, HashSet};

use polylogue::policies::handoff::Handoff;
use polylogue::tools::background::TASK_TOOLS;
use polylogue_config::At;
use polylogue_core::Name;
use polylogue_tools::code::Sandbox;
use polylogue_tools::command::{Command, Declaration, Words};

use crate::agent::{Agent, ModelKeys};
use crate::built_in::{FILES, SET_STATE, known_tools, of_one_chat};
use crate::chat::Chat;
use crate::codes;
use crate::diagnostic::Report;
use crate::outline::{Outline, Participant};
use crate::source::Span;
use crate::team::Team;
use crate::tooling::{NamedTool, ToolEntry};
use crate::working::{base_name, tool_of};

pub(super) fn check(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    team.sandbox.check(report);
    check_commands(team, report);
    check_state_keys(team, report);
    for agent in outline.agents() {
        check_files(agent, report);
        check_scopes(agent, report);
        if let Some(keys) = agent.model() {
            check_agent_tools(agent, keys, report);
        }
    }
    check_ways(outline, report);
}

/// Commands have names of their own. Whether they can be built is checked if there are no other mistakes.
fn check_commands(team: &Team, report: &mut Report<'_>) {
    if team.commands.is_empty() {
        return;
    }
    let mut seen = HashSet::new();
    for command in team.commands.iter().filter(|command| !command.name.is_empty()) {
        let name = command.name.as_str();
        if report.full() {
            return;
        }
        if name == FILES || known_tools().iter().any(|spec| spec.name == name) {
            report.error(&command.span, format!("a tool `{name}` already exists"));
        } else if !seen.insert(name) {
            report.error(&command.span, format!("a command `{name}` already exists"));
        }
    }
}

/// The tools that an agent is given as its own.
fn own_tools(keys: &ModelKeys) -> impl Iterator<Item = &NamedTool> {
    keys.tools.iter().filter_map(|given| given.own())
}

/// `files` stands for several tools.
fn check_files(agent: &Agent, report: &mut Report<'_>) {
    let run: Vec<(&str, &Span)> =
        agent.executes_tools.iter().map(|run| (run.tool.as_str(), &run.tool.span)).collect();
    check_list(&run, report);
    let Some(keys) = agent.model() else { return };
    let name = |given: &ToolEntry| given.own().map(|own| own.tool.value.clone()).unwrap_or_default();
    let names: Vec<(String, &Span)> = keys.tools.iter().map(|given| (name(given), &given.span)).collect();
    check_list(&names.iter().map(|(name, at)| (name.as_str(), *at)).collect::<Vec<_>>(), report);
    let suggested: Vec<(&str, &Span)> =
        keys.suggests_tools.iter().map(|name| (name.as_str(), &name.span)).collect();
    check_list(&suggested, report);
    for own in own_tools(keys).filter(|own| *own.tool == FILES) {
        let prompted = [
            own.mandatory.given(),
            own.examples.given(),
            own.max_errors.given(),
            own.max_call_errors.given(),
            own.scope.as_ref().map(|scope| scope.key()),
        ];
        for at in prompted.into_iter().flatten() {
            let message = format!("`{FILES}` stands for several tools");
            report.error_with_hint(at, message, "name the one that is meant, such as `read_file`");
        }
    }
}

fn check_list(tools: &[(&str, &Span)], report: &mut Report<'_>) {
    if !tools.iter().any(|(name, _)| *name == FILES) {
        return;
    }
    for (name, at) in tools.iter().filter(|(name, _)| name.ends_with("_file") || name.ends_with("_files")) {
        report.error(at, format!("`{name}` is already included in `{FILES}`"));
    }
}

/// Only one tool sets keys of the state.
fn check_state_keys(team: &Team, report: &mut Report<'_>) {
    let own = team.given_tools().filter_map(ToolEntry::own);
    for own in own.filter(|own| own.tool.ok && *own.tool != SET_STATE) {
        if let Some(at) = own.keys.given() {
            let hint = format!("`{SET_STATE}` has `keys`; leave them out here");
            report.error_with_hint(at, format!("`{}` sets no keys of the state", own.tool), hint);
        }
    }
}

/// Only tools that keep state have a `scope`.
fn check_scopes(agent: &Agent, report: &mut Report<'_>) {
    let own = agent.model().into_iter().flat_map(own_tools).map(|own| (&own.tool, &own.scope));
    let blocks = agent.runs_output_blocks.iter().flat_map(|blocks| &blocks.tools);
    let run = agent.executes_tools.iter().chain(blocks).map(|run| (&run.tool, &run.scope));
    for (tool, scope) in own.chain(run).filter(|(tool, _)| tool.ok && of_one_chat(tool).is_none()) {
        if let Some(scope) = scope {
            let hint = "`set_state` and `chess` have a `scope`; leave it out here";
            let message = format!("`{tool}` keeps no state that could belong to a chat");
            report.error_with_hint(scope.key(), message, hint);
        }
    }
}

/// Reports agent tools that are duplicate or the agent itself.
fn check_agent_tools(agent: &Agent, keys: &ModelKeys, report: &mut Report<'_>) {
    let own = own_tools(keys).map(|own| own.tool.value.clone());
    let mut seen: HashSet<String> = own.chain(handoffs(keys)).collect();
    for given in keys.agent_tools.iter().filter(|given| given.who.ok) {
        if report.full() {
            return;
        }
        if given.who == agent.name {
            report.error(&given.who.span, format!("`{}` would ask itself", given.who));
        }
        let (tool, at) = (tool_of(given), given.tool.as_ref().map_or(&given.who.span, |tool| &tool.span));
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if tool.len() > 64 || !tool.chars().all(is_legal) {
            let hint = "a tool has a name of at most 64 ASCII letters, digits, `_` and `-`";
            report.error_with_hint(at, format!("no tool can be called `{tool}`"), hint);
        }
        if !seen.insert(tool.clone()) {
            let hint = "give one of them another name with `tool`";
            report.error_with_hint(at, format!("`{}` already has a tool `{tool}`", agent.name), hint);
        }
    }
    if let Some(given) = keys.agent_tools.iter().find(|given| given.background) {
        for tool in TASK_TOOLS.into_iter().filter(|tool| seen.contains(*tool)) {
            let message =
                format!("`{}` already has a tool `{tool}`, which background tasks need", agent.name);
            report.error_with_hint(&given.who.span, message, "give that tool another name");
        }
    }
}

/// Warns where the result of a background task can come after the last turn of the agent that started it.
pub(super) fn check_background(chat: &Chat, outline: &Outline<'_>, report: &mut Report<'_>) {
    if chat.takes_follow_ups() {
        return;
    }
    for who in chat.everyone() {
        let agent = outline.participant(who).and_then(Participant::agent);
        let tools = agent.and_then(Agent::model).into_iter().flat_map(|keys| keys.agent_tools.iter());
        for tool in tools.filter(|tool| tool.background) {
            let message = format!("`{who}` may never see the result of `{}`", tool.who);
            let hint = "here it has no turn for results that come last: ask it to call `wait_for_task`, or remove `background`";
            report.warning(codes::UNSEEN_RESULT, &tool.who.span, message, hint);
        }
    }
}

/// The tools by which an agent hands over.
pub(super) fn handoffs(keys: &ModelKeys) -> impl Iterator<Item = String> + '_ {
    keys.handoffs.iter().map(|to| to.tool_name(Handoff::PREFIX))
}

/// Every way from one who asks to one who is asked is its own agent.
fn check_ways(outline: &Outline<'_>, report: &mut Report<'_>) {
    const MOST: usize = 500;
    let asked = |keys: &'_ ModelKeys| keys.agent_tools.iter().map(|tool| tool.who.value.clone()).collect();
    let asks: HashMap<&Name, Vec<Name>> =
        outline.agents().filter_map(|agent| Some((&agent.name.value, asked(agent.model()?)))).collect();
    for agent in outline.agents() {
        let mut ways = 0;
        count(&asks, &mut vec![&agent.name.value], &mut ways, MOST);
        let given = agent.model().and_then(|keys| keys.agent_tools.given());
        if let Some(at) = given.filter(|_| ways > MOST) {
            let message =
                format!("`{}` and those it asks can ask one another in more than {MOST} ways", agent.name);
            return report.error(at, message);
        }
    }
}

fn count<'t>(asks: &'t HashMap<&Name, Vec<Name>>, around: &mut Vec<&'t Name>, ways: &mut usize, most: usize) {
    let next = around.last().and_then(|who| asks.get(*who)).into_iter().flatten();
    for who in next {
        *ways += 1;
        if *ways > most || around.contains(&who) {
            continue;
        }
        around.push(who);
        count(asks, around, ways, most);
        around.pop();
    }
}

/// Reports commands that cannot be built, and unused ones.
pub(super) fn check_declared(team: &Team, report: &mut Report<'_>) {
    for command in &team.commands {
        if let Err(error) = Command::new(command.value.clone(), Sandbox::enclosed("work")) {
            report.error(&command.span, error.to_string());
        } else if !team.names_tool(&command.name) {
            let hint = "name it among the `tools` of an agent, or leave it out";
            report.warning(
                codes::UNUSED,
                &command.span,
                format!("no agent has the command `{}`", command.name),
                hint,
            );
        }
        check_scripts(command, team, report);
    }
}

/// What the names of scripts end with.
const SCRIPTS: [&str; 8] = [".py", ".sh", ".js", ".mjs", ".rb", ".pl", ".R", ".lua"];

/// Warns of scripts that a command names and the team does not bring along: they are not in the work directory.
fn check_scripts(command: &At<Declaration>, team: &Team, report: &mut Report<'_>) {
    let is_script = |word: &&str| {
        let is_plain = !word.starts_with(['/', '-']) && !word.contains('{');
        is_plain && (word.starts_with("./") || SCRIPTS.iter().any(|ending| word.ends_with(ending)))
    };
    let words = command.value.command.iter().flat_map(|words| match words {
        Words::One(word) => std::slice::from_ref(word),
        Words::When { words, .. } => words.as_slice(),
    });
    for word in words.map(String::as_str).filter(is_script) {
        let path = word.trim_start_matches("./");
        if team.files.iter().any(|file| file.name() == path) {
            continue;
        }
        let name = base_name(path);
        let hint = match team.files.iter().any(|file| file.name() == name) {
            true => format!("files have no folders there: write `{name}`"),
            false => format!(
                "add `files: [{path}]` to the team, not to the command, or run with `--dir` and a folder that has it"
            ),
        };
        let message = format!(
            "the command `{}` needs `{word}`, which is not among the `files` of the team",
            command.name
        );
        report.warning(codes::MISSING_FILE, &command.span, message, hint);
    }
}
