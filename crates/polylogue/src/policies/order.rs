//! Who speaks next: the plain orders, and what wraps them.

use std::sync::Arc;

use polylogue_core::{Agent, ChatBuilder, Line, Name, Policy, Step, StopReason, Transcript, TurnRequest};

use crate::stop::Stop;
use crate::verdict::Verdict;

/// The members one after the other, again and again.
///
/// Begins with the first member, or, when a member said the last opening message, with the next one after it. A member
/// who left is passed over; when fewer than two of several are left, the chat is over.
pub fn round_robin() -> impl Policy {
    |chat: &Transcript| {
        let here = |name: &Name| chat.present().any(|here| here == name);
        let next = after(chat, here).or_else(|| chat.present().next());
        match (deserted(chat), next) {
            (None, Some(next)) => Step::Turn(TurnRequest::to_all(next.clone())),
            (close, _) => {
                close.unwrap_or_else(|| Step::close(StopReason::NoParticipants { last: None }, chat))
            }
        }
    }
}

/// The end, when nobody is there any more, or only one of several.
pub(crate) fn deserted(chat: &Transcript) -> Option<Step> {
    let present = chat.present().take(2).count();
    let reason = match (present, chat.left().last()) {
        (0, last) => StopReason::NoParticipants { last: last.cloned() },
        (1, Some((who, why))) if chat.participants().len() > 1 => {
            StopReason::Left { who: who.clone(), why: why.clone() }
        }
        _ => return None,
    };
    Some(Step::close(reason, chat))
}

/// The first member after the last speaker who is `wanted`; the last speaker comes last.
pub(crate) fn after(chat: &Transcript, wanted: impl Fn(&Name) -> bool) -> Option<&Name> {
    let members = chat.participants();
    let last = members.iter().position(|name| Some(name) == chat.last_speaker())?;
    let (before, after) = members.split_at_checked(last + 1)?;
    after.iter().chain(before).find(|name| wanted(name))
}

/// Every member once, in order; then the chat is over.
pub fn sequential() -> impl Policy {
    |chat: &Transcript| match chat.present().find(|name| chat.turns_of(name) == 0) {
        Some(name) => Step::Turn(TurnRequest::to_all(name.clone())),
        None => Step::close(StopReason::Finished, chat),
    }
}

/// Every member once, in order, as [`sequential`]. For chats whose members are chats; what they are told of each other says
/// [`Carryover`](crate::carryover::Carryover).
pub fn sequence() -> impl Policy {
    sequential()
}

/// All members at the same time, once; then the chat is over.
pub fn parallel() -> impl Policy {
    |chat: &Transcript| {
        let cues: Vec<TurnRequest> = chat
            .present()
            .filter(|name| chat.turns_of(name) == 0)
            .cloned()
            .map(TurnRequest::to_all)
            .collect();
        if cues.is_empty() { Step::close(StopReason::Finished, chat) } else { Step::Parallel(cues) }
    }
}

/// As `policy`, until `stop` holds. A participant who ends the chat ends it for the reason it gives, though `stop` holds, too.
pub fn until(stop: impl Into<Stop>, policy: impl Policy) -> impl Policy {
    let stop = stop.into();
    move |chat: &Transcript| match stop.now(chat).filter(|_| chat.ended_by().is_none()) {
        Some(reason) => Step::close(reason, chat),
        None => next(&policy, chat),
    }
}

/// As `policy`, and when it is over, `who` is asked aside, with the words of `prompt`, for what came of it.
///
/// The answer is the summary; an empty one leaves the summary that `policy` gave. Where no participant said anything, nobody is
/// asked.
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
        // There is nothing to sum up: a model would make something up.
        Step::Close { reason, summary } if summary.trim().is_empty() && chat.is_silent() => {
            Step::Close { reason, summary }
        }
        Step::Close { reason, summary } => match reflection(chat, &who) {
            Reflection::Due => Step::Turn(TurnRequest::private(who.clone(), prompt(chat))),
            Reflection::Silent => Step::Close { reason, summary },
            Reflection::Of(summary) => Step::Close { reason, summary },
        },
        step => step,
    }
}

/// `chat` with `policy`, and `agent` beside the room, who sums up when it is over, asked with the words of `prompt`: as
/// [`reflected`], for somebody who is no member. Takes one model call more.
///
/// ```
/// # fn example(chat: polylogue::ChatBuilder, model: polylogue::AnyModel) -> polylogue::Result<polylogue::Chat> {
/// use polylogue::order::{TAKEAWAY, reflecting};
/// use polylogue::{Assistant, in_turn, stop::max_turns, until};
/// reflecting(chat, Assistant::new("Summary", model)?, TAKEAWAY, until(max_turns(4), in_turn())).build()
/// # }
/// ```
pub fn reflecting(
    chat: ChatBuilder,
    agent: impl Agent,
    prompt: impl Into<Arc<str>>,
    policy: impl Policy,
) -> ChatBuilder {
    let (who, prompt) = (agent.name().clone(), prompt.into());
    chat.private_agent(agent).policy(reflected(policy, who, move |_| Arc::clone(&prompt)))
}

/// The next step of `policy`, or the end, if a participant ended the chat.
fn next(policy: &impl Policy, chat: &Transcript) -> Step {
    match chat.ended_by() {
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
    let asides = chat.lines().iter().rev().take_while(|line| line.is_private());
    // Whoever solves a task has said aside whether it is complete: that sums nothing up.
    let (checks, said): (Vec<&Line>, Vec<&Line>) = asides
        .filter(|line| line.message.from == *who)
        .partition(|line| Verdict::of(&line.message).is_some());
    if chat.private_turns_of(who) == checks.len() {
        return Reflection::Due;
    }
    match said.first().map(|line| line.message.in_words()) {
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

/// The text of the last message that ended a turn since the chat was opened last; empty if there is none. For
/// [`summed_up`], where what a chat begins with is not to be what came of it.
#[must_use]
pub fn last_said(chat: &Transcript) -> String {
    chat.summary().to_string()
}

/// The last message without `text`, such as the word that ended the chat, and without white space around what is left: for
/// [`summed_up`].
///
/// ```
/// use polylogue::order::without;
/// use polylogue::{in_turn, stop::says, summed_up, until};
/// let policy = summed_up(until(says("TERMINATE"), in_turn()), without("TERMINATE"));
/// ```
pub fn without(text: &str) -> impl Fn(&Transcript) -> String + Send + Sync + 'static {
    let text = text.to_owned();
    move |chat: &Transcript| {
        let summary = chat.summary();
        let kept = if text.is_empty() { summary.to_string() } else { summary.replace(&text, "") };
        kept.trim().to_owned()
    }
}

/// A prompt for [`reflected`]: asks for what came of a conversation, and nothing around it.
pub const TAKEAWAY: &str = "Sum up what came of this conversation. Give the result itself, and no words about the \
                            conversation or this request.";
