//! What was done so far, for policies that find their place by going over it again.

use std::borrow::Cow;

use polylogue_core::{Body, Message, Name, Transcript};

/// How something came to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A turn in the room.
    Room,
    /// A turn aside.
    Aside,
    /// The policy placed it.
    Posted,
}

/// A turn that ended, or a message that was placed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplayStep<'a> {
    pub(crate) kind: Kind,
    pub(crate) who: &'a Name,
    pub(crate) message: Option<&'a Message>,
    /// Whether the turn ended with its agent leaving.
    pub(crate) left: bool,
    /// Where the event that ended it stands in [`Transcript::events`].
    pub(crate) end: usize,
}

impl<'a> ReplayStep<'a> {
    /// What was said; nothing if it was a pass.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        self.message.map(Message::plain).unwrap_or_default()
    }
}

/// The turns and placed messages of a chat since it was last opened, taken one by one.
///
/// A policy whose next step depends on many before it does not keep where it is: it goes through its own procedure from
/// the beginning, takes from here what came of each step, and the first step of which nothing is here is the next.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    beats: Vec<ReplayStep<'a>>,
    at: usize,
}

impl<'a> Replay<'a> {
    pub(crate) fn of(chat: &'a Transcript) -> Self {
        let mut beats = Vec::new();
        let mut asides: Vec<&Name> = Vec::new();
        for (end, event) in chat.events().iter().enumerate() {
            let (who, message) = match &event.body {
                Body::TurnStarted { turns: cues } => {
                    asides = cues.iter().filter(|cue| cue.to.is_private()).map(|cue| &cue.who).collect();
                    continue;
                }
                Body::Reopened { message: Some(_) } => {
                    beats.clear();
                    continue;
                }
                Body::Posted(message) => {
                    let (kind, who) = (Kind::Posted, &message.from);
                    beats.push(ReplayStep { kind, who, message: Some(message), left: false, end });
                    continue;
                }
                Body::Message(message) => (&message.from, Some(message)),
                Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => (who, None),
                _ => continue,
            };
            let kind = if asides.contains(&who) { Kind::Aside } else { Kind::Room };
            let left = matches!(event.body, Body::Left { .. });
            beats.push(ReplayStep { kind, who, message, left, end });
        }
        Self { beats, at: 0 }
    }

    /// The next of this kind that `who` did, if it was done. What was done between is somebody else's business.
    pub(crate) fn take(&mut self, kind: Kind, who: &Name) -> Option<ReplayStep<'a>> {
        let rest = self.beats.get(self.at..)?;
        let found = rest.iter().position(|beat| beat.kind == kind && beat.who == who)?;
        let index = self.at + found;
        self.at = index + 1;
        self.beats.get(index).copied()
    }
}

/// Whether `who` is a member and has not left.
pub(crate) fn is_present(chat: &Transcript, who: &Name) -> bool {
    chat.present().any(|name| name == who)
}
