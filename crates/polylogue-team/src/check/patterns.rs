//! Patterns: their names are participants, and their dependencies have no cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::chats::{check_takes_part, participants_of};
use super::{Kind, Outline, name, role_play, tasks};
use crate::diagnostic::Report;
use crate::yaml::{Data, Node};

/// Reports mistakes in the pattern of a chat with these participants.
pub(super) fn check(
    outline: &Outline<'_>,
    chat: &Node,
    participants: &BTreeSet<&str>,
    report: &mut Report<'_>,
) {
    let pattern = chat.get("pattern");
    check_group(outline, pattern.get("group"), participants, report);
    check_states(pattern.get("state_machine"), report);
    check_dag(pattern.get("dag"), report);
    check_handoffs(outline, chat, participants, report);
    check_debate(pattern.get("debate"), report);
    check_orchestrator(pattern.get("orchestrator"), participants, report);
    check_graph(pattern.get("graph"), report);
    role_play::check(outline, chat, participants, report);
    tasks::check(outline, chat, participants, report);
}

fn check_group(outline: &Outline<'_>, group: &Node, participants: &BTreeSet<&str>, report: &mut Report<'_>) {
    check_selector(outline, group.get("select").get("human"), participants, report);
    let transitions = group.get("transitions");
    if let Some(repeat) = group.entry("allow_repeat_speaker").filter(|_| !transitions.is_null()) {
        let hint = "to let a participant repeat, add it to its own list in `transitions`";
        report.error_with_hint(&repeat.key_span, "`transitions` define already who can repeat", hint);
    }
    for kind in ["allowed", "disallowed"] {
        check_transitions(transitions.get(kind), report);
        if kind == "allowed" && !transitions.get(kind).is_null() && !report.failed() {
            warn_of_isolated(transitions.get(kind), participants, report);
        }
    }
}

/// Reports a human selector that is unknown, not a person, or a participant.
fn check_selector(
    outline: &Outline<'_>,
    chair: &Node,
    participants: &BTreeSet<&str>,
    report: &mut Report<'_>,
) {
    let Some(who) = name(chair) else { return };
    match outline.participant(who) {
        None => {}
        Some(participant) if participant.kind != Kind::Person => {
            let hint = "use `select: model` for a model; a person has `human: true`";
            report.error_with_hint(
                &chair.span,
                format!("the {} `{who}` is not a person", participant.kind),
                hint,
            );
        }
        Some(_) if participants.contains(who) => {
            let hint = "add a second agent with `human: true`: one participates, and one selects";
            report.error_with_hint(
                &chair.span,
                format!("`{who}` is a participant and cannot be the selector"),
                hint,
            );
        }
        Some(_) => {}
    }
}

fn check_transitions(graph: &Node, report: &mut Report<'_>) {
    for entry in graph.entries() {
        let mut seen = BTreeSet::new();
        for who in entry.value.one_or_many() {
            if let Some(twice) = name(who).filter(|who| !seen.insert(*who)) {
                report.warning(&who.span, format!("`{twice}` is in the list already"), "once is enough");
            }
        }
    }
}

fn warn_of_isolated(graph: &Node, participants: &BTreeSet<&str>, report: &mut Report<'_>) {
    let entries = graph.entries();
    let targets = entries.iter().flat_map(|entry| entry.value.one_or_many()).filter_map(Node::text);
    let named: BTreeSet<&str> = entries.iter().map(|entry| &*entry.key).chain(targets).collect();
    for who in participants.iter().filter(|who| !named.contains(*who)) {
        let message = format!("the transitions do not name the participant `{who}`");
        report.warning(
            &graph.span,
            message,
            "it has no transitions in or out: add some, or remove it from `participants`",
        );
    }
}

fn check_states(states: &Node, report: &mut Report<'_>) {
    let after = states.get("after").entries().iter().map(|entry| &entry.value);
    for exits in after.chain([states.get("start")]) {
        check_exits(exits.items(), report);
    }
}

fn check_exits(exits: &[Node], report: &mut Report<'_>) {
    let mut always = false;
    for exit in exits {
        if always {
            let hint = "a transition without `when` is always taken: put it last";
            report.warning(&exit.span, "this transition is never taken", hint);
        }
        always |= exit.entry("when").is_none();
    }
}

fn check_dag(after: &Node, report: &mut Report<'_>) {
    let mut before: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in after.entries() {
        let mut seen = BTreeSet::new();
        for who in entry.value.one_or_many() {
            if let Some(twice) = name(who).filter(|who| !seen.insert(*who)) {
                report.error(&who.span, format!("`{twice}` is in the list already"));
            }
        }
        before.insert(&entry.key, seen.into_iter().collect());
    }
    for entry in after.entries() {
        if let Some(cycle) = cycle_from(&entry.key, &before) {
            let message = format!("`{}` depends on itself: {}", entry.key, cycle.join(" after "));
            report.error(&entry.key_span, message);
            return;
        }
    }
}

/// The way from `start` back to itself, if there is one.
fn cycle_from<'n>(start: &'n str, before: &BTreeMap<&'n str, Vec<&'n str>>) -> Option<Vec<&'n str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for &next in before.get(at).into_iter().flatten() {
            if next == start {
                let back = std::iter::successors(Some(at), |at| came_from.get(at).copied());
                let mut way: Vec<&str> = std::iter::once(start).chain(back).collect();
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(next) {
                came_from.insert(next, at);
                open.push(next);
            }
        }
    }
    None
}

fn check_handoffs(
    outline: &Outline<'_>,
    chat: &Node,
    participants: &BTreeSet<&str>,
    report: &mut Report<'_>,
) {
    let Some(handoffs) = chat.get("pattern").entry("handoffs") else { return };
    let mut any = false;
    for participant in participants_of(chat).filter_map(|(who, _)| outline.participant(who)) {
        for target in participant.node.get("handoffs").items() {
            any = true;
            if name(target) == Some(participant.name) {
                report.error(&target.span, format!("`{}` cannot hand over to itself", participant.name));
            } else if name(target).is_some_and(|who| outline.participant(who).is_some()) {
                check_takes_part(target, participants, false, report);
            }
        }
    }
    if !any && !participants.is_empty() {
        let hint = "give an agent `handoffs`, such as `handoffs: [NAME]`";
        report.error_with_hint(&handoffs.key_span, "no participant of this chat has `handoffs`", hint);
    }
}

fn check_debate(debate: &Node, report: &mut Report<'_>) {
    let mut seen = BTreeSet::new();
    let options = debate.get("options").items();
    for option in options {
        if let Some(twice) = option.text().filter(|text| !seen.insert(text.trim().to_lowercase())) {
            report.error(&option.span, format!("`{twice}` is an option already"));
        }
    }
    if let [only] = options {
        report.error(&only.span, "a vote needs at least two options");
    }
}

fn check_orchestrator(plan: &Node, participants: &BTreeSet<&str>, report: &mut Report<'_>) {
    for key in ["planner", "scribe"] {
        let node = plan.get(key);
        if let Some(who) = name(node).filter(|who| participants.contains(who)) {
            let hint = "remove it from `participants`: it does not take part in the chat";
            report.error_with_hint(
                &node.span,
                format!("`{who}` is a participant and cannot be the planner"),
                hint,
            );
        }
    }
}

/// Edges have one condition. The rest, such as a loop without an end, is seen when the graph is built.
fn check_graph(graph: &Node, report: &mut Report<'_>) {
    for way in graph.get("edges").entries().iter().flat_map(|entry| entry.value.one_or_many()) {
        let otherwise = way.entry("otherwise").filter(|entry| matches!(entry.value.data, Data::Bool(true)));
        let conditions: Vec<_> =
            [way.entry("says"), way.entry("when"), otherwise].into_iter().flatten().collect();
        if let [first, second, ..] = conditions.as_slice() {
            let message = format!("`{}` and `{}` cannot both be given", first.key, second.key);
            report.error(&second.key_span, message);
        }
    }
}

/// Who is asked beside a chat, by the pattern.
pub(super) fn beside(pattern: &Node) -> impl Iterator<Item = &str> {
    let (debate, plan) = (pattern.get("debate"), pattern.get("orchestrator"));
    let person = pattern.get("group").get("select").get("human");
    let alone = [person, debate.get("tie").get("chair"), plan.get("planner"), plan.get("scribe")];
    let asked = debate.get("voters").one_or_many().iter().chain(alone).filter_map(name);
    asked.chain(role_play::beside(pattern)).chain(tasks::beside(pattern))
}
