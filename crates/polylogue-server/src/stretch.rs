//! What has happened in a conversation since a request: a pure fold of its events, from which each protocol makes its result.

use polylogue_core::{Body, Event, FinishReason, StopReason, Summary};
use polylogue_runtime::question_text::LastMessages;

/// What has happened in a conversation since a request.
#[derive(Debug, Default, Clone)]
pub(crate) struct Stretch {
    /// Of the events since then.
    pub(crate) summary: Summary,
    /// Why it is closed, and its result.
    pub(crate) closed: Option<(StopReason, String)>,
    /// The oldest question since the last answer, for clients that show it alone.
    pub(crate) question: Option<String>,
    /// What the next question is asked with.
    pub(crate) received: LastMessages,
    /// Why the last turn failed.
    pub(crate) failure: Option<String>,
    /// Whether it was cancelled last.
    pub(crate) is_cancelled: bool,
    /// What was said last in the outermost chat.
    pub(crate) last: Option<String>,
    /// Whether the last reply of a model there was cut off at its greatest length.
    pub(crate) is_cut: bool,
}

impl Stretch {
    /// Adds the next event.
    pub(crate) fn add(&mut self, event: &Event) {
        self.summary.add(event, true);
        self.received.add(event);
        self.is_cancelled = matches!(event.body, Body::Cancelled { .. });
        match &event.body {
            Body::Closed { reason, summary } if event.chat.is_root() => {
                self.closed = Some((reason.clone(), summary.to_string()));
            }
            Body::Reopened { .. } if event.chat.is_root() => self.closed = None,
            Body::InputRequired(question) if self.question.is_none() => {
                self.question = Some(self.received.text(&event.chat, question));
            }
            Body::InputProvided { .. } => self.question = None,
            Body::Failed { error, .. } if !error.postponed => self.failure = Some(error.message.to_string()),
            Body::TurnStarted { .. } => self.failure = None,
            Body::ModelReplied(reply) if event.chat.is_root() => {
                self.is_cut = reply.finish == FinishReason::Length
            }
            Body::Message(message) if event.chat.is_root() && !message.to.is_private() => {
                self.last = Some(message.to_text().into_owned());
            }
            _ => {}
        }
    }
}

/// The result of a conversation that ended for `reason`. It is never empty: clients take an empty reply for an error.
pub(crate) fn content(reason: &StopReason, summary: &str) -> String {
    match summary.trim() {
        "" => format!("({reason})"),
        text => text.to_owned(),
    }
}

/// Whether a limit of the run ended it. What the team itself ends on, such as a loop or its own number of turns, is its result.
pub(crate) fn is_limit_of_run(reason: &StopReason) -> bool {
    match reason {
        StopReason::Turns { .. }
        | StopReason::Tokens { .. }
        | StopReason::Cost { .. }
        | StopReason::UnknownPrice { .. }
        | StopReason::Calls { .. }
        | StopReason::Time { .. }
        | StopReason::Allowance { .. }
        | StopReason::Bound { .. }
        | StopReason::Depth { .. } => true,
        StopReason::NoOutput { ended } => is_limit_of_run(ended),
        StopReason::All(reasons) => reasons.iter().any(is_limit_of_run),
        _ => false,
    }
}
