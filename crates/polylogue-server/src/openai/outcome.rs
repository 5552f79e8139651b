//! How a run ended, in the words of chat completions.

use polylogue_core::{Body, Event, StopReason, Summary};
use serde_json::{Value, json};

/// What happened in a conversation since a request.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Of the events since then.
    summary: Summary,
    closed: Option<(StopReason, String)>,
    question: Option<String>,
    failure: Option<String>,
    last: Option<String>,
}

/// How a response ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finish {
    pub(super) reason: &'static str,
    pub(super) content: String,
}

impl Outcome {
    /// Adds the next event.
    pub(super) fn add(&mut self, event: &Event) {
        self.summary.add(event, true);
        match &event.body {
            Body::Closed { reason, summary } if event.at.is_root() => {
                self.closed = Some((reason.clone(), content(reason, summary)));
            }
            Body::Reopened { .. } if event.at.is_root() => self.closed = None,
            Body::InputRequired(question) if self.question.is_none() => {
                self.question = Some(question.text.to_string());
            }
            Body::InputProvided { .. } => self.question = None,
            Body::Failed { error, .. } => self.failure = Some(error.message.to_string()),
            Body::TurnStarted { .. } => self.failure = None,
            Body::Message(message) if event.at.is_root() && !message.to.is_private() => {
                self.last = Some(message.as_text().into_owned());
            }
            _ => {}
        }
    }

    /// How the response ends; the error is that of a turn.
    pub(super) fn finish(&self) -> Result<Finish, String> {
        let stop = |content: String| Finish { reason: "stop", content };
        Ok(match (&self.closed, &self.question) {
            (Some((reason, content)), _) => Finish { reason: word(reason), content: content.clone() },
            (None, Some(question)) => stop(question.clone()),
            (None, None) => match (&self.failure, &self.last) {
                (Some(failure), _) => return Err(failure.clone()),
                (None, last) => stop(last.clone().unwrap_or_else(|| "(stopped)".into())),
            },
        })
    }

    /// The tokens, if all are known.
    pub(super) fn usage(&self) -> Option<Value> {
        let usage = &self.summary.usage;
        (usage.calls > 0 && usage.unmetered == 0).then(|| {
            json!({
                "prompt_tokens": usage.input,
                "completion_tokens": usage.output,
                "total_tokens": usage.input.saturating_add(usage.output),
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            })
        })
    }

    /// What only this server says: the conversation, and its own words for the end.
    pub(super) fn extension(&self, conversation: &str, state: &Value) -> Value {
        let field = |name: &str| state.get(name).cloned().unwrap_or_default();
        json!({
            "conversation": conversation,
            "state": field("state"),
            "ended": field("ended"),
            "asked": field("asked"),
            "spent": self.summary.usage,
        })
    }
}

fn word(reason: &StopReason) -> &'static str {
    if is_limit_of_run(reason) { "length" } else { "stop" }
}

/// Whether a limit of the run ended it. What the team itself ends on, such as a loop or its own number of turns, is its result.
fn is_limit_of_run(reason: &StopReason) -> bool {
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

/// The result of a conversation that ended for `reason`. It is never empty: clients take an empty reply for an error.
pub(super) fn content(reason: &StopReason, summary: &str) -> String {
    match summary.trim() {
        "" => format!("({reason})"),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{OtherReason, RunOutcome};

    use super::*;

    #[test]
    fn s49_s50_a_limit_has_content_and_unknown_tokens_are_absent() {
        let limit = StopReason::Turns { limit: 3, next: None };
        assert_eq!((word(&limit), word(&StopReason::Finished)), ("length", "stop"));
        let silent = StopReason::NoOutput { ended: Box::new(limit.clone()) };
        let own = StopReason::from(OtherReason::new("stalled", "no progress", RunOutcome::Limit));
        assert_eq!((word(&silent), word(&own)), ("length", "stop"));
        assert_eq!(content(&limit, " "), format!("({limit})"));
        assert_eq!(content(&limit, " text\n"), "text");
        assert_eq!(Outcome::default().usage(), None);
        assert_eq!(Outcome::default().finish().unwrap().content, "(stopped)");
    }
}
