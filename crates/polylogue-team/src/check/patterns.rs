//! Patterns: who can select, plan and hand over, and no dependency on oneself.

use std::collections::{BTreeMap, BTreeSet};

use polylogue_config::At;
use polylogue_core::Name;

use super::{Outline, role_play, tasks};
use crate::build;
use crate::chat::Chat;
use crate::diagnostic::Report;
use crate::pattern::{
    Debate, Edge, Exits, Graph, Group, Handoffs, Orchestrator, Pattern, SelectSpeaker, StateMachine,
    Transitions,
};
use crate::suggest;
use crate::team::Team;

/// Reports mistakes in the pattern of a chat.
pub(super) fn check(outline: &Outline<'_>, chat: &Chat, report: &mut Report<'_>) {
    match &chat.pattern {
        Pattern::RoundRobin | Pattern::Sequential | Pattern::Parallel => {}
        Pattern::Group(group) => check_group(outline, group, chat, report),
        Pattern::StateMachine(states) => check_states(states, report),
        Pattern::Dag(before) => check_dag(before, report),
        Pattern::Handoffs(handoffs) => check_handoffs(outline, handoffs, chat, report),
        Pattern::Debate(debate) => check_debate(debate, report),
        Pattern::Orchestrator(given) => check_orchestrator(given, chat, report),
        Pattern::Graph(graph) => check_graph(graph, report),
        Pattern::RolePlay(given) => role_play::check(outline, chat, given, report),
        Pattern::GroupSolve(given) => tasks::check_solve(outline, chat, given, report),
        Pattern::Tasks(given) => tasks::check_alone(outline, chat, given, report),
    }
}

/// Reports graphs that cannot be built.
pub(super) fn check_built(team: &Team, report: &mut Report<'_>) {
    for chat in std::iter::once(&team.chat).chain(team.chats.iter().map(|inner| &inner.chat)) {
        let Pattern::Graph(graph) = &chat.pattern else { continue };
        if let Err(error) = build::graph(graph, chat) {
            report.error(graph.key(), error.to_string());
        }
    }
}

/// Whether `who` takes part in `chat`.
pub(super) fn takes_part(who: &Name, chat: &Chat) -> bool {
    chat.everyone().any(|participant| participant == who)
}

fn check_group(outline: &Outline<'_>, group: &Group, chat: &Chat, report: &mut Report<'_>) {
    if let SelectSpeaker::Human(person) = &group.select {
        check_selector(outline, person, chat, report);
    }
    if let (Some(_), Some(repeat)) = (&group.transitions, &group.allow_repeat_speaker) {
        let hint = "to let a participant repeat, add it to its own list in `transitions`";
        report.error_with_hint(repeat.key(), "`transitions` define already who can repeat", hint);
    }
    let Some(transitions) = &group.transitions else { return };
    let (Transitions::Allowed(lists) | Transitions::Disallowed(lists)) = &transitions.value;
    for twice in lists.values().flat_map(|names| repeated(names)) {
        report.warning(&twice.span, format!("`{twice}` is in the list already"), "once is enough");
    }
    if matches!(transitions.value, Transitions::Allowed(_)) && !report.failed() {
        warn_of_isolated(lists, chat, report);
    }
}

/// The names that are in a list for another time.
fn repeated(names: &[At<Name>]) -> impl Iterator<Item = &At<Name>> {
    let mut seen = BTreeSet::new();
    names.iter().filter(move |name| name.ok && !seen.insert(&name.value))
}

/// Reports a human selector that is not a person, or a participant.
fn check_selector(outline: &Outline<'_>, person: &At<Name>, chat: &Chat, report: &mut Report<'_>) {
    let Some(found) = outline.participant(person).filter(|_| person.ok) else { return };
    if !found.agent().is_some_and(|agent| agent.is_human()) {
        let hint = "use `select: model` for a model; a person has `human: true`";
        let message = format!("the {} `{person}` is not a person", found.noun());
        report.error_with_hint(&person.span, message, hint);
    } else if takes_part(person, chat) {
        let hint = "add a second agent with `human: true`: one participates, and one selects";
        let message = format!("`{person}` is a participant and cannot be the selector");
        report.error_with_hint(&person.span, message, hint);
    }
}

fn warn_of_isolated(lists: &At<BTreeMap<At<Name>, Vec<At<Name>>>>, chat: &Chat, report: &mut Report<'_>) {
    let named: BTreeSet<&At<Name>> = lists.keys().chain(lists.values().flatten()).collect();
    let participants: BTreeSet<&At<Name>> = chat.everyone().collect();
    for who in participants.difference(&named) {
        let message = format!("the transitions do not name the participant `{who}`");
        let hint = "it has no transitions in or out: add some, or remove it from `participants`";
        report.warning(&lists.span, message, hint);
    }
}

fn check_states(states: &StateMachine, report: &mut Report<'_>) {
    for Exits(exits) in states.after.values().chain(&states.start) {
        let always = exits.iter().position(|exit| exit.when.is_none()).unwrap_or(exits.len());
        for never in exits.iter().skip(always + 1) {
            let hint = "a transition without `when` is always taken: put it last";
            report.warning(&never.span, "this transition is never taken", hint);
        }
    }
}

fn check_dag(before: &BTreeMap<At<Name>, Vec<At<Name>>>, report: &mut Report<'_>) {
    for twice in before.values().flat_map(|names| repeated(names)) {
        report.error(&twice.span, format!("`{twice}` is in the list already"));
    }
    let mut in_order: Vec<&At<Name>> = before.keys().collect();
    in_order.sort_by_key(|name| name.span.start);
    for name in in_order {
        if let Some(cycle) = cycle_from(name, before) {
            let message = format!("`{name}` depends on itself: {}", cycle.join(" after "));
            report.error(&name.span, message);
            return;
        }
    }
}

/// The way from `start` back to itself, if there is one.
fn cycle_from<'t>(start: &'t Name, before: &'t BTreeMap<At<Name>, Vec<At<Name>>>) -> Option<Vec<&'t str>> {
    let mut came_from: BTreeMap<&Name, &Name> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for next in before.get(at).into_iter().flatten().map(|next| &next.value) {
            if next == start {
                let back = std::iter::successors(Some(at), |at| came_from.get(at).copied());
                let mut way: Vec<&str> = std::iter::once(start).chain(back).map(Name::as_str).collect();
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

fn check_handoffs(outline: &Outline<'_>, handoffs: &At<Handoffs>, chat: &Chat, report: &mut Report<'_>) {
    let mut any = false;
    for agent in chat.everyone().filter_map(|who| outline.participant(who)?.agent()) {
        for target in agent.model().into_iter().flat_map(|keys| keys.handoffs.iter()) {
            any = true;
            if *target == agent.name {
                report.error(&target.span, format!("`{}` cannot hand over to itself", agent.name));
            } else {
                check_takes_part(outline, target, chat, report);
            }
        }
    }
    if !any {
        let hint = "give an agent `handoffs`, such as `handoffs: [NAME]`";
        report.error_with_hint(handoffs.key(), "no participant of this chat has `handoffs`", hint);
    }
}

/// Reports a participant of the team that is none of the chat. Unknown names are reported by the resolver.
pub(super) fn check_takes_part(outline: &Outline<'_>, who: &At<Name>, chat: &Chat, report: &mut Report<'_>) {
    if who.ok && outline.participant(who).is_some() && !takes_part(who, chat) && !report.full() {
        let names: BTreeSet<&str> = chat.everyone().map(|name| name.as_str()).collect();
        let hint = suggest::hint(who.as_str(), names.into_iter().collect::<Vec<_>>());
        report.error_with_hint(&who.span, format!("`{who}` does not take part in this chat"), hint);
    }
}

fn check_debate(debate: &Debate, report: &mut Report<'_>) {
    let mut seen = BTreeSet::new();
    for option in debate.options.iter().filter(|option| option.ok) {
        if !seen.insert(option.trim().to_lowercase()) {
            report.error(&option.span, format!("`{option}` is an option already"));
        }
    }
    if let [only] = debate.options.as_slice() {
        report.error(&only.span, "a vote needs at least two options");
    }
}

fn check_orchestrator(given: &Orchestrator, chat: &Chat, report: &mut Report<'_>) {
    for who in std::iter::once(&given.planner).chain(&given.scribe) {
        if who.ok && takes_part(who, chat) {
            let hint = "remove it from `participants`: it does not take part in the chat";
            let message = format!("`{who}` is a participant and cannot be the planner");
            report.error_with_hint(&who.span, message, hint);
        }
    }
}

/// Edges have one condition. The rest, such as a loop without an end, is seen when the graph is built.
fn check_graph(graph: &Graph, report: &mut Report<'_>) {
    for Edge { says, when, otherwise, .. } in graph.edges.values().flatten() {
        let otherwise = otherwise.given().filter(|_| **otherwise);
        let says = ("says", says.as_ref().map(At::key));
        let all = [says, ("when", when.as_ref().map(At::key)), ("otherwise", otherwise)];
        let mut given = all.into_iter().filter_map(|(key, at)| Some((key, at?)));
        if let (Some((first, _)), Some((second, at))) = (given.next(), given.next()) {
            report.error(at, format!("`{first}` and `{second}` cannot both be given"));
        }
    }
}
