//! Summaries of conversations, which stores keep for lists.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bound_facts::BoundFacts;
use super::clock::Timestamp;
use super::event::{Body, Event};
use super::question::Question;
use crate::data::text;
use crate::{Name, Path, StopReason, TotalUsage};

/// A summary of a conversation for lists: a fold of its events. A store keeps it next to the log and updates it in the same write as
/// the events, so that lists read no logs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of events.
    pub events: u64,
    /// How far the conversation got.
    pub progress: Progress,
    /// Who is asked for input, and in which chats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<(Path, Name)>,
    /// Whether it was paused from outside.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_paused: bool,
    /// That it was cancelled from outside, and nothing has continued it since: the number of the cancellation in the inbox, 0 if it was not
    /// sent through one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<u64>,
    /// The beginning of the first task, [`TASK_CHARS`](Self::TASK_CHARS) at most.
    pub task: Arc<str>,
    /// The title that it was given last, instead of that of its [`Meta`](super::Meta). Empty: it has none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The time of the first event.
    #[serde(rename = "started_ms")]
    pub started: Timestamp,
    /// The time of the last event.
    #[serde(rename = "last_ms")]
    pub last: Timestamp,
    /// The number of turns of agents in all chats.
    pub turns: u64,
    /// The usage and cost of all model calls.
    pub usage: TotalUsage,
    /// What decides whether the bound of the run still applies.
    pub bound: BoundFacts,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// How far a conversation got.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// It has no event.
    #[default]
    New,
    /// It continues when it is run, or runs now.
    Open,
    /// Its last turn failed, with this error: its first line, [`ERROR_CHARS`](Summary::ERROR_CHARS) of it at most. Running it tries again.
    Failed(String),
    /// It is closed.
    Closed(StopReason),
}

impl Summary {
    /// Maximum length of [`task`](Self::task) in characters: the summary is written with every append.
    pub const TASK_CHARS: usize = 500;
    /// Maximum length of the error of [`Progress::Failed`] in characters. Of a longer one an ellipsis follows.
    pub const ERROR_CHARS: usize = 500;

    /// Creates the summary of a log. `has_team` is whether its [`Meta`](super::Meta) has a team.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>, has_team: bool) -> Self {
        let mut summary = Self::default();
        events.into_iter().for_each(|event| summary.add(event, has_team));
        summary
    }

    /// Adds the next event.
    pub fn add(&mut self, event: &Event, has_team: bool) {
        if self.events == 0 {
            self.started = event.time;
        }
        self.events = event.seq.saturating_add(1);
        self.last = event.time;
        self.usage.add_event(event);
        self.bound.add(event);
        add_turn(&mut self.turns, event);
        Question::track(&mut self.questions, event, |question| question.who.clone(), |who| who);
        match &event.body {
            Body::Paused => self.is_paused = true,
            Body::Resumed => (self.is_paused, self.cancelled) = (false, None),
            Body::Cancelled { .. } => self.cancelled = Some(event.inbox.unwrap_or_default()),
            Body::TurnStarted { .. } => self.cancelled = None,
            // An agent can be called in the step that a cancellation lets end: its turn does not begin.
            Body::Reopened { .. } if event.chat.is_root() => self.cancelled = None,
            Body::Sent(_) | Body::InputProvided { .. } if self.is_continued_by(event) => {
                self.cancelled = None
            }
            Body::TitleChanged { title } => self.title = Some(Arc::clone(title)),
            _ => {}
        }
        self.advance(event, has_team);
    }

    /// Whether a message or an answer was sent after the cancellation. One that waited for the end of a step is earlier than a cancellation that
    /// is before it in the log, and continues nothing.
    fn is_continued_by(&self, event: &Event) -> bool {
        event.inbox.zip(self.cancelled).is_none_or(|(sent, cancelled)| sent >= cancelled)
    }

    /// Returns whether a person has paused or cancelled the conversation, and nothing has continued it since.
    pub const fn is_stopped(&self) -> bool {
        self.is_paused || self.cancelled.is_some()
    }

    fn advance(&mut self, event: &Event, has_team: bool) {
        let is_closed = has_team && matches!(self.progress, Progress::Closed(_));
        self.progress = match &event.body {
            // A turn that the end left open waits, or ends, in a chat that stays closed.
            Body::InputProvided { .. } | Body::Message(_) | Body::Passed { .. } if is_closed => return,
            // What others do to a conversation changes nothing in it.
            Body::Charged(_) | Body::Sent(_) | Body::NextSpeaker { .. } => return,
            body if body.is_of_run() => return,
            // Of agents that are called without a chat around them, any chat may be the last to close.
            Body::Closed { reason, .. } if event.chat.is_root() || !has_team => {
                Progress::Closed(reason.clone())
            }
            Body::Failed { error, .. } if error.postponed => Progress::Open,
            Body::Failed { error, .. } => {
                let first = error.message.lines().next().unwrap_or_default();
                Progress::Failed(text::excerpt(first, Self::ERROR_CHARS))
            }
            Body::Opened(opening) => {
                if self.task.is_empty() {
                    self.task = opening.task.chars().take(Self::TASK_CHARS).collect::<String>().into();
                }
                Progress::Open
            }
            _ => Progress::Open,
        };
    }
}

/// Counts the turn that `event` ends, if it ends one.
pub(crate) fn add_turn(turns: &mut u64, event: &Event) {
    match &event.body {
        Body::Message(message) if message.to.is_private() => {}
        Body::Message(_) | Body::Passed { .. } | Body::Left { .. } | Body::Stopped { .. } => *turns += 1,
        // The turn of the outer chat ends next; the turns of its participants are what counts.
        Body::Closed { .. } if !event.chat.is_root() && event.chat.is_first() => {
            *turns = turns.saturating_sub(1);
        }
        _ => {}
    }
}

impl TotalUsage {
    /// Adds the usage that `event` reports, if any.
    pub(crate) fn add_event(&mut self, event: &Event) {
        match &event.body {
            Body::ModelReplied(reply) => self.add(reply),
            Body::Charged(charge) => self.charge(charge),
            Body::ToolReturned { result: outcome, .. } => {
                outcome.used.iter().for_each(|used| self.add_tool(used))
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, Message, TurnRequest};

    #[test]
    fn an_agent_that_is_called_in_the_last_step_of_a_cancelled_run_continues_nothing() {
        let (root, inner) = (Path::root(), Path::root().agent("Host.Helper").unwrap());
        let called = || Body::reopened(Some(Message::new(Name::user(), "Go.")));
        let begun = Body::TurnStarted { turns: vec![TurnRequest::to_all(Name::user())] };
        let cancelled = Body::Cancelled { now: false };
        for (at, body, is_stopped) in [
            (&inner, called(), true),
            (&root, called(), false),
            (&inner, begun.clone(), false),
            (&root, begun, false),
        ] {
            let events = [(&root, cancelled.clone()), (at, body.clone())].map(|(at, body)| {
                let (chat, time) = (at.clone(), Timestamp(0));
                Event { seq: 0, chat, time, ran_ms: 0, inbox: None, body }
            });
            assert_eq!(Summary::of(&events, true).is_stopped(), is_stopped, "{body:?} at `{at}`");
        }
    }

    #[test]
    fn a_list_shows_the_beginning_of_an_error() {
        let failed = |message: &str| {
            let error = Failure::from(&crate::Error::Bug(message.into()));
            let (chat, time, body) = (Path::root(), Timestamp(0), Body::Failed { who: Name::user(), error });
            let event = Event { seq: 0, chat, time, ran_ms: 0, inbox: None, body };
            Summary::of([&event], true).progress
        };
        assert_eq!(failed("status 500\n<html>"), Progress::Failed("status 500".into()));
        let page = "x".repeat(Summary::ERROR_CHARS + 1);
        let shown = format!("{}…", "x".repeat(Summary::ERROR_CHARS));
        assert_eq!(failed(&page), Progress::Failed(shown));
    }
}
