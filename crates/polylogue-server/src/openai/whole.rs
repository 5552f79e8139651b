//! A chat completion that is sent as a whole: a projection of the log with one frame, at its end.

use polylogue_core::Event;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::document::Head;
use super::outcome::Outcome;
use super::voice::content_of;
use crate::chat_options::ChatShow;
use crate::projection::{Frame, Projection};

/// The response, while the conversation is followed.
pub(super) struct Whole {
    head: Head,
    show: ChatShow,
    outcome: Outcome,
    /// The events that are shown.
    shown: Vec<Event>,
}

/// How a response ends.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    Document(Value),
    /// A turn has failed.
    Failed(String),
    /// The server stops.
    Interrupted,
}

impl End {
    fn frame(&self) -> Frame {
        Frame { data: json!(self).to_string(), ..Frame::default() }
    }

    /// That of a frame; `None` for what says nothing, such as a comment.
    pub(super) fn of(text: &str) -> Option<Self> {
        serde_json::from_str(text.strip_prefix("data: ")?.trim_end()).ok()
    }
}

impl Whole {
    pub(super) const fn new(head: Head, show: ChatShow, outcome: Outcome) -> Self {
        Self { head, show, outcome, shown: Vec::new() }
    }
}

impl Projection for Whole {
    fn opening(&mut self) -> String {
        String::new()
    }

    fn entry(&mut self, event: &Event) -> Vec<Frame> {
        self.outcome.add(event);
        let is_own = !self.outcome.is_over() && !self.outcome.is_ahead();
        if is_own && self.show == ChatShow::Transcript {
            self.shown.push(event.clone());
        }
        Vec::new()
    }

    fn is_over(&self) -> bool {
        self.outcome.is_over()
    }

    fn expects_more(&mut self) -> bool {
        self.outcome.is_awaited()
    }

    fn rest(&mut self, state: &Value) -> Option<Vec<Frame>> {
        let own = self.outcome.state();
        let extension = self.outcome.extension(&self.head.conversation, own.as_ref().unwrap_or(state));
        let end = match self.outcome.finish() {
            Ok(mut finish) => {
                finish.content = content_of(self.show, &self.shown, &finish.content);
                End::Document(self.head.completion(&finish, self.outcome.usage(), extension))
            }
            Err(failure) => End::Failed(failure),
        };
        Some(vec![end.frame()])
    }

    fn interrupted(&mut self) -> String {
        End::Interrupted.frame().text()
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Body, Message, Name, Path, StopReason, Timestamp};

    use super::*;

    fn whole_of(show: ChatShow, outcome: Outcome) -> Whole {
        let head =
            Head { id: "chatcmpl-1".into(), created: 7, model: "talk".into(), conversation: "log1".into() };
        Whole::new(head, show, outcome)
    }

    fn whole(show: ChatShow) -> Whole {
        whole_of(show, Outcome::default())
    }

    fn said(who: &str, text: &str) -> Body {
        Body::Message(Message::new(Name::new(who).unwrap(), text.to_owned()))
    }

    fn closed(summary: &str) -> Body {
        Body::Closed { reason: StopReason::Finished, summary: summary.into() }
    }

    fn end(whole: Whole, bodies: Vec<Body>) -> End {
        end_of(whole, bodies.into_iter().map(|body| (None, body)).collect())
    }

    fn end_of(mut whole: Whole, bodies: Vec<(Option<u64>, Body)>) -> End {
        for (seq, (inbox, body)) in (0..).zip(bodies) {
            let event = Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox, body };
            assert!(whole.entry(&event).is_empty());
        }
        let frames = whole.rest(&json!({"state": "closed"})).unwrap();
        let [frame] = frames.as_slice() else { panic!("{frames:?}") };
        End::of(&frame.text()).unwrap()
    }

    #[test]
    fn s45_golden_document_of_a_script() {
        for (show, content) in
            [(ChatShow::Result, "two"), (ChatShow::Transcript, "**Ann:** one\n\n**Bob:** two")]
        {
            let bodies = vec![said("Ann", "one"), said("Bob", "two"), closed("two")];
            let End::Document(document) = end(whole(show), bodies) else { panic!("it is whole") };
            let choice = json!({"index": 0, "message": {"role": "assistant", "content": content, "refusal": null},
                "finish_reason": "stop", "logprobs": null});
            assert_eq!(document["choices"], json!([choice]));
            assert_eq!(
                (&document["id"], &document["object"]),
                (&json!("chatcmpl-1"), &json!("chat.completion"))
            );
            let extension = &document["polylogue"];
            assert_eq!((&extension["conversation"], &extension["state"]), (&json!("log1"), &json!("closed")));
        }
    }

    #[test]
    fn s53_a_transcript_begins_with_the_message_of_the_request() {
        let sent = Body::Sent(Message::new(Name::user(), "More."));
        let all = vec![
            (None, said("Ann", "early")),
            (Some(7), sent),
            (None, said("Bob", "late")),
            (None, closed("late")),
        ];
        let whole = whole_of(ChatShow::Transcript, Outcome::of_message(Some(7)));
        let End::Document(document) = end_of(whole, all) else { panic!("it is whole") };
        assert_eq!(document["choices"][0]["message"]["content"], "**Bob:** late");
    }

    #[test]
    fn s54_a_failed_turn_is_no_document() {
        let failed =
            json!({"type": "failed", "who": "Ann", "error": {"fault": "provider", "message": "no model"}});
        let failed = serde_json::from_value(failed).unwrap();
        assert_eq!(end(whole(ChatShow::Result), vec![failed]), End::Failed("no model".into()));
    }

    #[test]
    fn what_is_no_end_is_passed_over() {
        assert_eq!(End::of(&whole(ChatShow::Result).interrupted()), Some(End::Interrupted));
        for text in ["", ":\n\n", "data: {}\n\n", "data: x\n\n"] {
            assert_eq!(End::of(text), None, "{text}");
        }
    }
}
