//! Questions without an answer: a fold of events.

use std::sync::Arc;

use super::clock::Timestamp;
use super::event::{Body, Event};
use super::question::Question;
use crate::{Name, Path};

/// A question without an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    /// Its chat.
    pub at: Path,
    /// The `seq` of the event that asks, which identifies it in its conversation.
    pub seq: u64,
    /// When it was asked.
    pub asked: Timestamp,
    /// The question.
    pub question: Question,
}

impl OpenQuestion {
    /// The questions without an answer in the log `events`, oldest first.
    #[must_use]
    pub fn of(events: &[Arc<Event>]) -> Vec<Self> {
        let mut open: Vec<(Path, (u64, Timestamp, Question))> = Vec::new();
        for event in events {
            let new = |question: &Question| (event.seq, event.time, question.clone());
            Question::track(&mut open, event, new, |(.., question)| &question.who);
        }
        let question = |(at, (seq, asked, question))| Self { at, seq, asked, question };
        open.into_iter().map(question).collect()
    }

    /// When its default answer counts; `None` if it waits without a limit.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        let default = self.question.default.as_ref()?;
        Some(Timestamp(self.asked.0.saturating_add(default.after_ms)))
    }
}

impl Question {
    /// The questions without an answer in the log `events`, with the paths of their chats.
    #[must_use]
    pub fn open_in(events: &[Arc<Event>]) -> Vec<(Path, Self)> {
        OpenQuestion::of(events).into_iter().map(|open| (open.at, open.question)).collect()
    }

    /// Keeps track of open questions: adds the one that `event` asks, as `new` makes it, and removes those that it settles.
    pub(super) fn track<T>(
        open: &mut Vec<(Path, T)>,
        event: &Event,
        new: impl Fn(&Self) -> T,
        who: impl Fn(&T) -> &Name,
    ) {
        match &event.body {
            Body::InputRequired(question) => open.push((event.at.clone(), new(question))),
            Body::InputProvided { to, .. } => open.retain(|(at, asked)| *at != event.at || who(asked) != to),
            // A call is rolled back with all chats and questions within it.
            Body::RolledBack { .. } => open.retain(|(at, _)| *at != event.at),
            // Those within a task that has ended have no answer any more.
            Body::BackgroundEnded(result) => {
                let is_within = |at: &Path| {
                    at.as_background_of(&event.at).is_some_and(|(who, number)| result.is_of(who, number))
                };
                open.retain(|(at, _)| !is_within(at));
            }
            _ => {}
        }
    }
}
