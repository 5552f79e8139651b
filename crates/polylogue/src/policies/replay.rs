//! Replays a chat, for policies that find their position in it.

use std::borrow::Cow;
use std::sync::Arc;

use polylogue_core::{Body, Chooser, Event, Message, Name, Transcript, TurnRequest};

/// How a message was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A turn in the chat.
    Chat,
    /// A private turn.
    Private,
    /// Posted by the policy.
    Posted,
}

/// A finished turn, or a posted message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplayStep<'a> {
    pub(crate) kind: Kind,
    pub(crate) who: &'a Name,
    pub(crate) message: Option<&'a Message>,
    /// Whether the turn ended with its agent leaving.
    pub(crate) left: bool,
    /// Whether the turn ended the chat: when that is reopened, the turn is not over.
    ended_chat: bool,
    /// Whether the turn began a background task, whose result is said in a later one.
    pub(crate) begins: bool,
    /// Index of its first event in [`Transcript::events`].
    begin: usize,
    /// Index of its last event in [`Transcript::events`].
    pub(crate) end: usize,
}

impl<'a> ReplayStep<'a> {
    /// The text of the message; empty for a pass.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        self.message.map(Message::text).unwrap_or_default()
    }
}

/// The turns and posted messages of a chat since it was last opened, in order, without turns that ended the chat before it continued.
///
/// A policy with many steps stores no position: it runs its procedure from the start, takes the result of each step
/// from here, and the first step without a result is the next.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    steps: Vec<ReplayStep<'a>>,
    at: usize,
    /// Turns for the results of earlier ones, which were background tasks.
    results: Vec<ReplayStep<'a>>,
}

impl<'a> Replay<'a> {
    pub(crate) fn of(chat: &'a Transcript) -> Self {
        let (mut steps, mut results) = (Vec::new(), Vec::new());
        let (mut begun, mut begin): (&[TurnRequest], usize) = (&[], 0);
        let mut working: Vec<&Name> = Vec::new();
        for (end, event) in chat.events().iter().enumerate().skip(first_since_opened(chat)) {
            let (who, message) = match &event.body {
                Body::TurnStarted { turns: requests } => {
                    (begun, begin) = (requests, end);
                    working.clear();
                    continue;
                }
                Body::BackgroundStarted(task) if task.turn => {
                    working.push(&task.who);
                    continue;
                }
                Body::Reopened { message: Some(_), .. } => {
                    steps.clear();
                    results.clear();
                    continue;
                }
                Body::Reopened { message: None, .. } => {
                    steps.retain(|step: &ReplayStep<'_>| !step.ended_chat);
                    results.retain(|step: &ReplayStep<'_>| !step.ended_chat);
                    continue;
                }
                Body::Posted(message) => {
                    let (kind, who, begins) = (Kind::Posted, &message.from, false);
                    steps.push(ReplayStep {
                        kind,
                        who,
                        message: Some(message),
                        left: false,
                        ended_chat: false,
                        begins,
                        begin: end,
                        end,
                    });
                    continue;
                }
                Body::Message(message) => (&message.from, Some(message)),
                Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => (who, None),
                _ => continue,
            };
            let request = begun.iter().find(|request| request.who == *who);
            let is_private = request.is_some_and(|request| request.to.is_private());
            let kind = if is_private { Kind::Private } else { Kind::Chat };
            let left = matches!(event.body, Body::Left { .. });
            let ended_chat = matches!(event.body, Body::Stopped { .. });
            let begins = working.contains(&who);
            let step = ReplayStep { kind, who, message, left, ended_chat, begins, begin, end };
            let is_result = request.is_some_and(|request| is_for_result(request, &steps));
            if is_result { &mut results } else { &mut steps }.push(step);
        }
        Self { steps, at: 0, results }
    }

    /// The next turn for a result of a participant that `is_of` accepts, if it ended before the next step; any if the run `waits` for it.
    pub(crate) fn take_result(
        &mut self,
        is_of: impl Fn(&Name) -> bool,
        waits: bool,
    ) -> Option<ReplayStep<'a>> {
        let next = self.steps.get(self.at).map(|step| step.begin).filter(|_| !waits);
        let is_next = |step: &ReplayStep<'_>| is_of(step.who) && next.is_none_or(|next| step.end < next);
        let at = self.results.iter().position(is_next)?;
        Some(self.results.remove(at))
    }

    /// The next turn or message of this kind by `who`, if there is one. Skips those of others.
    pub(crate) fn take(&mut self, kind: Kind, who: &Name) -> Option<ReplayStep<'a>> {
        let index = self.place(kind, who)?;
        self.at = index + 1;
        self.steps.get(index).copied()
    }

    /// The index of the first event of the next step in [`Transcript::events`], if there is one.
    pub(crate) fn next_begins(&self) -> Option<usize> {
        self.steps.get(self.at).map(|step| step.begin)
    }

    /// As [`take`](Self::take), without skipping it.
    pub(crate) fn peek(&self, kind: Kind, who: &Name) -> Option<ReplayStep<'a>> {
        self.steps.get(self.place(kind, who)?).copied()
    }

    fn place(&self, kind: Kind, who: &Name) -> Option<usize> {
        let rest = self.steps.get(self.at..)?;
        let found = rest.iter().position(|step| step.kind == kind && step.who == who)?;
        Some(self.at + found)
    }
}

/// The index of the first event that counts since the chat was last opened: that with which the turns began that were open then.
fn first_since_opened(chat: &Transcript) -> usize {
    let events = chat.events();
    let is_opened = |event: &Arc<Event>| matches!(event.body, Body::Reopened { message: Some(_), .. });
    let opened = events.iter().rposition(is_opened).unwrap_or_default();
    let before = events.get(..opened).unwrap_or_default();
    let is_begun = |event: &Arc<Event>| matches!(event.body, Body::TurnStarted { .. });
    before.iter().rposition(is_begun).unwrap_or_default()
}

/// The participants who joined late since the chat was last opened, in order, with the indices of these events in
/// [`Transcript::events`]: earlier steps were made without them.
pub(crate) fn joined(chat: &Transcript) -> Vec<(usize, &Name)> {
    let (mut known, mut joined): (Vec<&Name>, Vec<(usize, &Name)>) = (Vec::new(), Vec::new());
    for (at, event) in chat.events().iter().enumerate() {
        match &event.body {
            Body::Opened(opening) => known.extend(&opening.participants),
            Body::Reopened { message: Some(_), .. } => joined.clear(),
            Body::Joined { who, .. } if !known.contains(&who) => {
                known.push(who);
                joined.push((at, who));
            }
            _ => {}
        }
    }
    joined
}

/// Whether `request` is a turn for the result of one of `steps` that was a background task.
fn is_for_result(request: &TurnRequest, steps: &[ReplayStep<'_>]) -> bool {
    let by = request.choice.as_ref().map(|choice| &choice.by);
    by == Some(&Chooser::Background) && steps.iter().any(|step| step.begins && *step.who == request.who)
}

/// Whether `who` is a participant and has not left.
pub(crate) fn is_present(chat: &Transcript, who: &Name) -> bool {
    chat.present().any(|name| name == who)
}
