//! The result of a call: how a run ended, in the words of MCP.

use polylogue_core::{OpenQuestion, RunOutcome, StopReason, TotalUsage};
use polylogue_mcp::serve::Answer;
use polylogue_runtime::question_text::{asks, in_words};
use polylogue_wire::conversation::{Outcome, PendingQuestion};
use serde::Serialize;
use serde_json::{Value, json};

use crate::schema::asked_schema;
use crate::stretch::{Stretch, content, is_limit_of_run};

/// The states of results.
const STATES: [&str; 7] = ["done", "limit", "budget", "waiting", "stopped", "no_output", "failed"];

/// The schema of structured results.
pub(super) fn output_schema() -> Value {
    json!({
        "type": "object",
        "required": ["conversation", "state", "result", "usage"],
        "properties": {
            "conversation": {"type": "string", "description": "Continues it in a later call"},
            "state": {"enum": STATES, "description": "`waiting`: a later call with `conversation` answers the first of `questions`"},
            "result": {"type": "string"},
            "questions": {"type": "array", "items": asked_schema(), "description": "The open questions, the oldest first"},
            "usage": {"type": "object", "description": "Usage since the call, where it is known"},
        },
    })
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CallResult {
    pub(super) state: &'static str,
    pub(super) text: String,
    pub(super) value: Value,
    pub(super) is_error: bool,
}

impl From<CallResult> for Answer {
    fn from(result: CallResult) -> Self {
        Self { texts: vec![result.text], value: Some(result.value), is_error: result.is_error }
    }
}

impl CallResult {
    /// The result of a conversation that is at rest, in this state.
    pub(super) fn of(stretch: &Stretch, conversation: &str, state: &Value) -> Self {
        let asked = asked(state);
        let last = stretch.last.as_deref().unwrap_or_default().trim();
        let (state, result, text, is_error) = match (&stretch.closed, asked.first(), &stretch.failure) {
            (Some((reason, summary)), ..) => closed(reason, summary),
            (None, Some(question), _) => (
                "waiting",
                last.to_owned(),
                waits(conversation, question, stretch.question.as_deref()),
                false,
            ),
            (None, None, Some(failure)) => {
                let text =
                    format!("{failure}\n(conversation `{conversation}`: a later call with it tries again)");
                ("failed", last.to_owned(), text, true)
            }
            (None, None, None) => {
                let text = format!("stopped (conversation `{conversation}`: a later call with it continues)");
                ("stopped", last.to_owned(), text, true)
            }
        };
        let usage = known(&stretch.summary.usage);
        let mut value =
            json!({"conversation": conversation, "state": state, "result": result, "usage": usage});
        if let Some(fields) = value.as_object_mut().filter(|_| state == "waiting") {
            fields.insert("questions".into(), asked.into());
        }
        Self { state, text, value, is_error }
    }
}

/// A limit of the run or a budget is an error; a limit that the team has set for itself is how it ends.
fn closed(reason: &StopReason, summary: &str) -> (&'static str, String, String, bool) {
    let outcome = reason.outcome();
    let is_error = is_limit_of_run(reason) || matches!(outcome, RunOutcome::Stopped | RunOutcome::NoOutput);
    let result = content(reason, summary);
    let text = match is_error && !summary.trim().is_empty() {
        true => format!("{result}\n(ended by {reason})"),
        false => result.clone(),
    };
    (Outcome::from(outcome).word(), result, text, is_error)
}

/// `text`: that of the question, if it is known with the last message.
fn waits(conversation: &str, question: &Value, text: Option<&str>) -> String {
    let open = serde_json::from_value::<PendingQuestion>(question.clone()).map(OpenQuestion::from);
    let (asks, own) = open.map_or_else(
        |_| Default::default(),
        |open| (format!("{}{}", open.question.who, asks(&open.question)), in_words(&open.question)),
    );
    let text = text.map_or(own, str::to_owned);
    format!(
        "{asks} {text}\n(a later call with `conversation`: `{conversation}` and the answer as `message` continues)"
    )
}

/// The open questions of a state.
fn asked(state: &Value) -> Vec<Value> {
    state.get("questions").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Usage without the figures that are not known of all calls.
fn known(usage: &TotalUsage) -> Value {
    let mut known = json!({"calls": usage.calls});
    let Some(fields) = known.as_object_mut() else { return known };
    if usage.unmetered == 0 && usage.calls > 0 {
        fields.insert("input".into(), usage.input.into());
        fields.insert("output".into(), usage.output.into());
    }
    if usage.unpriced == 0 && usage.calls > 0 {
        fields.insert("cost".into(), json!(usage.cost));
    }
    known
}

#[cfg(test)]
mod tests {
    use polylogue_core::{
        AnswerChoice, AnswerEffect, Name, OtherReason, Path, Question, QuestionKind, Timestamp,
    };

    use super::*;
    use crate::fields;

    fn ended(reason: StopReason, summary: &str) -> CallResult {
        let stretch = Stretch { closed: Some((reason, summary.into())), ..Stretch::default() };
        CallResult::of(&stretch, "log1", &json!({"state": "closed"}))
    }

    #[test]
    fn s73_golden_endings() {
        let own = |outcome| StopReason::from(OtherReason::new("stalled", "no progress", outcome));
        let turns = StopReason::Turns { limit: 3, next: None };
        for (reason, summary, state, text, is_error) in [
            (StopReason::Finished, "four", "done", "four", false),
            (own(RunOutcome::Done), "four", "done", "four", false),
            (own(RunOutcome::Limit), "four", "limit", "four", false),
            (turns.clone(), "four", "limit", "four\n(ended by the limit of 3 turns)", true),
            (turns, " ", "limit", "(the limit of 3 turns)", true),
            (
                StopReason::Tokens { limit: 9, used: 9, next: None, cut: None },
                "four",
                "budget",
                "four\n(ended by the limit of 9 tokens (9 used))",
                true,
            ),
            (
                StopReason::Stopped { by: "Pat".into() },
                "four",
                "stopped",
                "four\n(ended by stopped by Pat)",
                true,
            ),
        ] {
            let result = ended(reason, summary);
            assert_eq!((result.state, result.is_error), (state, is_error), "{text}");
            assert_eq!(result.text, text);
            assert!(STATES.contains(&result.state));
        }
        let value = json!({"conversation": "log1", "state": "done", "result": "four", "usage": {"calls": 0}});
        assert_eq!(ended(StopReason::Finished, "four").value, value);
    }

    #[test]
    fn s77_golden_waiting_result() {
        let choices = vec![AnswerChoice { answer: "exit".into(), effect: AnswerEffect::Leave, label: None }];
        let question = Question {
            kind: QuestionKind::Turn,
            choices,
            ..Question::new(Name::new("Pat").unwrap(), "Which?")
        };
        let open = OpenQuestion { chat: Path::root(), seq: 5, asked: Timestamp(1), question };
        let asked = json!([PendingQuestion::from(&open)]);
        let result =
            CallResult::of(&Stretch::default(), "log1", &json!({"state": "waiting", "questions": asked}));
        assert_eq!((result.state, result.is_error), ("waiting", false));
        assert_eq!(result.value["questions"], asked);
        let [question] = result.value["questions"].as_array().unwrap().as_slice() else { panic!("{asked}") };
        assert!(fields::check(question, &output_schema()["properties"]["questions"]["items"], "").is_ok());
        let text = "Which? The answer is your message, and the answer `exit` leaves the chat.";
        assert_eq!(
            result.text,
            format!(
                "Pat is asked: {text}\n(a later call with `conversation`: `log1` and the answer as `message` continues)"
            )
        );
    }

    #[test]
    fn unknown_figures_are_absent() {
        let mut usage = TotalUsage { calls: 2, input: 3, output: 4, ..TotalUsage::default() };
        assert_eq!(known(&usage)["input"], 3);
        (usage.unmetered, usage.unpriced) = (1, 1);
        assert_eq!(known(&usage), json!({"calls": 2}));
    }
}
