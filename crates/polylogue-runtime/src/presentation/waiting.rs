//! Items that later events may make superfluous: private replies, selections and answers of people, whose effect shows the same text.

use polylogue::stop::LibraryStopReason;
use polylogue_core::{Body, Chooser, Event, Message, Name};
use serde_json::Value;

use super::{Item, Kind};

/// What the next event means for an item that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// A later event may show it.
    Waits,
    /// It is shown, before the event.
    Shown,
    /// The event shows the same.
    Repeated,
}

/// The items of `waiting` that are shown before `next`, in their order; those that still wait stay. Without a next event,
/// all are shown.
pub(super) fn released(waiting: &mut Vec<Item>, next: Option<&Event>) -> Vec<Item> {
    let fates: Vec<Fate> = waiting.iter().map(|item| fate(item, next)).collect();
    let until = fates.iter().rposition(|fate| *fate == Fate::Shown).map_or(0, |last| last + 1);
    let (mut shown, mut left) = (Vec::new(), Vec::new());
    for (index, (mut item, fate)) in waiting.drain(..).zip(fates).enumerate() {
        match (fate, &mut item.kind) {
            (Fate::Repeated, Kind::InputProvided { is_repeated, .. }) => {
                *is_repeated = true;
                shown.push(item);
            }
            (Fate::Repeated, _) => {}
            (Fate::Waits, _) if index >= until => left.push(item),
            (Fate::Waits | Fate::Shown, _) => shown.push(item),
        }
    }
    *waiting = left;
    shown
}

fn fate(item: &Item, next: Option<&Event>) -> Fate {
    let Some(next) = next else { return Fate::Shown };
    if next.chat != item.chat {
        // What a person has to see now is shown after what was before it.
        let stops = matches!(next.body, Body::InputRequired(_) | Body::Failed { .. });
        return if stops { Fate::Shown } else { Fate::Waits };
    }
    match &item.kind {
        Kind::InputProvided { text, .. } if repeats(&next.body, text) => Fate::Repeated,
        Kind::PrivateReply { who, text } => fate_of_reply(who, text, &next.body),
        Kind::Message(said) if is_selection_by(&said.message.from, &next.body) => Fate::Repeated,
        _ => Fate::Shown,
    }
}

/// Whether `next` begins the turn of a speaker that `who` has selected.
fn is_selection_by(who: &Name, next: &Body) -> bool {
    let by = Chooser::Agent(who.clone());
    let Body::TurnStarted { turns } = next else { return false };
    turns.iter().any(|turn| turn.choice.as_ref().is_some_and(|choice| choice.by == by))
}

fn fate_of_reply(who: &Name, text: &str, next: &Body) -> Fate {
    match next {
        // The last ledger: the chat ends because of what is in it.
        Body::Closed { reason, .. } if is_json(text) && LibraryStopReason::of(reason) == satisfied(who) => {
            Fate::Repeated
        }
        // Several may vote alike.
        Body::Message(message) if message.to.is_private() && message.from != *who => Fate::Shown,
        _ if repeats(next, text) => Fate::Repeated,
        // A plan, and then the message with the plan in it.
        Body::Message(message) | Body::Posted(message) if is_quoted(who, text, message) => Fate::Repeated,
        // A ledger, the instruction in it, and then the selection of the speaker in it.
        Body::Message(message) | Body::Posted(message) if is_quoting(text, message) => Fate::Waits,
        Body::Message(message) if message.to.is_private() => Fate::Waits,
        Body::TurnStarted { turns } if turns.iter().all(|turn| turn.to.is_private() && turn.who == *who) => {
            Fate::Waits
        }
        Body::ModelReplied(_) | Body::Prompted { .. } | Body::Remembered { .. } => Fate::Waits,
        _ => Fate::Shown,
    }
}

/// Whether `next` shows `text`, which was written in private before it: a summary, an answer that becomes a message, passes or
/// leaves, or a selection.
fn repeats(next: &Body, text: &str) -> bool {
    match next {
        Body::Closed { summary, .. } => summary.trim() == text.trim(),
        Body::Message(message) => message.text().trim() == text.trim(),
        Body::Passed { .. } => text.trim().is_empty(),
        Body::Left { .. } | Body::Stopped { .. } => true,
        Body::TurnStarted { turns } => {
            turns.iter().any(|request| request.choice.is_some() && !request.to.is_private())
        }
        _ => false,
    }
}

fn is_quoted(who: &Name, text: &str, message: &Message) -> bool {
    message.from == *who && !message.to.is_private() && message.text().contains(text.trim())
}

/// Whether `text` is JSON that has the text of `message`.
fn is_quoting(text: &str, message: &Message) -> bool {
    let quoted = Value::from(message.text().trim()).to_string();
    is_json(text) && text.contains(quoted.trim_matches('"'))
}

/// Whether there is an object of JSON in `text`.
fn is_json(text: &str) -> bool {
    text.contains('{')
}

/// That the planner `by` wrote into its ledger that all is done.
fn satisfied(by: &Name) -> Option<LibraryStopReason> {
    Some(LibraryStopReason::RequestSatisfied { by: by.clone() })
}
