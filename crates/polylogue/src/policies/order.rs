//! Simple orders of speakers, termination conditions and summaries.

use std::sync::Arc;

use crate::stop::LibraryStopReason;
use polylogue_core::{
    Agent, AnyAgent, ChatBuilder, Name, Policy, Step, StopReason, Transcript, TranscriptMessage, TurnRequest,
    steerable, with_follow_ups,
};

use crate::termination::verdict::Verdict;

/// Lets participants speak one after the other, repeatedly.
///
/// Starts with the first participant, or, when a participant sent the last opening message, with the next one. Skips
/// participants who left; when fewer than two of several are present, the chat ends.
pub fn round_robin() -> impl Policy {
    let order = |chat: &Transcript| {
        let here = |name: &Name| chat.present().any(|here| here == name);
        let next = after(chat, here).or_else(|| chat.present().next());
        match (without_participants(chat), next) {
            (None, Some(next)) => Step::Turn(TurnRequest::to_all(next.clone())),
            (close, _) => close.unwrap_or_else(|| {
                Step::close(StopReason::from(LibraryStopReason::NoParticipants { last: None }), chat)
            }),
        }
    };
    steerable(order, |_, _| None)
}

/// Ends the chat when no participant is present, or only one of several.
pub(crate) fn without_participants(chat: &Transcript) -> Option<Step> {
    let present = chat.present().take(2).count();
    let reason = match (present, chat.left().last()) {
        (0, last) => StopReason::from(LibraryStopReason::NoParticipants { last: last.cloned() }),
        (1, Some((who, why))) if chat.participants().len() > 1 => {
            StopReason::Left { who: who.clone(), why: why.clone() }
        }
        _ => return None,
    };
    Some(Step::close(reason, chat))
}

/// The first participant after the last speaker for which `wanted` holds; the last speaker comes last.
pub(crate) fn after(chat: &Transcript, wanted: impl Fn(&Name) -> bool) -> Option<&Name> {
    let participants = chat.participants();
    let last = participants.iter().position(|name| Some(name) == chat.last_speaker())?;
    let (before, after) = participants.split_at_checked(last + 1)?;
    after.iter().chain(before).find(|name| wanted(name))
}

/// Lets every participant speak once, in order; then the chat ends. Also for participants that are chats:
/// [`Carryover`](crate::policies::carryover::Carryover) carries results from one to the next.
///
/// A [next speaker](Policy::takes_next_speaker) who has not spoken can be chosen; the others follow in order.
///
/// ```
/// # use polylogue::{AnyModel, Assistant, Chat, sequential};
/// # fn example(model: AnyModel) -> polylogue::Result<Chat> {
/// let chat = Chat::builder("report")
///     .participant(Assistant::new("Researcher", &model)?.system("List the facts."))
///     .participant(Assistant::new("Writer", &model)?.system("Write a report of these facts."))
///     .policy(sequential())
///     .build()?;
/// # Ok(chat)
/// # }
/// ```
pub fn sequential() -> impl Policy {
    let order = |chat: &Transcript| match chat.present().find(|name| chat.turns_of(name) == 0) {
        Some(name) => Step::Turn(TurnRequest::to_all(name.clone())),
        None => all_spoken(chat),
    };
    steerable(with_follow_ups(order), |chat, who| {
        let has_spoken = chat.turns_of(who) > 0;
        has_spoken.then(|| format!("`{who}` has spoken, and every participant speaks once").into())
    })
}

/// Lets all participants speak once, at the same time; then the chat ends.
///
/// ```
/// # use polylogue::{AnyModel, Assistant, Chat, parallel};
/// # fn example(model: AnyModel) -> polylogue::Result<Chat> {
/// let chat = Chat::builder("review")
///     .participant(Assistant::new("Lawyer", &model)?.system("Name the legal risks of the offer."))
///     .participant(Assistant::new("Trader", &model)?.system("Name the price risks of the offer."))
///     .policy(parallel())
///     .build()?;
/// # Ok(chat)
/// # }
/// ```
pub fn parallel() -> impl Policy {
    with_follow_ups(|chat: &Transcript| {
        let requests: Vec<TurnRequest> = chat
            .present()
            .filter(|name| chat.turns_of(name) == 0)
            .cloned()
            .map(TurnRequest::to_all)
            .collect();
        if requests.is_empty() { all_spoken(chat) } else { Step::Parallel(requests) }
    })
}

/// Ends a chat in which each participant has one turn.
fn all_spoken(chat: &Transcript) -> Step {
    let is_silent = chat.recent_turns().next().is_some_and(|turn| turn.is_silent);
    let reason = match chat.participants() {
        [who] if is_silent => LibraryStopReason::NoReply { who: who.clone() },
        [who] => LibraryStopReason::Replied { who: who.clone() },
        _ => LibraryStopReason::AllSpoken,
    };
    reason.close(chat)
}

/// Wraps `policy`: when the chat ends, by `policy`, by a condition around it or at its maximum of turns, `who` is asked for a
/// summary in a private turn, with `prompt`. The answer is the summary; with an empty answer the summary of `policy` stays. Not
/// asked if no participant said anything.
///
/// ```
/// # use polylogue::policies::{with_summary_by, with_termination};
/// # use polylogue::stop::max_turns;
/// # use polylogue::{Name, round_robin};
/// let policy = with_termination(round_robin(), max_turns(4));
/// let policy = with_summary_by(policy, Name::new("Judge")?, |_| "What was agreed? One sentence.".into());
/// # Ok::<(), polylogue::kernel::data::NameError>(())
/// ```
pub fn with_summary_by(
    policy: impl Policy,
    who: Name,
    prompt: impl Fn(&Transcript) -> Arc<str> + Send + Sync + 'static,
) -> impl Policy {
    let close = move |chat: &Transcript, reason: StopReason, summary: Arc<str>| {
        // There is nothing to summarize: a model would make something up.
        if summary.trim().is_empty() && chat.is_silent() {
            return Step::Close { reason, summary };
        }
        match reflection(chat, &who) {
            Reflection::Due => Step::Turn(TurnRequest::private(who.clone(), prompt(chat))),
            Reflection::Silent => Step::Close { reason, summary },
            Reflection::Of(summary) => Step::Close { reason, summary },
        }
    };
    SummarizedPolicy { policy, close }
}

/// Builds `chat` with `policy` and the private agent `agent`, who is asked with `prompt` for the summary at the end: as
/// [`with_summary_by`], for an agent that is not a participant. Takes one more model call.
///
/// ```
/// # fn example(chat: polylogue::kernel::chat::ChatBuilder, model: polylogue::AnyModel) -> polylogue::Result<polylogue::Chat> {
/// use polylogue::policies::order::{SUMMARY_PROMPT, with_summarizer};
/// use polylogue::policies::with_termination;
/// use polylogue::stop::max_turns;
/// use polylogue::{Assistant, round_robin};
/// with_summarizer(chat, Assistant::new("Summary", model)?, SUMMARY_PROMPT, with_termination(round_robin(), max_turns(4))).build()
/// # }
/// ```
pub fn with_summarizer(
    chat: ChatBuilder,
    agent: impl Agent,
    prompt: impl Into<Arc<str>>,
    policy: impl Policy,
) -> ChatBuilder {
    let (who, prompt) = (agent.name().clone(), prompt.into());
    chat.private_agent(agent).policy(with_summary_by(policy, who, move |_| Arc::clone(&prompt)))
}

/// A policy with another result: `close` returns the step instead of an end, from the stop reason and the result of `policy`.
struct SummarizedPolicy<P, F> {
    policy: P,
    close: F,
}

impl<P, F: Fn(&Transcript, StopReason, Arc<str>) -> Step> SummarizedPolicy<P, F> {
    fn summarized(&self, chat: &Transcript, step: Step) -> Step {
        match step {
            Step::Close { reason, summary } => (self.close)(chat, reason, summary),
            step => step,
        }
    }
}

impl<P, F> Policy for SummarizedPolicy<P, F>
where
    P: Policy,
    F: Fn(&Transcript, StopReason, Arc<str>) -> Step + Send + Sync + 'static,
{
    fn next(&self, chat: &Transcript) -> Step {
        match chat.ended_by() {
            Some((_, reason)) => self.at_end(chat, reason.clone()),
            None => self.summarized(chat, self.policy.next(chat)),
        }
    }

    fn takes_next_speaker(&self, chat: &Transcript, who: &Name) -> Result<(), Arc<str>> {
        self.policy.takes_next_speaker(chat, who)
    }

    fn takes_follow_up(&self, chat: &Transcript, who: &Name) -> bool {
        self.policy.takes_follow_up(chat, who)
    }

    fn at_end(&self, chat: &Transcript, reason: StopReason) -> Step {
        self.summarized(chat, self.policy.at_end(chat, reason))
    }

    fn private_agents(&self) -> Vec<AnyAgent> {
        self.policy.private_agents()
    }
}

enum Reflection {
    Due,
    Silent,
    Of(Arc<str>),
}

/// The private messages of `who` since the last turn in the chat.
fn reflection(chat: &Transcript, who: &Name) -> Reflection {
    let private = chat.all_messages().iter().rev().take_while(|line| line.is_private());
    // Private checks of whether a task is complete are not summaries.
    let (checks, said): (Vec<&TranscriptMessage>, Vec<&TranscriptMessage>) = private
        .filter(|line| line.message.from == *who)
        .partition(|line| Verdict::of(&line.message).is_some());
    if chat.private_turns_of(who) == checks.len() {
        return Reflection::Due;
    }
    match said.first().map(|line| line.message.to_text()) {
        Some(text) if !text.trim().is_empty() => Reflection::Of(text.into()),
        _ => Reflection::Silent,
    }
}

/// Wraps `policy`, with a summary computed from the transcript when the chat ends: by `policy`, by a condition around it, or at its
/// maximum of turns.
///
/// ```
/// use polylogue::policies::{with_termination, with_summary};
/// use polylogue::stop::max_turns;
/// use polylogue::{Transcript, round_robin};
///
/// let count = |chat: &Transcript| format!("{} messages", chat.message_count());
/// let policy = with_summary(with_termination(round_robin(), max_turns(4)), count);
/// ```
pub fn with_summary(
    policy: impl Policy,
    summary: impl Fn(&Transcript) -> String + Send + Sync + 'static,
) -> impl Policy {
    let close = move |chat: &Transcript, reason: StopReason, _: Arc<str>| Step::Close {
        reason,
        summary: summary(chat).into(),
    };
    SummarizedPolicy { policy, close }
}

/// Returns the text of the last message of a turn since the chat was last opened; empty if there is none. For [`with_summary`], to
/// exclude the opening messages.
pub fn last_reply(chat: &Transcript) -> String {
    chat.summary().to_string()
}

/// Returns a function for [`with_summary`]: the summary is the last message without `text`, such as a termination word, and
/// without surrounding white space.
///
/// ```
/// use polylogue::policies::order::last_message_without;
/// use polylogue::policies::{with_summary, with_termination};
/// use polylogue::stop::says;
/// use polylogue::round_robin;
/// let policy = with_summary(with_termination(round_robin(), says("TERMINATE")), last_message_without("TERMINATE"));
/// ```
pub fn last_message_without(text: &str) -> impl Fn(&Transcript) -> String + Send + Sync + 'static {
    let text = text.to_owned();
    move |chat: &Transcript| {
        let summary = chat.summary();
        let kept = if text.is_empty() { summary.to_string() } else { summary.replace(&text, "") };
        kept.trim().to_owned()
    }
}

/// The default prompt of a summary that a model writes, as by [`with_summary_by`].
pub const SUMMARY_PROMPT: &str = "Summarize the result of this conversation in a few sentences. Give the result itself, and say \
                                  nothing about the conversation or this request.";
