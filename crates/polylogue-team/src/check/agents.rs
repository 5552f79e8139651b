//! Agents: no key without effect, and nested chats that are chats.

use std::collections::{BTreeSet, HashMap};

use polylogue::agents::tooling::{ToolCalling, ToolHistory};
use polylogue::tools::approval::is_refusal;
use polylogue::tools::results::LargeResults;
use polylogue_config::At;
use polylogue_core::{Money, StoredResult};

use super::approval::{is_asked_about, tasks_of};
use crate::agent::{Agent, ModelKeys};
use crate::chat::check_author;
use crate::codes;
use crate::diagnostic::Report;
use crate::limits::OnLimit;
use crate::nested_chats::NestedContext;
use crate::outline::{Outline, Participant};
use crate::pattern::Pattern;
use crate::source::Span;
use crate::team::Team;
use crate::tooling::{ToolEntry, check_examples};

pub(super) fn check(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    for agent in outline.agents() {
        if let Some(keys) = agent.model() {
            check_tools(keys, report);
            check_form(keys, report);
            warn_of_costs(team, agent, keys, report);
        }
        check_command(agent, report);
        check_limits(team, agent, report);
        check_usage(team, agent, report);
        check_nested(outline, agent, report);
        check_default_answer(team, agent, report);
    }
    check_ceiling(team, report);
    if !report.failed() {
        warn_of_silence(outline, report);
        warn_of_handoffs(team, outline, report);
    }
}

/// Reports tools that are both executed by the agent and suggested to others, or given twice.
fn check_tools(keys: &ModelKeys, report: &mut Report<'_>) {
    let own = keys.tools.iter().filter_map(|given| Some((&given.span, given, given.own()?)));
    let own = own.map(|(at, given, own)| ("tools", own.tool.as_str(), at, Some(&given.value)));
    let suggested =
        keys.suggests_tools.iter().map(|name| ("suggests_tools", name.as_str(), &name.span, None));
    let mut seen: HashMap<&str, (&str, Option<&ToolEntry>)> = HashMap::new();
    for (key, name, at, given) in own.chain(suggested).filter(|(_, name, ..)| !name.is_empty()) {
        match seen.insert(name, (key, given)) {
            Some((first, _)) if first != key => {
                let hint = "`tools` are run by the agent itself, `suggests_tools` by another agent";
                report.error_with_hint(at, format!("`{name}` is already in `{first}`"), hint);
            }
            // The reader reports equal items.
            Some((_, first)) if first != given => {
                report.error(at, format!("`{name}` is already in `{key}`"));
            }
            _ => {}
        }
    }
}

/// Warns of tools that are never called: a call can cost more than the run or the agent may.
fn warn_of_costs(team: &Team, agent: &Agent, keys: &ModelKeys, report: &mut Report<'_>) {
    if team.limits.on_limit == OnLimit::Ask {
        return;
    }
    let of_run = team.limits.usage.cost.map(|limit| (limit, "the run".to_owned()));
    let own = agent.limits.cost.map(|limit| (limit, format!("`{}`", agent.name)));
    for given in keys.tools.iter() {
        let Some((cost, what)) = most_of(team, given) else { continue };
        let reached = [&of_run, &own].into_iter().flatten().find(|(limit, _)| cost > *limit);
        if let Some((limit, whose)) = reached {
            let [cost, limit] = [cost, *limit].map(Money::dollars);
            let message = format!(
                "a call of {what} can cost {cost}, more than {whose} may ({limit}): it is never made"
            );
            let hint = "raise the limit on cost, or lower `max_cost` if a call costs less";
            report.warning(codes::NO_EFFECT, &given.span, message, hint);
        }
    }
}

/// The most that a call of a tool can cost in dollars, if that is declared, and the name of the tool.
fn most_of(team: &Team, tool: &ToolEntry) -> Option<(f64, String)> {
    let name = match tool {
        ToolEntry::Mcp(tools) => return Some((tools.max_cost?, format!("a tool of `{}`", *tools.mcp))),
        ToolEntry::Own(own) => own.tool.as_str(),
    };
    let command = team.commands.iter().find(|command| command.name == name);
    let call = team.calls.iter().find(|call| call.name == name);
    let service = team.openapi.iter().find(|(service, document)| {
        *service == name || document.operations.iter().any(|operation| operation.name == name)
    });
    let declared = command.map(|command| command.max_cost).or_else(|| call.map(|call| call.max_cost));
    let most = declared.or_else(|| service.map(|(_, document)| document.max_cost)).flatten();
    Some((most?, format!("`{name}`")))
}

/// Reports conflicts between output schema and tool calling.
fn check_form(keys: &ModelKeys, report: &mut Report<'_>) {
    check_examples(&keys.tools, report);
    if let (Some(_), Some(schema)) = (&keys.output_schema, &keys.parameters.schema) {
        let hint = "remove `schema`: `output_schema` is sent to the model if it supports schemas, and every reply is checked";
        report.error_with_hint(schema.key(), "`output_schema` already sets the schema", hint);
    }
    if *keys.tool_calling == ToolCalling::Native && *keys.tool_history == ToolHistory::Full {
        let hint = "native calls and their results always stay in the history; use `tool_calling: text`";
        report.error_with_hint(
            keys.tool_history.key(),
            "`tool_history: full` applies only to prompted tool calls",
            hint,
        );
    }
}

fn check_command(agent: &Agent, report: &mut Report<'_>) {
    if *agent.clear_command && !agent.asks_person() {
        let hint = "a person gives the command: add `human_input: always`, or remove `clear_command`";
        report.error_with_hint(
            agent.clear_command.key(),
            format!("no person is asked for `{}`", agent.name),
            hint,
        );
    }
}

/// Warns of tool limits of agents without tools, and reports those with which no result can be stored.
fn check_limits(team: &Team, agent: &Agent, report: &mut Report<'_>) {
    let Some(at) = agent.tool_limits.given() else { return };
    if agent.tool_limits.stored().is_some() {
        check_stored(team, agent, at, report);
    }
    let of_model = agent.model().is_some_and(|keys| !keys.tools.is_empty() || keys.memory.given().is_some());
    let own = of_model || !agent.executes_tools.is_empty() || agent.runs_output_blocks.is_some();
    if !own && !tasks_of(team, &agent.name).any(|task| task.tools.given().is_some()) {
        let hint =
            "give it `tools` or `executes_tools`; code that it executes has a `timeout` in `code_execution`";
        report.warning(codes::NO_EFFECT, at, format!("`{}` has no tools to limit", agent.name), hint);
    }
}

/// Reports why large results of `agent` cannot be stored.
fn check_stored(team: &Team, agent: &Agent, at: &Span, report: &mut Report<'_>) {
    let least = LargeResults::MIN_ABOVE;
    if usize::try_from(agent.tool_limits.max_output_bytes).is_ok_and(|bytes| bytes < least) {
        let message = "`large_results: store` needs space for the beginning of a result";
        report.error_with_hint(at, message, format!("set `max_output_bytes` to {least} or more"));
    }
    let reader = StoredResult::READER;
    if team.commands.iter().any(|command| command.name == reader) {
        let hint = format!("give the command another name than `{reader}`");
        report.error_with_hint(at, format!("`large_results: store` adds a tool `{reader}`"), hint);
    }
}

/// Warns of limits of agents that call no model, and of limits that the run reaches first.
fn check_usage(team: &Team, agent: &Agent, report: &mut Report<'_>) {
    let Some(at) = agent.limits.given() else { return };
    if agent.model().is_none() && agent.nested_chats.is_empty() {
        let hint = "limits count model calls: remove `limits`, or set them where a model is called";
        report.warning(codes::NO_EFFECT, at, format!("`{}` calls no model", agent.name), hint);
    }
    if let Some(key) = team.limits.usage.first_below(&agent.limits) {
        let hint = "an agent can use no more than the whole run: set less, or remove it";
        let message = format!("`limits.{key}` of `{}` is more than that of the whole run", agent.name);
        report.warning(codes::NO_EFFECT, at, message, hint);
    }
}

/// Warns of a ceiling that a limit of the run is not below: no person is asked there.
fn check_ceiling(team: &Team, report: &mut Report<'_>) {
    let Some(at) = team.limits.ceiling.given() else { return };
    if let Some(key) = team.limits.usage.first_not_below(&team.limits.ceiling) {
        let message =
            format!("`limits.{key}` is not below `limits.ceiling.{key}`: no person is asked to raise it");
        report.warning(codes::NO_EFFECT, at, message, "set a higher ceiling, or remove it");
    }
}

/// Warns of a default answer of an agent that asks no person, and of one that approves: it does not count. The user's rules
/// can require approval of any call and any code.
fn check_default_answer(team: &Team, agent: &Agent, report: &mut Report<'_>) {
    let Some(answer) = &agent.default_answer else { return };
    let of_model = agent.model().is_some_and(|keys| {
        let has_tools = !keys.tools.is_empty() || !keys.agent_tools.is_empty() || !keys.handoffs.is_empty();
        has_tools || keys.memory.given().is_some() || keys.reasoning.is_some()
    });
    let acts = of_model || agent.replies_otherwise() || agent.approval.is_some();
    let selects = team.checked_chats().any(|(_, chat)| chat.pattern.human_selector() == Some(&agent.name));
    let has_tasks = || tasks_of(team, &agent.name).any(|task| task.tools.given().is_some());
    let asks = agent.asks_person() || selects;
    if !asks && !acts && !has_tasks() {
        let hint = "add `human_input: always`, or remove `default_answer`";
        report.warning(codes::NO_EFFECT, answer.key(), format!("`{}` asks no person", agent.name), hint);
    } else if !is_refusal(&answer.text) && (!asks || is_asked_about(team, agent)) {
        let message =
            format!("the default answer of `{}` counts for no approval: it does not reject", agent.name);
        let hint = "write `no` or `exit`: nothing is approved because a person has not answered in time";
        report.warning(codes::NO_EFFECT, answer.key(), message, hint);
    }
}

fn check_nested(outline: &Outline<'_>, agent: &Agent, report: &mut Report<'_>) {
    for nested in &agent.nested_chats {
        match outline.participant(&nested.chat) {
            None | Some(Participant::Chat(_)) => {}
            Some(other) if nested.chat.ok => {
                let hint = "name one of `chats`; it can have a single participant";
                let message = format!("the {} `{}` is not a chat", other.noun(), nested.chat);
                report.error_with_hint(&nested.chat.span, message, hint);
            }
            Some(_) => {}
        }
        if let NestedContext::Reflect(reflect) = &nested.context {
            check_author(&reflect.by, outline, report);
        }
    }
}

fn warn_of_silence(outline: &Outline<'_>, report: &mut Report<'_>) {
    for agent in outline.agents().filter(|agent| agent.model().is_none()) {
        if !agent.asks_person() && !agent.replies_otherwise() {
            let message = format!("`{}` has nothing to reply with", agent.name);
            let hint = "give it `default_reply`, `executes_tools`, `nested_chats` or `human_input`";
            report.warning(codes::NO_REPLY, &agent.name.span, message, hint);
        }
    }
}

fn warn_of_handoffs(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    let chats = team.checked_chats().filter(|(_, chat)| matches!(chat.pattern, Pattern::Handoffs(_)));
    let handed: BTreeSet<&At<_>> = chats.flat_map(|(_, chat)| chat.everyone()).collect();
    for agent in outline.agents().filter(|agent| !handed.contains(&agent.name)) {
        let given: Option<&Span> = agent.model().and_then(|keys| keys.handoffs.given());
        if let Some(at) = given {
            let hint = "add it to a chat with the pattern `handoffs`, or remove `handoffs`";
            let message = format!("`{}` takes part in no chat with the pattern `handoffs`", agent.name);
            report.warning(codes::NO_EFFECT, at, message, hint);
        }
    }
}
