//! Who speaks next: the plain orders, and what wraps them.

use std::sync::Arc;

use polylogue_core::{Cue, Name, Policy, Reason, Step, Transcript};

use crate::stop::Stop;

/// The members one after the other, again and again.
///
/// Begins with the first member, or, when a member said the last opening message, with the next one after it. A member
/// who left is passed over; when fewer than two of several are left, the chat is over.
pub fn in_turn() -> impl Policy {
    |chat: &Transcript| {
        let present: Vec<&Name> = chat.present().collect();
        let alone = present.len() < 2 && chat.members().len() > 1;
        match (present.first(), chat.left().last()) {
            (Some(_), Some((who, why))) if alone => {
                Step::close(Reason::Left { who: who.clone(), why: why.clone() }, chat)
            }
            (None, last) => Step::close(Reason::Deserted { last: last.cloned() }, chat),
            (Some(first), _) => Step::Cue(Cue::to_all(after(chat).unwrap_or(first).clone())),
        }
    }
}

/// The member who comes after the last speaker.
fn after(chat: &Transcript) -> Option<&Name> {
    let members = chat.members();
    let last = members.iter().position(|name| Some(name) == chat.last_speaker())?;
    let (before, after) = members.split_at_checked(last + 1)?;
    after.iter().chain(before).find(|name| chat.present().any(|here| here == *name))
}

/// Every member once, in order; then the chat is over.
pub fn once_each() -> impl Policy {
    |chat: &Transcript| match chat.present().find(|name| chat.turns_of(name) == 0) {
        Some(name) => Step::Cue(Cue::to_all(name.clone())),
        None => Step::close(Reason::Finished, chat),
    }
}

/// All members at the same time, once; then the chat is over.
pub fn all_at_once() -> impl Policy {
    |chat: &Transcript| {
        let cues: Vec<Cue> =
            chat.present().filter(|name| chat.turns_of(name) == 0).cloned().map(Cue::to_all).collect();
        if cues.is_empty() { Step::close(Reason::Finished, chat) } else { Step::Together(cues) }
    }
}

/// As `policy`, until `stop` holds.
pub fn until(stop: impl Into<Stop>, policy: impl Policy) -> impl Policy {
    let stop = stop.into();
    move |chat: &Transcript| match stop.now(chat) {
        Some(reason) => Step::close(reason, chat),
        None => next(&policy, chat),
    }
}

/// As `policy`, and when it is over, `who` is asked aside, with the words of `prompt`, for what came of it.
///
/// The answer is the summary; an empty one leaves the summary that `policy` gave.
///
/// ```
/// # use polylogue::{Name, in_turn, reflected, until, stop::max_turns};
/// let policy = until(max_turns(4), in_turn());
/// let policy = reflected(policy, Name::new("Judge")?, |_| "What was agreed? One sentence.".into());
/// # Ok::<(), polylogue::NameError>(())
/// ```
pub fn reflected(
    policy: impl Policy,
    who: Name,
    prompt: impl Fn(&Transcript) -> Arc<str> + Send + Sync + 'static,
) -> impl Policy {
    move |chat: &Transcript| match next(&policy, chat) {
        Step::Close { reason, summary } => match reflection(chat, &who) {
            Reflection::Due => Step::Cue(Cue::aside(who.clone(), prompt(chat))),
            Reflection::Silent => Step::Close { reason, summary },
            Reflection::Of(summary) => Step::Close { reason, summary },
        },
        step => step,
    }
}

/// The next step of `policy`, or the end, if a participant ended the chat.
fn next(policy: &impl Policy, chat: &Transcript) -> Step {
    match chat.over() {
        Some((_, reason)) => Step::close(reason.clone(), chat),
        None => policy.next(chat),
    }
}

enum Reflection {
    Due,
    Silent,
    Of(Arc<str>),
}

/// What `who` said aside since the room last moved.
fn reflection(chat: &Transcript, who: &Name) -> Reflection {
    if !chat.moved_aside(who) {
        return Reflection::Due;
    }
    let said =
        chat.lines().iter().rev().take_while(|line| line.is_aside()).find(|line| line.message.from == *who);
    match said.map(|line| line.message.plain()) {
        Some(text) if !text.trim().is_empty() => Reflection::Of(text.into()),
        _ => Reflection::Silent,
    }
}

/// As `policy`, with a summary computed from the transcript when it is over.
pub fn summed_up(
    policy: impl Policy,
    summary: impl Fn(&Transcript) -> String + Send + Sync + 'static,
) -> impl Policy {
    move |chat: &Transcript| match next(&policy, chat) {
        Step::Close { reason, .. } => Step::Close { reason, summary: summary(chat).into() },
        step => step,
    }
}
