//! What a call of MCP reports: a projection of the log.

use polylogue_core::{Body, Event};
use polylogue_mcp::serve::progress_line;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::result::CallResult;
use crate::projection::{Frame, Projection};
use crate::stretch::Stretch;

/// The frames of one call: a line for each message, then the result.
pub(super) struct Frames {
    conversation: String,
    /// The first event that is reported. Those before were reported to an earlier request of the same call.
    shown: u64,
    stretch: Stretch,
}

/// What a frame says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// A message.
    Progress(String),
    /// The conversation is at rest, in this state.
    Rest(Value),
    /// The server stops.
    Interrupted,
}

impl Frames {
    pub(super) fn new(conversation: &str, shown: u64) -> Self {
        Self { conversation: conversation.into(), shown, stretch: Stretch::default() }
    }
}

impl Step {
    fn frame(&self) -> Frame {
        Frame { data: json!(self).to_string(), ..Frame::default() }
    }

    /// The step of a frame; `None` for what says nothing, such as a comment.
    pub(super) fn of(text: &str) -> Option<Self> {
        serde_json::from_str(text.strip_prefix("data: ")?.trim_end()).ok()
    }
}

// Progress is by messages: pieces of parallel replies would mix.
impl Projection for Frames {
    fn opening(&mut self) -> String {
        String::new()
    }

    fn entry(&mut self, event: &Event) -> Vec<Frame> {
        self.stretch.add(event);
        let is_for_some = matches!(&event.body, Body::Message(message) if !message.to.is_all());
        let line = progress_line(event).filter(|_| event.seq >= self.shown && !is_for_some);
        line.map(|line| Step::Progress(line).frame()).into_iter().collect()
    }

    fn rest(&mut self, state: &Value) -> Option<Vec<Frame>> {
        let result = CallResult::of(&self.stretch, &self.conversation, state);
        Some(vec![Step::Rest(json!(result)).frame()])
    }

    fn interrupted(&mut self) -> String {
        Step::Interrupted.frame().text()
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Message, Name, Path, StopReason, Timestamp};

    use super::*;

    fn event(seq: u64, body: Body) -> Event {
        Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body }
    }

    fn script() -> Vec<Event> {
        let said = |who: &str, text: &str| Body::Message(Message::new(Name::new(who).unwrap(), text));
        vec![
            event(0, said("Ann", "one\ntwo")),
            event(1, said("Bob", &"x".repeat(300))),
            event(2, Body::Closed { reason: StopReason::Finished, summary: "three".into() }),
        ]
    }

    fn frames(mut frames: Frames) -> Vec<Step> {
        let mut all: Vec<Frame> = script().iter().flat_map(|event| frames.entry(event)).collect();
        all.extend(frames.rest(&json!({"state": "closed"})).unwrap());
        all.iter().map(|frame| Step::of(&frame.text()).unwrap()).collect()
    }

    #[test]
    fn s75_golden_frames_of_a_script() {
        let value =
            json!({"conversation": "log1", "state": "done", "result": "three", "usage": {"calls": 0}});
        let rest = json!({"state": "done", "text": "three", "value": value, "is_error": false});
        let long = format!("Bob: {}…", "x".repeat(200));
        let all = [Step::Progress("Ann: one two".into()), Step::Progress(long), Step::Rest(rest)];
        assert_eq!(frames(Frames::new("log1", 0)), all);
        // A repeated request of the call reports what follows, and has the same result.
        assert_eq!(frames(Frames::new("log1", 1)), all[1..]);
        assert_eq!(frames(Frames::new("log1", 9)), all[2..]);
    }

    #[test]
    fn what_is_no_step_is_passed_over() {
        assert_eq!(Step::of(&Frames::new("log1", 0).interrupted()), Some(Step::Interrupted));
        for text in ["", ":\n\n", "data: {}\n\n", "data: x\n\n", "event: state\ndata: {}\n\n"] {
            assert_eq!(Step::of(text), None, "{text}");
        }
    }
}
