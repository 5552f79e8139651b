//! How a run ended, in the words of chat completions.

use std::sync::Arc;

use polylogue_core::{Body, Event, OpenQuestion, StopReason, Summary};
use polylogue_wire::conversation::{ConversationState, PendingQuestion};
use polylogue_wire::{stream::Status, usage};
use serde_json::{Value, json};

use crate::conversation::ending;
use crate::stretch::{Stretch, content, is_limit_of_run};

/// What happened in a conversation because of a request: what comes after its turn is left out, so that a repeated request has the same.
#[derive(Debug, Default, Clone)]
pub(super) struct Outcome {
    turn: Turn,
    stretch: Stretch,
    /// Whether no public turn has begun since its message: a chat that closes before continues for it.
    is_unheard: bool,
    /// Questions and answers.
    asked: Vec<Arc<Event>>,
    /// How often it was [looked again](Self::is_awaited).
    looks: usize,
}

/// How often it is looked again whether what a request has sent is carried out.
const LOOKS: usize = 8;

/// Where the turn of a request is: from what it has sent until the conversation is closed, or continues because of something else.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// What the request has sent, the message of this number in the inbox, is not in the log yet.
    Ahead(Option<u64>),
    /// The request has begun the conversation, or its message is in the log.
    #[default]
    Begun,
    Over,
}

/// How a response ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finish {
    pub(super) reason: &'static str,
    pub(super) content: String,
}

impl Outcome {
    /// Of a request whose message has this number in the inbox, if it is known.
    pub(super) fn of_message(number: Option<u64>) -> Self {
        Self { turn: Turn::Ahead(number), ..Self::default() }
    }

    /// Adds the next event, unless the turn has ended.
    pub(super) fn add(&mut self, event: &Event) {
        match self.turn {
            Turn::Ahead(Some(number)) if event.inbox == Some(number) => {
                self.turn = Turn::Begun;
                // What was used until then belongs to an earlier response, too.
                self.stretch.summary = Summary::default();
                self.is_unheard = matches!(event.body, Body::Sent(_));
            }
            Turn::Begun if self.ends_before(event) => self.turn = Turn::Over,
            _ => {}
        }
        if self.turn == Turn::Over {
            return;
        }
        if event.chat.is_root() && begins_public_turn(&event.body) {
            self.is_unheard = false;
        }
        self.stretch.add(event);
        if matches!(event.body, Body::InputRequired(_) | Body::InputProvided { .. }) {
            self.asked.push(Arc::new(event.clone()));
        }
    }

    /// Whether the turn has ended when `event` comes: what it has asked is answered by another request.
    fn ends_before(&self, event: &Event) -> bool {
        let is_sent =
            matches!(event.body, Body::InputProvided { .. } | Body::Sent(_)) && event.inbox.is_some();
        let continues = self.is_unheard && matches!(event.body, Body::Reopened { sent: true, .. });
        (self.stretch.closed.is_some() && !continues) || (self.stretch.question.is_some() && is_sent)
    }

    /// Whether what the request has sent is yet to come: what happens until then belongs to an earlier response.
    pub(super) const fn is_ahead(&self) -> bool {
        matches!(self.turn, Turn::Ahead(Some(_)))
    }

    /// Whether it is looked again, though the conversation does not run: what the request has sent is not carried out yet, and the process that
    /// had it open may be just about to.
    pub(super) const fn is_awaited(&mut self) -> bool {
        let is_awaited = self.is_ahead() && self.looks < LOOKS;
        if is_awaited {
            self.looks += 1;
        }
        is_awaited
    }

    /// Whether something has come after the turn.
    pub(super) fn is_over(&self) -> bool {
        self.turn == Turn::Over
    }

    /// The state of the conversation at the end of the turn, if something has come after it.
    pub(super) fn state(&self) -> Option<Value> {
        if !self.is_over() {
            return None;
        }
        let status = match &self.stretch.closed {
            Some((reason, _)) => Status {
                state: ConversationState::Closed,
                ended: Some(ending(reason)),
                halted: None,
                questions: Vec::new(),
                in_progress: false,
            },
            None => {
                let questions = OpenQuestion::of(&self.asked).iter().map(PendingQuestion::from).collect();
                Status {
                    state: ConversationState::Waiting,
                    ended: None,
                    halted: None,
                    questions,
                    in_progress: false,
                }
            }
        };
        serde_json::to_value(status).ok()
    }

    /// How the response ends; the error is that of a turn.
    pub(super) fn finish(&self) -> Result<Finish, String> {
        let stop = |content: String| Finish { reason: "stop", content };
        let of = &self.stretch;
        Ok(match (&of.closed, &of.question) {
            (Some((reason, summary)), _) => {
                Finish { reason: word(reason, of.is_cut), content: content(reason, summary) }
            }
            (None, Some(question)) => stop(question.clone()),
            (None, None) => match (&of.failure, &of.last) {
                (Some(failure), _) => return Err(failure.clone()),
                (None, last) => stop(last.clone().unwrap_or_else(|| "(stopped)".into())),
            },
        })
    }

    /// The tokens, if all are known: none where all replies are from a cache.
    pub(super) fn usage(&self) -> Option<Value> {
        let usage = &self.stretch.summary.usage;
        (usage.calls + usage.saved.calls > 0 && usage.unmetered == 0).then(|| {
            let mut tokens = json!({
                "prompt_tokens": usage.input,
                "completion_tokens": usage.output,
                "total_tokens": usage.input.saturating_add(usage.output),
            });
            // Without any, whether models have reasoned is not known.
            if let Some(fields) = tokens.as_object_mut().filter(|_| usage.reasoning > 0) {
                let details = json!({"reasoning_tokens": usage.reasoning});
                fields.insert("completion_tokens_details".into(), details);
            }
            tokens
        })
    }

    /// What only this server says: the conversation, and its own words for the end.
    pub(super) fn extension(&self, conversation: &str, state: &Value) -> Value {
        let field = |name: &str| state.get(name).cloned().unwrap_or_default();
        json!({
            "conversation": conversation,
            "state": field("state"),
            "ended": field("ended"),
            "questions": field("questions"),
            "usage": usage::known(&self.stretch.summary.usage).unwrap_or_default(),
        })
    }
}

/// Whether a turn begins that is not private.
fn begins_public_turn(body: &Body) -> bool {
    matches!(body, Body::TurnStarted { turns } if turns.iter().any(|turn| !turn.to.is_private()))
}

/// `is_cut`: whether the last reply was cut off.
fn word(reason: &StopReason, is_cut: bool) -> &'static str {
    if is_cut || is_limit_of_run(reason) { "length" } else { "stop" }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{
        CacheSavings, LimitOverrides, Message, Name, OtherReason, Path, RunOutcome, Timestamp, TotalUsage,
        TurnRequest,
    };

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

    #[test]
    fn s53_a_message_that_comes_while_the_last_turn_is_written_has_the_reply_to_it() {
        let ann = Name::new("Ann").unwrap();
        let said = |text: &str| Body::Message(Message::new(ann.clone(), text));
        let closed = |text: &str| Body::Closed { reason: StopReason::Finished, summary: text.into() };
        let turn = || Body::TurnStarted { turns: vec![TurnRequest::to_all(ann.clone())] };
        let sent = || Body::Sent(Message::new(Name::user(), "More."));
        let again = || Body::Reopened { message: None, more: LimitOverrides::default(), sent: true };
        let of = |bodies: Vec<(Option<u64>, Body)>| {
            let mut outcome = Outcome::of_message(Some(7));
            for (seq, (inbox, body)) in (0..).zip(bodies) {
                outcome.add(&Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox, body });
            }
            let (content, turns) = (outcome.finish().unwrap().content, outcome.stretch.summary.turns);
            (content, turns, outcome.is_over())
        };
        let own = [(Some(7), sent()), (None, closed("one")), (None, again())];
        let before = [(None, turn()), (None, said("one"))];
        let next = [(None, turn()), (None, said("two")), (None, closed("two"))];
        let all: Vec<_> = before.into_iter().chain(own).chain(next).collect();
        // Then it continues for a message that the turn has not heard.
        let other = [(Some(8), sent()), (None, closed("two")), (None, again())];
        let followed: Vec<_> = all[..7].iter().cloned().chain(other).collect();
        assert_eq!(of(followed), ("two".into(), 1, true));
        assert_eq!(of(all), ("two".into(), 1, false));
    }

    #[test]
    fn s53_what_was_sent_is_awaited_for_a_while_after_an_earlier_end() {
        let event = |inbox| Event {
            seq: 0,
            chat: Path::root(),
            time: Timestamp(0),
            ran_ms: 0,
            inbox,
            body: Body::Sent(Message::new(Name::user(), "More.")),
        };
        let mut outcome = Outcome::of_message(Some(7));
        outcome.add(&event(Some(6)));
        assert!((0..LOOKS).all(|_| outcome.is_awaited()) && !outcome.is_awaited());
        let mut outcome = Outcome::of_message(Some(7));
        assert!(outcome.is_awaited());
        outcome.add(&event(Some(7)));
        assert!(!outcome.is_awaited() && !Outcome::default().is_awaited());
    }

    #[test]
    fn s49_tokens_of_reasoning_are_absent_where_no_model_reports_any() {
        let usage = |reasoning| {
            let usage = TotalUsage { calls: 1, input: 3, output: 2, reasoning, ..TotalUsage::default() };
            let summary = Summary { usage, ..Summary::default() };
            let stretch = Stretch { summary, ..Stretch::default() };
            Outcome { stretch, ..Outcome::default() }.usage().unwrap()
        };
        let tokens = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
        assert_eq!(usage(0), tokens);
        assert_eq!(usage(1)["completion_tokens_details"], json!({"reasoning_tokens": 1}));
    }

    #[test]
    fn replies_from_a_cache_are_no_tokens_and_those_of_no_call_are_unknown() {
        let usage = |saved| {
            let usage = TotalUsage {
                saved: CacheSavings { calls: saved, ..CacheSavings::default() },
                ..TotalUsage::default()
            };
            let stretch = Stretch { summary: Summary { usage, ..Summary::default() }, ..Stretch::default() };
            Outcome { stretch, ..Outcome::default() }.usage()
        };
        assert_eq!(usage(0), None);
        assert_eq!(usage(2), Some(json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})));
    }
}
