//! Approvals of calls that were not made yet: a fold of events.

use super::event::{Body, Event};
use super::question::Question;
use crate::{Name, Path, ToolCall};

/// An approval that a person gave to a call that was not made yet.
///
/// It counts in its own conversation, and once: where events are copied, or come from elsewhere, the call would be made without a question.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenApproval {
    /// The path of its chat.
    pub chat: Path,
    /// The participant that makes the call.
    pub who: Name,
    /// The call that the question showed. The answer can have other arguments, or other code.
    pub call: ToolCall,
    /// The `seq` of the event that asks.
    pub asked: u64,
    /// The `seq` of the event that answers.
    pub answered: u64,
}

impl GivenApproval {
    /// Returns the approvals of calls that were not made in `events`, the beginning of a log, oldest first.
    ///
    /// ```
    /// use polylogue_core::{Event, GivenApproval};
    /// let none: [Event; 0] = [];
    /// assert!(GivenApproval::of(&none).is_empty());
    /// ```
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<Self> {
        let mut asked: Vec<(Path, (u64, Question))> = Vec::new();
        let mut given: Vec<(Path, Self)> = Vec::new();
        for event in events {
            match &event.body {
                // The answer before was unclear.
                Body::InputRequired(Question { who, call: Some(call), .. }) => {
                    given.retain(|(at, given)| *at != event.chat || !given.is_of(who, &call.id));
                }
                Body::InputProvided { to, text, .. } if !is_refusal(text) => {
                    given.extend(Self::answered_by(event, to, &asked));
                }
                Body::ToolCalled { who, call: ToolCall { id, .. } } | Body::ToolReturned { who, id, .. } => {
                    given.retain(|(at, given)| *at != event.chat || !given.is_of(who, id));
                }
                _ => Question::settle(&mut given, event, |given| &given.who),
            }
            let new = |question: &Question| (event.seq, question.clone());
            Question::track(&mut asked, event, new, |(_, question)| &question.who);
        }
        given.into_iter().map(|(_, given)| given).collect()
    }

    /// What `event` answers of the questions `asked` for approval by `to`.
    fn answered_by(event: &Event, to: &Name, asked: &[(Path, (u64, Question))]) -> Vec<(Path, Self)> {
        let own = asked.iter().filter(|(at, (_, question))| *at == event.chat && question.who == *to);
        let given = own.filter_map(|(at, (seq, question))| {
            let (at, who, call) = (at.clone(), to.clone(), question.call.clone()?);
            let given = Self { chat: at.clone(), who, call, asked: *seq, answered: event.seq };
            Some((at, given))
        });
        given.collect()
    }

    fn is_of(&self, who: &Name, call: &str) -> bool {
        self.who == *who && self.call.id == call
    }
}

/// Whether an answer to a question for approval runs nothing, whatever follows its first word.
fn is_refusal(answer: &str) -> bool {
    let word = answer.trim().split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    ["no", "exit"].iter().any(|refusal| word.eq_ignore_ascii_case(refusal))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Message, Responder, Timestamp, ToolResult};

    const NONE: [(String, u64); 0] = [];

    fn ann() -> Name {
        Name::new("Ann").unwrap()
    }

    fn call(id: &str) -> ToolCall {
        ToolCall { id: id.into(), tool: "pay".into(), args: json!({}) }
    }

    fn asks(id: &str) -> Body {
        Body::InputRequired(Question { call: Some(call(id)), ..Question::new(ann(), "?") })
    }

    fn answers(text: &str) -> Body {
        Body::InputProvided { to: ann(), text: text.into(), by: Responder::default() }
    }

    fn calls(id: &str) -> Body {
        Body::ToolCalled { who: ann(), call: call(id) }
    }

    /// The ids of the approved calls that were not made in a chat with these events, with the events that ask.
    fn given(bodies: impl IntoIterator<Item = Body>) -> Vec<(String, u64)> {
        given_at(bodies.into_iter().map(|body| (Path::root(), body)))
    }

    fn given_at(bodies: impl IntoIterator<Item = (Path, Body)>) -> Vec<(String, u64)> {
        let event =
            |(seq, (at, body))| Event { seq, chat: at, time: Timestamp(0), ran_ms: 0, inbox: None, body };
        let events: Vec<Event> = (0..).zip(bodies).map(event).collect();
        GivenApproval::of(&events).into_iter().map(|given| (given.call.id, given.asked)).collect()
    }

    fn one(id: &str, asked: u64) -> Vec<(String, u64)> {
        vec![(id.to_owned(), asked)]
    }

    #[test]
    fn an_approval_is_given_until_its_call_is_made() {
        assert_eq!(given([asks("1"), answers("yes")]), one("1", 0));
        assert_eq!(given([asks("1"), answers("{\"amount\": 5}")]), one("1", 0), "with other arguments");
        let returned = Body::ToolReturned { who: ann(), id: "1".into(), result: ToolResult::done("") };
        for last in [calls("1"), returned, Body::Message(Message::new(ann(), "Done."))] {
            assert_eq!(given([asks("1"), answers("yes"), last.clone()]), NONE, "{last:?}");
        }
        let two = || [asks("1"), answers("yes"), asks("2"), answers("yes")];
        assert_eq!(given(two()), [one("1", 0), one("2", 2)].concat());
        assert_eq!(given(two().into_iter().chain([calls("1")])), one("2", 2));
        // The answer was unclear, and the question was asked again.
        assert_eq!(given([asks("1"), answers("ok"), asks("1")]), NONE);
        assert_eq!(given([asks("1"), answers("ok"), asks("1"), answers("yes")]), one("1", 2));
    }

    #[test]
    fn refusals_and_answers_to_other_questions_give_none() {
        for answer in ["no", "No, it is wrong.", " no", "exit"] {
            assert_eq!(given([asks("1"), answers(answer)]), NONE, "{answer}");
        }
        assert_eq!(given([Body::InputRequired(Question::new(ann(), "?")), answers("yes")]), NONE);
        assert_eq!(given([asks("1")]), NONE);
    }

    #[test]
    fn calls_in_other_chats_are_other_calls() {
        let inner = Path::root().child(&ann(), 1);
        let here = [asks("1"), answers("yes")].map(|body| (inner.clone(), body));
        let there = (Path::root(), calls("1"));
        assert_eq!(given_at(here.clone().into_iter().chain([there])), one("1", 0));
        assert_eq!(given_at(here.into_iter().chain([(inner.clone(), calls("1"))])), NONE);
    }
}
