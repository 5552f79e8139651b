//! Group chats: items 74 to 96.

mod rules;
mod selection;
mod tools;
mod whole;

use std::sync::Arc;

use polylogue::{Act, AnyModel, Assistant, Chat, Function, Message, Policy, Transcript};
use polylogue_core::{Body, ChatBuilder, Choice, Entry, Event, Path, TranscriptMessage, text_of};

use crate::stage::{name, run, script};

/// An agent that speaks by `model`.
fn assistant(who: &str, model: &AnyModel) -> Assistant {
    Assistant::new(who, model.clone()).unwrap()
}

/// Says its name and how many messages there were.
fn speaker(who: &str) -> Function {
    Function::new(who, |turn| Ok(Act::say(format!("{} {}", turn.me(), turn.transcript().message_count()))))
        .unwrap()
}

/// Ann, Bob and Cid, who speak by themselves.
fn group_chat(policy: impl Policy) -> ChatBuilder {
    Chat::builder("group")
        .participant(speaker("Ann"))
        .participant(speaker("Bob"))
        .participant(speaker("Cid"))
        .policy(policy)
}

/// `chat`, which Ann begins.
fn begun_by_ann(chat: ChatBuilder) -> Chat {
    chat.opening(|task| vec![Message::new(name("Ann"), task)]).build().unwrap()
}

fn folded(events: &[Arc<Event>]) -> Transcript {
    Transcript::from_events(&Path::root(), events).unwrap()
}

/// The speakers in the chat, in order, the opening included.
fn speakers(events: &[Arc<Event>]) -> String {
    let who = |line: &TranscriptMessage| line.message.from.to_string();
    folded(events).messages().map(who).collect::<Vec<_>>().join(" ")
}

/// How the speakers were selected: the logged choices, one per turn in the chat.
fn choices(events: &[Arc<Event>]) -> Vec<Choice> {
    let turns = events.iter().filter_map(|event| match &event.body {
        Body::TurnStarted { turns } => Some(turns),
        _ => None,
    });
    let of_chat = turns.flatten().filter(|turn| !turn.to.is_private());
    of_chat.map(|turn| *turn.choice.clone().expect("a group records how it selected")).collect()
}

/// The conversation as a model was sent it, one entry a line.
fn sent(entries: &[Entry]) -> Vec<String> {
    let shown = |entry: &Entry| match entry {
        Entry::System { parts } => format!("system: {}", text_of(parts)),
        Entry::User { parts } => format!("user: {}", text_of(parts)),
        Entry::Assistant { parts, .. } => format!("assistant: {}", text_of(parts)),
        Entry::Tool { tool, result: outcome, .. } => format!("{tool}: {}", outcome.text()),
    };
    entries.iter().map(shown).collect()
}
