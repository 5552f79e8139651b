//! Texts that have to fit together: stop texts and prompts, the task and those who see it.

use std::collections::HashSet;

use polylogue_config::At;
use polylogue_core::Name;

use crate::agent::Agent;
use crate::chat::Chat;
use crate::codes;
use crate::diagnostic::Report;
use crate::outline::{Outline, Participant};
use crate::pattern::Pattern;
use crate::stop::{Says, Stop};
use crate::team::Team;
use crate::yaml::{Data, Entry, Node};

/// Keys whose texts are not prompts.
const NO_PROMPTS: [&str; 4] = ["stop", "terminate_on", "name", "file"];
/// The text that ends conversations of AutoGen.
const TERMINATE: &str = "TERMINATE";

pub(super) fn check(root: &Node, team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    let mut prompts = Vec::new();
    collect(root, &mut prompts);
    for (_, chat) in team.checked_chats() {
        for says in chat.stop.iter().flat_map(all_says) {
            check_says(says, chat, outline, &prompts, report);
        }
    }
    warn_of_unheard(team, outline, report);
    warn_of_unseen_task(root, team, outline, report);
}

/// The texts of a file that a model can read or a script says, in lower case.
fn collect(node: &Node, prompts: &mut Vec<String>) {
    match &node.data {
        Data::Text(text) => prompts.push(normalized(text)),
        Data::List(items) => items.iter().for_each(|item| collect(item, prompts)),
        Data::Map(entries) => {
            let read = entries.iter().filter(|Entry { key, .. }| !NO_PROMPTS.contains(&key.as_str()));
            read.for_each(|entry| collect(&entry.value, prompts));
        }
        _ => {}
    }
}

/// A text in lower case, in one line.
fn normalized(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The texts that end a chat, however they are joined.
fn all_says(stop: &Stop) -> Vec<&Says> {
    let within = stop.all.iter().chain(&stop.any).flat_map(all_says);
    stop.says.iter().chain(within).collect()
}

/// Warns of a stop text that no prompt mentions, if only models can say it.
fn check_says(says: &Says, chat: &Chat, outline: &Outline<'_>, prompts: &[String], report: &mut Report<'_>) {
    let text = &says.text;
    let lower = normalized(text);
    let by: HashSet<&Name> = says.by.iter().collect();
    let is_speaker = |who: &&At<Name>| by.is_empty() || by.contains(&who.value);
    let mut speakers = chat.everyone().filter(is_speaker);
    let is_model = |who: &At<Name>| match outline.participant(who) {
        Some(Participant::Agent(agent)) => {
            agent.model().is_some() && !agent.asks_person() && !agent.replies_otherwise()
        }
        Some(Participant::Chat(_)) | None => true,
        Some(Participant::Team(_)) => false,
    };
    // A team without any system message is a sketch.
    let is_prompted = outline.agents().filter_map(Agent::model).any(|keys| !keys.system.is_empty());
    // Every agent of AutoGen ends by this text, whether a prompt mentions it or not.
    let limit = chat.stop.as_ref().is_some_and(|stop| stop.max_turns.or(stop.max_messages).is_some());
    let is_precaution = says.whole && **text == *TERMINATE && (limit || chat.max_turns.given().is_some());
    let is_mentioned = || prompts.iter().any(|prompt| prompt.contains(&lower));
    if text.ok
        && is_prompted
        && !is_precaution
        && is_marker(text)
        && !is_mentioned()
        && speakers.all(is_model)
    {
        let message = format!("no prompt mentions the stop text `{}`", text.trim());
        let hint = format!(
            "ask for it in a `system` message, such as `Reply {} when the task is done.`",
            text.trim()
        );
        report.warning(codes::STOP_TEXT, &text.span, message, hint);
    }
}

/// Whether models do not say a text unless they are asked to.
fn is_marker(text: &str) -> bool {
    let in_capitals = text.as_bytes().windows(3).any(|three| three.iter().all(u8::is_ascii_uppercase));
    in_capitals || text.contains(['_', '<', '[', '{', '#', '|'])
}

/// Warns of agents that end their work with a text for which nothing listens.
fn warn_of_unheard(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    let listens = |agent: &Agent| {
        let by_default = agent.human_input.is_some() || agent.max_auto_replies.is_some();
        by_default || agent.terminate_on.is_some() || agent.is_human()
    };
    let has_stop = |chat: &Chat| chat.stop.as_ref().is_some_and(listens_to_texts) || has_conditions(chat);
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
            let hint = format!("add `stop: {{says: {TERMINATE}}}` to its chat");
            report.warning(codes::UNHEARD, &keys.system.span, message, hint);
        }
    }
}

/// Whether it has a condition on what is said.
fn listens_to_texts(stop: &Stop) -> bool {
    let own = stop.says.is_some() || stop.matches.is_some() || stop.when.is_some();
    own || stop.all.iter().chain(&stop.any).any(listens_to_texts)
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
