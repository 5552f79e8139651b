//! Texts that have to fit together: stop texts and prompts, the task and those who see it.

use polylogue::Name;
use polylogue_config::At;

use super::stop_texts;
use crate::agent::Agent;
use crate::chat::Chat;
use crate::codes;
use crate::diagnostic::Report;
use crate::outline::{Outline, Participant};
use crate::pattern::Pattern;
use crate::stop::{Says, Stop};
use crate::team::Team;
use crate::yaml::Node;

/// The text that ends conversations of AutoGen.
const TERMINATE: &str = "TERMINATE";

pub(super) fn check(root: &Node, team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    stop_texts::check(root, team, outline, report);
    warn_of_unheard(team, outline, report);
    warn_of_unseen_task(root, team, outline, report);
    warn_of_excluded(&team.chat, outline, report);
}

/// Warns of agents that end their work with a text for which nothing listens.
fn warn_of_unheard(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    let listens = |agent: &Agent| {
        let by_default = agent.human_input.is_some() || agent.max_auto_replies.is_some();
        by_default || agent.terminate_on.is_some() || agent.is_human()
    };
    let has_stop = |chat: &Chat| chat.stop.as_ref().is_some_and(may_hear) || has_conditions(chat);
    if !team.teams.is_empty()
        || outline.agents().any(listens)
        || team.all_chats().any(|(_, chat)| has_stop(chat))
    {
        return;
    }
    for agent in outline.agents() {
        let Some(keys) = agent.model() else { continue };
        if keys.system.ok && keys.system.fill("").contains(TERMINATE) {
            let message =
                format!("`{}` is prompted to say `{TERMINATE}`, and no chat ends by it", agent.name);
            let hint = match team.all_chats().find_map(|(_, chat)| said(chat.stop.as_ref()?)) {
                Some(text) => format!("ask for `{text}`, or let the chat end by `says: {TERMINATE}`"),
                None => format!("add `stop: {{says: {TERMINATE}}}` to its chat"),
            };
            report.warning(codes::UNHEARD, &keys.system.span, message, hint);
        }
    }
}

/// Whether it has a condition on what is said that may hold for [`TERMINATE`].
fn may_hear(stop: &Stop) -> bool {
    let is_part = |says: &Says| {
        let text = says.text.as_str();
        !says.text.ok || text.contains(TERMINATE) || TERMINATE.contains(text)
    };
    let own = stop.says.as_ref().is_some_and(is_part) || stop.matches.is_some() || stop.when.is_some();
    own || stop.all.iter().chain(&stop.any).any(may_hear)
}

/// The first text by which it ends a chat.
fn said(stop: &Stop) -> Option<&str> {
    let own = stop.says.as_ref().map(|says| says.text.as_str());
    own.or_else(|| stop.all.iter().chain(&stop.any).find_map(said))
}

/// Whether conditions select its speakers.
const fn has_conditions(chat: &Chat) -> bool {
    matches!(chat.pattern, Pattern::StateMachine(_) | Pattern::Graph(_) | Pattern::RolePlay(_))
}

/// Warns of a task that no participant of the outermost chat sees.
fn warn_of_unseen_task(root: &Node, team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    let chat = &team.chat;
    let has_own_prompts = matches!(
        chat.pattern,
        Pattern::Tasks(_) | Pattern::GroupSolve(_) | Pattern::RolePlay(_) | Pattern::Orchestrator(_)
    );
    let Some(task) = root.entry("task").filter(|_| !has_own_prompts && team.task.is_some()) else { return };
    let sees = |who: &At<Name>| match outline.participant(who) {
        Some(Participant::Agent(agent)) => {
            agent.is_human() || agent.model().is_some_and(|keys| !keys.system.ok || keys.system.quotes_task())
        }
        _ => true,
    };
    let is_said = chat.opening.0.iter().any(|line| line.text.quotes_task());
    if chat.opening.given().is_some() && !is_said && !chat.everyone().any(sees) {
        let message = "no participant sees the task";
        let hint = "write `{{task}}` in the `opening` of the chat or in a `system` message";
        report.warning(codes::UNSEEN_TASK, &task.key_span, message, hint);
    }
}

/// Warns of participants that receive nothing before they speak: all speak at the same time, and the messages of the opening are for others.
fn warn_of_excluded(chat: &Chat, outline: &Outline<'_>, report: &mut Report<'_>) {
    let lines = &chat.opening.0;
    let is_private = !lines.is_empty() && lines.iter().all(|line| !line.to.is_empty());
    if !is_private || !matches!(chat.pattern, Pattern::Parallel) {
        return;
    }
    let knows = |who: &Name| lines.iter().any(|line| line.from == *who || line.to.contains(who));
    for who in chat.participants.iter().filter(|who| !knows(who)) {
        let agent = outline.participant(who).and_then(Participant::agent);
        let agent = agent.filter(|agent| !agent.asks_person() && !report.full_of_warnings());
        let Some(keys) = agent.and_then(Agent::model) else { continue };
        if keys.system.ok && !keys.system.quotes_task() {
            let message = format!("`{who}` never sees what it is asked");
            let hint = "add it to the `to` of the `opening`, or write `{{task}}` in its `system` message";
            report.warning(codes::UNSEEN_TASK, &who.span, message, hint);
        }
    }
}
