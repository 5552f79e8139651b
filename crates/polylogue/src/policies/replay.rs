//! Replays a chat, for policies that find their position in it.

use std::borrow::Cow;

use polylogue_core::{Body, Message, Name, Transcript};

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
    /// Index of its last event in [`Transcript::events`].
    pub(crate) end: usize,
}

impl<'a> ReplayStep<'a> {
    /// The text of the message; empty for a pass.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        self.message.map(Message::plain).unwrap_or_default()
    }
}

/// The turns and posted messages of a chat since it was last opened, in order.
///
/// A policy with many steps stores no position: it runs its procedure from the start, takes the result of each step
/// from here, and the first step without a result is the next.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    steps: Vec<ReplayStep<'a>>,
    at: usize,
}

impl<'a> Replay<'a> {
    pub(crate) fn of(chat: &'a Transcript) -> Self {
        let mut steps = Vec::new();
        let mut private: Vec<&Name> = Vec::new();
        for (end, event) in chat.events().iter().enumerate() {
            let (who, message) = match &event.body {
                Body::TurnStarted { turns: requests } => {
                    private = requests
                        .iter()
                        .filter(|request| request.to.is_private())
                        .map(|request| &request.who)
                        .collect();
                    continue;
                }
                Body::Reopened { message: Some(_), .. } => {
                    steps.clear();
                    continue;
                }
                Body::Posted(message) => {
                    let (kind, who) = (Kind::Posted, &message.from);
                    steps.push(ReplayStep { kind, who, message: Some(message), left: false, end });
                    continue;
                }
                Body::Message(message) => (&message.from, Some(message)),
                Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => (who, None),
                _ => continue,
            };
            let kind = if private.contains(&who) { Kind::Private } else { Kind::Chat };
            let left = matches!(event.body, Body::Left { .. });
            steps.push(ReplayStep { kind, who, message, left, end });
        }
        Self { steps, at: 0 }
    }

    /// The next turn or message of this kind by `who`, if there is one. Skips those of others.
    pub(crate) fn take(&mut self, kind: Kind, who: &Name) -> Option<ReplayStep<'a>> {
        let rest = self.steps.get(self.at..)?;
        let found = rest.iter().position(|step| step.kind == kind && step.who == who)?;
        let index = self.at + found;
        self.at = index + 1;
        self.steps.get(index).copied()
    }
}

/// Whether `who` is a participant and has not left.
pub(crate) fn is_present(chat: &Transcript, who: &Name) -> bool {
    chat.present().any(|name| name == who)
}
