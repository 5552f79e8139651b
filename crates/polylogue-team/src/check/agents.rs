//! Agents: each has the keys that its kind of reply needs, and no key without effect.

use std::collections::{HashMap, HashSet};

use super::approval::tasks_of;
use super::chats::{check_author, participants_of};
use super::{Kind, Outline, Participant, form, name};
use crate::diagnostic::Report;
use crate::yaml::{Data, Node};

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    for participant in &outline.participants {
        let node = participant.node;
        match participant.kind {
            Kind::Person | Kind::Proxy | Kind::Agent => {}
            Kind::Chat | Kind::Team => continue,
        }
        check_tools(node, report);
        check_form(node, report);
        check_command(participant, report);
        check_limits(outline, participant, report);
        check_nested(outline, node, report);
    }
    if !report.failed() {
        warn_of_silence(outline, report);
        warn_of_handoffs(outline, report);
    }
}

/// Reports tools that are both executed by the agent and suggested to others, or given twice.
fn check_tools(node: &Node, report: &mut Report<'_>) {
    let mut seen: HashMap<&str, (&str, bool)> = HashMap::new();
    for key in ["tools", "suggests_tools"] {
        for tool in node.get(key).items() {
            // A prompted tool is a mapping.
            let Some(text) = tool.text().or_else(|| tool.get("tool").text()) else { continue };
            match seen.insert(text, (key, tool.text().is_some())) {
                Some((first, _)) if first != key => {
                    let hint = "`tools` are run by the agent itself, `suggests_tools` by another agent";
                    report.error_with_hint(&tool.span, format!("`{text}` is in `{first}` already"), hint);
                }
                // The reader reports exact duplicates.
                Some((_, was_name)) if was_name != tool.text().is_some() => {
                    report.error(&tool.span, format!("`{text}` is in `{key}` already"));
                }
                _ => {}
            }
        }
    }
}

/// Reports conflicts between output schema and tool calling.
fn check_form(node: &Node, report: &mut Report<'_>) {
    let answers = node.entry("output_schema");
    form::check_schema(node.get("output_schema"), report);
    node.get("tools").items().iter().for_each(|tool| form::check_examples(tool, report));
    if let (Some(_), Some(schema)) = (answers, node.get("parameters").entry("schema")) {
        let hint = "remove `schema`: `output_schema` is sent to the model if it supports schemas, and every reply is checked";
        report.error_with_hint(&schema.key_span, "`output_schema` is the schema already", hint);
    }
    if let (Some("native"), Some(tool_history)) =
        (node.get("tool_calling").text(), node.entry("tool_history"))
        && tool_history.value.text() == Some("full")
    {
        let hint = "native calls and their results always stay in the history; use `tool_calling: text`";
        report.error_with_hint(
            &tool_history.key_span,
            "`tool_history: full` applies only to prompted tool calls",
            hint,
        );
    }
}

fn asks(node: &Node) -> bool {
    let human = matches!(node.get("human").data, Data::Bool(true));
    match node.get("human_input").text() {
        Some(mode) => mode != "never",
        None => human,
    }
}

fn check_command(participant: &Participant<'_>, report: &mut Report<'_>) {
    let entry = participant.node.entry("clear_command");
    let on = |node: &Node| matches!(node.data, Data::Bool(true));
    if let Some(entry) = entry.filter(|entry| on(&entry.value) && !asks(participant.node)) {
        let hint = "a person gives the command: add `human_input: always`, or remove `clear_command`";
        report.error_with_hint(
            &entry.key_span,
            format!("no person is asked for `{}`", participant.name),
            hint,
        );
    }
}

/// Reports tool limits of agents without tools.
fn check_limits(outline: &Outline<'_>, participant: &Participant<'_>, report: &mut Report<'_>) {
    let Some(entry) = participant.node.entry("tool_limits") else { return };
    let own = ["tools", "executes_tools", "runs_output_blocks", "memory"]
        .iter()
        .any(|key| participant.node.entry(key).is_some());
    if !own && !tasks_of(outline, participant.name).any(|task| task.entry("tools").is_some()) {
        let hint =
            "give it `tools` or `executes_tools`; code that it executes has a `timeout` in `code_execution`";
        report.warning(&entry.key_span, format!("`{}` has no tools to limit", participant.name), hint);
    }
}

fn check_nested(outline: &Outline<'_>, node: &Node, report: &mut Report<'_>) {
    for nested in node.get("nested_chats").items() {
        let chat = nested.get("chat");
        match name(chat).map(|who| (who, outline.participant(who).map(|participant| participant.kind))) {
            None | Some((_, Some(Kind::Chat))) => {}
            Some((who, Some(kind))) => {
                let hint = "name one of `chats`; it can have a single participant";
                report.error_with_hint(&chat.span, format!("the {kind} `{who}` is not a chat"), hint);
            }
            Some((_, None)) => {}
        }
        check_author(outline, nested.get("context").get("reflect"), report);
    }
}

fn warn_of_silence(outline: &Outline<'_>, report: &mut Report<'_>) {
    let replies = |node: &Node| {
        ["executes_tools", "code_execution", "runs_output_blocks", "nested_chats", "default_reply"]
            .iter()
            .any(|key| node.entry(key).is_some())
    };
    let mute = |participant: &&Participant<'_>| matches!(participant.kind, Kind::Proxy | Kind::Person);
    for participant in outline.participants.iter().filter(mute) {
        if !asks(participant.node) && !replies(participant.node) {
            let message = format!("`{}` has nothing to reply with", participant.name);
            let hint = "give it `default_reply`, `executes_tools`, `nested_chats` or `human_input`";
            report.warning(&participant.node.get("name").span, message, hint);
        }
    }
}

fn warn_of_handoffs(outline: &Outline<'_>, report: &mut Report<'_>) {
    let handed: HashSet<&str> = outline
        .chats()
        .filter(|(_, chat)| !chat.get("pattern").get("handoffs").is_null())
        .flat_map(|(_, chat)| participants_of(chat).map(|(who, _)| who))
        .collect();
    for participant in &outline.participants {
        if let Some(entry) = participant.node.entry("handoffs").filter(|_| !handed.contains(participant.name))
        {
            let hint = "add it to a chat with the pattern `handoffs`, or remove `handoffs`";
            let message = format!("`{}` takes part in no chat with the pattern `handoffs`", participant.name);
            report.warning(&entry.key_span, message, hint);
        }
    }
}
