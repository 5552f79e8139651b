//! The stream of a chat completion: a projection of the log.

use polylogue_core::{Delta, Event, Name, Path};
use serde_json::{Value, json};

use super::document::Head;
use super::outcome::Outcome;
use super::voice::{Channel, Piece, Voice};
use crate::problem::Problem;
use crate::projection::{COMMENT, Frame, Projection};
use crate::waiting::SentText;

/// The end of a stream that is whole.
const DONE: &str = "[DONE]";

/// Whether a text of the stream is its end.
pub(super) fn is_done(text: &str) -> bool {
    text.strip_prefix("data: ").is_some_and(|data| data.trim_end() == DONE)
}

/// The chunks of one response.
pub(super) struct Chunks {
    pub(super) head: Head,
    /// Whether the last chunk has the usage.
    pub(super) usage: bool,
    /// Whether silence is kept alive by chunks without text, for clients and proxies that wait for data.
    pub(super) is_kept_alive_by_chunks: bool,
    pub(super) voice: Voice,
    pub(super) outcome: Outcome,
    /// The content so far.
    pub(super) sent: SentText,
}

impl Chunks {
    fn frame(&self, delta: &Value, finish: Option<&str>) -> Frame {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        self.with_choices(&json!([choice]), &Value::Null)
    }

    fn with_choices(&self, choices: &Value, usage: &Value) -> Frame {
        let mut chunk = self.head.document("chat.completion.chunk");
        if let Some(fields) = chunk.as_object_mut() {
            fields.insert("choices".into(), choices.clone());
            if self.usage {
                fields.insert("usage".into(), usage.clone());
            }
        }
        data(&chunk)
    }

    fn frames(&self, pieces: Vec<Piece>) -> Vec<Frame> {
        let said = pieces.into_iter().filter(|(_, text)| !text.is_empty());
        let delta = said.map(|(channel, text)| match channel {
            Channel::Content => {
                self.sent.push(&text);
                json!({"content": text})
            }
            Channel::Reasoning => json!({"reasoning_content": text}),
        });
        delta.map(|delta| self.frame(&delta, None)).collect()
    }

    /// The chunk with the reason of the end.
    fn last(&self, reason: &str, state: &Value) -> Frame {
        let mut last = self.head.document("chat.completion.chunk");
        if let Some(fields) = last.as_object_mut() {
            let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
            fields.insert("choices".into(), json!([choice]));
            fields.insert("polylogue".into(), self.outcome.extension(&self.head.conversation, state));
            if self.usage {
                fields.insert("usage".into(), Value::Null);
            }
        }
        data(&last)
    }
}

fn data(document: &Value) -> Frame {
    Frame { data: document.to_string(), ..Frame::default() }
}

impl Projection for Chunks {
    fn opening(&mut self) -> String {
        // Only here: clients join the texts of all deltas, this one as well.
        self.frame(&json!({"role": "assistant", "content": ""}), None).text()
    }

    fn entry(&mut self, event: &Event) -> Vec<Frame> {
        self.outcome.add(event);
        if self.outcome.is_over() || self.outcome.is_ahead() {
            return Vec::new();
        }
        let pieces = self.voice.entry(event);
        self.frames(pieces)
    }

    fn delta(&mut self, at: &Path, who: &Name, delta: &Delta) -> Vec<Frame> {
        if self.outcome.is_ahead() {
            return Vec::new();
        }
        let pieces = self.voice.delta(at, who, delta);
        self.frames(pieces)
    }

    fn missed(&mut self, _: u64) -> Vec<Frame> {
        self.voice.lose_pieces(None);
        Vec::new()
    }

    fn lost_pieces(&mut self, of: Option<(&Path, &Name)>) {
        self.voice.lose_pieces(of);
    }

    fn is_over(&self) -> bool {
        self.outcome.is_over()
    }

    fn expects_more(&mut self) -> bool {
        self.outcome.is_awaited()
    }

    fn rest(&mut self, state: &Value) -> Option<Vec<Frame>> {
        let own = self.outcome.state();
        let state = own.as_ref().unwrap_or(state);
        let finish = match self.outcome.finish() {
            Ok(finish) => finish,
            Err(failure) => {
                let pieces = self.voice.fail();
                let mut frames = self.frames(pieces);
                frames.push(data(&Problem::internal(failure).openai_document()));
                return Some(frames);
            }
        };
        let pieces = self.voice.finish(&finish.content);
        let mut frames = self.frames(pieces);
        frames.push(self.last(finish.reason, state));
        if let Some(usage) = self.outcome.usage().filter(|_| self.usage) {
            frames.push(self.with_choices(&json!([]), &usage));
        }
        frames.push(Frame { data: DONE.into(), ..Frame::default() });
        Some(frames)
    }

    fn interrupted(&mut self) -> String {
        data(&Problem::stopping().openai_document()).text()
    }

    fn keep_alive(&mut self) -> String {
        match self.is_kept_alive_by_chunks {
            true => self.frame(&json!({}), None).text(),
            false => COMMENT.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Body, Message, StopReason, Timestamp};

    use super::*;
    use crate::chat_options::ChatShow;

    fn chunks(usage: bool) -> Chunks {
        let head =
            Head { id: "chatcmpl-1".into(), created: 7, model: "talk".into(), conversation: "log1".into() };
        let voice = Voice::new(ChatShow::Result, false);
        let (outcome, sent) = (Outcome::default(), SentText::default());
        Chunks { head, usage, is_kept_alive_by_chunks: false, voice, outcome, sent }
    }

    fn event(seq: u64, body: Body) -> Event {
        Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body }
    }

    #[test]
    fn s47_s48_golden_frames_of_a_script() {
        let mut chunks = chunks(true);
        let mut text = chunks.opening();
        let said = Message::new(Name::new("Ann").unwrap(), "one");
        let closed = Body::Closed { reason: StopReason::Finished, summary: "one".into() };
        for event in [event(0, Body::Message(said)), event(1, closed)] {
            text += &chunks.entry(&event).iter().map(Frame::text).collect::<String>();
        }
        text +=
            &chunks.rest(&json!({"state": "closed"})).unwrap().iter().map(Frame::text).collect::<String>();
        let frames: Vec<&str> = text.trim_end().split("\n\n").collect();
        assert_eq!(frames.last(), Some(&"data: [DONE]"));
        let parsed = frames[..frames.len() - 1]
            .iter()
            .map(|frame| serde_json::from_str::<Value>(frame.strip_prefix("data: ").unwrap()).unwrap());
        let parsed: Vec<Value> = parsed.collect();
        let same = |name: &str| parsed.iter().all(|chunk| chunk[name] == parsed[0][name]);
        assert!(same("id") && same("created") && same("model") && same("object"), "{text}");
        assert!(
            parsed.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()),
            "{text}"
        );
        let deltas: Vec<&Value> = parsed.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
        assert_eq!(
            deltas,
            [
                &json!({"role": "assistant", "content": ""}),
                &json!({"reasoning_content": "**Ann:** one\n\n"}),
                &json!({"content": "one"}),
                &json!({})
            ]
        );
        let ends = parsed.iter().map(|chunk| chunk["choices"][0].get("finish_reason").unwrap().clone());
        assert_eq!(ends.collect::<Vec<_>>(), [Value::Null, Value::Null, Value::Null, json!("stop")]);
        assert_eq!(parsed[3]["polylogue"]["conversation"], "log1");
    }

    #[test]
    fn s54_a_failure_is_an_error_frame_without_an_end() {
        let mut chunks = chunks(false);
        let failed =
            json!({"type": "failed", "who": "Ann", "error": {"fault": "provider", "message": "no model"}});
        chunks.entry(&event(0, serde_json::from_value(failed).unwrap()));
        let frames = chunks.rest(&json!({"state": "halted"})).unwrap();
        assert_eq!(frames.len(), 1);
        let error: Value = serde_json::from_str(&frames[0].data).unwrap();
        assert_eq!(
            (&error["error"]["message"], &error["error"]["type"]),
            (&json!("no model"), &json!("server_error"))
        );
    }
}
