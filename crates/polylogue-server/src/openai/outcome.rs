//! How a run ended, in the words of chat completions.

use polylogue_core::{Event, StopReason};
use polylogue_wire::spent;
use serde_json::{Value, json};

use crate::stretch::{Stretch, content, is_limit_of_run};

/// What happened in a conversation since a request.
#[derive(Debug, Default)]
pub(super) struct Outcome(Stretch);

/// How a response ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finish {
    pub(super) reason: &'static str,
    pub(super) content: String,
}

impl Outcome {
    /// Adds the next event.
    pub(super) fn add(&mut self, event: &Event) {
        self.0.add(event);
    }

    /// How the response ends; the error is that of a turn.
    pub(super) fn finish(&self) -> Result<Finish, String> {
        let stop = |content: String| Finish { reason: "stop", content };
        Ok(match (&self.0.closed, &self.0.question) {
            (Some((reason, summary)), _) => {
                Finish { reason: word(reason, self.0.is_cut), content: content(reason, summary) }
            }
            (None, Some(question)) => stop(question.clone()),
            (None, None) => match (&self.0.failure, &self.0.last) {
                (Some(failure), _) => return Err(failure.clone()),
                (None, last) => stop(last.clone().unwrap_or_else(|| "(stopped)".into())),
            },
        })
    }

    /// The tokens, if all are known.
    pub(super) fn usage(&self) -> Option<Value> {
        let usage = &self.0.summary.usage;
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
            "spent": spent::known(&self.0.summary.usage).unwrap_or_default(),
        })
    }
}

/// `is_cut`: whether the last reply was cut off.
fn word(reason: &StopReason, is_cut: bool) -> &'static str {
    if is_cut || is_limit_of_run(reason) { "length" } else { "stop" }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{OtherReason, RunOutcome};

    use super::*;

    #[test]
    fn s49_s50_a_limit_has_content_and_unknown_tokens_are_absent() {
        let limit = StopReason::Turns { limit: 3, next: None };
        assert_eq!((word(&limit, false), word(&StopReason::Finished, false)), ("length", "stop"));
        assert_eq!(word(&StopReason::Finished, true), "length");
        let silent = StopReason::NoOutput { ended: Box::new(limit.clone()) };
        let own = StopReason::from(OtherReason::new("stalled", "no progress", RunOutcome::Limit));
        assert_eq!((word(&silent, false), word(&own, false)), ("length", "stop"));
        assert_eq!(content(&limit, " "), format!("({limit})"));
        assert_eq!(content(&limit, " text\n"), "text");
        assert_eq!(Outcome::default().usage(), None);
        assert_eq!(Outcome::default().finish().unwrap().content, "(stopped)");
    }
}
