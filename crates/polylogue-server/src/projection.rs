//! The seam of protocols: what happens in a conversation, as frames of an event stream. A projection reads no store and no socket, so that
//! the frames of a finished log are those that were sent live, without the pieces of replies.

use std::borrow::Cow;

use polylogue_core::{Body, Delta, Event, Name, Path, TeamChanged};
use polylogue_wire::Scope;
use polylogue_wire::stream::{self, Missed, ReplyDelta};
use serde::Serialize;
use serde_json::Value;

use crate::token::Token;

/// A frame of an event stream, as the standard of server-sent events writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    /// The type; none for protocols that have only one.
    pub(crate) event: Option<&'static str>,
    /// Where a client that lost its connection continues: the `seq` of a stored event.
    pub(crate) id: Option<u64>,
    pub(crate) data: String,
}

/// The space of a frame around its data.
const FRAME: usize = 48;

impl Frame {
    pub(crate) fn json(event: &'static str, data: &impl Serialize) -> Self {
        // Frames hold nothing that JSON cannot.
        Self { event: Some(event), id: None, data: serde_json::to_string(data).unwrap_or_default() }
    }

    /// Its bytes on the wire.
    pub(crate) fn text(&self) -> String {
        let mut text = String::with_capacity(self.data.len() + FRAME);
        if let Some(event) = self.event {
            text.extend(["event: ", event, "\n"]);
        }
        if let Some(id) = self.id {
            text.extend(["id: ", &id.to_string(), "\n"]);
        }
        for line in self.data.split('\n') {
            text.extend(["data: ", line, "\n"]);
        }
        text.push('\n');
        text
    }
}

/// Clients connect again after two seconds.
pub(crate) const RETRY: &str = "retry: 2000\n\n";

/// What is sent while nothing happens: clients skip it.
pub(crate) const COMMENT: &str = ":\n\n";

/// How one protocol shows a conversation that is read from its beginning or from any event.
pub(crate) trait Projection: Send + 'static {
    /// A stored event.
    fn entry(&mut self, event: &Event) -> Vec<Frame>;

    /// A piece of a reply that is not stored yet. Default: it is not shown.
    fn delta(&mut self, _at: &Path, _who: &Name, _delta: &Delta) -> Vec<Frame> {
        Vec::new()
    }

    /// Pieces were left out, because the client was slow. Stored events follow from `seq` on.
    fn missed(&mut self, _seq: u64) -> Vec<Frame> {
        Vec::new()
    }

    /// Pieces of the reply that is being written were not received: of the turn `of`, or of all open ones. Their events follow.
    fn lost_pieces(&mut self, _of: Option<(&Path, &Name)>) {}

    /// The state has changed.
    fn state(&mut self, _state: &Value) -> Vec<Frame> {
        Vec::new()
    }

    /// The conversation has ended, and with it the stream.
    fn end(&mut self, _state: &Value) -> Vec<Frame> {
        Vec::new()
    }

    /// The conversation does not run: it is closed, waits, or was stopped. `None` if the stream does not end with that.
    fn rest(&mut self, _state: &Value) -> Option<Vec<Frame>> {
        None
    }

    /// Whether something is still expected that decides how the stream ends, though the conversation does not run. It is asked again soon.
    fn expects_more(&mut self) -> bool {
        false
    }

    /// Whether what follows is not for this stream: it ends with what [`rest`](Self::rest) says, whether the conversation runs or not.
    fn is_over(&self) -> bool {
        false
    }

    /// What is sent while nothing happens.
    fn keep_alive(&mut self) -> String {
        COMMENT.into()
    }

    /// The beginning of the stream: when clients connect again.
    fn opening(&mut self) -> String {
        RETRY.into()
    }

    /// The end of a stream that the server ends because it stops.
    fn interrupted(&mut self) -> String {
        RETRY.into()
    }
}

/// The native form: stored events as the log has them.
#[derive(Debug)]
pub(crate) struct Native {
    sees_team: bool,
}

impl Native {
    /// What the holder of `token` may see.
    pub(crate) fn of(token: &Token) -> Self {
        Self { sees_team: token.has(Scope::Edit) }
    }

    /// The text of a team takes the scope `edit`, also where it is part of an event.
    pub(crate) fn shown<'e>(&self, event: &'e Event) -> Cow<'e, Event> {
        match &event.body {
            Body::TeamChanged(changed) if !self.sees_team => {
                let body = Body::TeamChanged(TeamChanged { team: Value::Null, ..changed.clone() });
                Cow::Owned(Event { body, ..event.clone() })
            }
            _ => Cow::Borrowed(event),
        }
    }
}

impl Projection for Native {
    fn entry(&mut self, event: &Event) -> Vec<Frame> {
        // An event can be written as JSON: it was read from it.
        let data = serde_json::to_string(&self.shown(event)).unwrap_or_default();
        vec![Frame { event: Some(stream::ENTRY), id: Some(event.seq), data }]
    }

    fn delta(&mut self, at: &Path, who: &Name, delta: &Delta) -> Vec<Frame> {
        let piece = ReplyDelta::of(at, who, delta);
        piece.iter().map(|piece| Frame::json(stream::DELTA, piece)).collect()
    }

    fn missed(&mut self, seq: u64) -> Vec<Frame> {
        vec![Frame::json(stream::MISSED, &Missed { seq })]
    }

    fn state(&mut self, state: &Value) -> Vec<Frame> {
        vec![Frame::json(stream::STATE, state)]
    }

    fn end(&mut self, state: &Value) -> Vec<Frame> {
        vec![Frame::json(stream::END, state)]
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_frame_has_one_line_for_each_line_of_its_data() {
        let frame = Frame { event: Some("entry"), id: Some(3), data: "a\nb".into() };
        assert_eq!(frame.text(), "event: entry\nid: 3\ndata: a\ndata: b\n\n");
        assert_eq!(Frame { data: "[DONE]".into(), ..Frame::default() }.text(), "data: [DONE]\n\n");
    }

    #[test]
    fn the_text_of_a_team_in_an_event_takes_the_scope_that_its_file_takes() {
        let team = json!({"text": "name: a"});
        let changes = vec!["`task`".into()];
        let changed = TeamChanged { digest: "d".into(), changes, harmless: true, team: team.clone() };
        let body = Body::TeamChanged(changed);
        let event = Event { seq: 7, chat: Path::root(), time: Timestamp(1), ran_ms: 0, inbox: None, body };
        let shown = |sees_team| Native { sees_team }.entry(&event).remove(0).data;
        assert!(shown(true).contains(&team.to_string()));
        let without: Event = serde_json::from_str(&shown(false)).unwrap();
        let Body::TeamChanged(without) = without.body else { panic!("{without:?}") };
        assert_eq!((without.team, &*without.digest), (Value::Null, "d"));
    }

    #[test]
    fn s21_a_delta_has_no_id() {
        let who = Name::new("Ann").unwrap();
        let mut native = Native { sees_team: false };
        let mut delta = |delta| native.delta(&Path::root(), &who, &delta).remove(0).text();
        assert_eq!(
            delta(Delta::Text("one".into())),
            "event: delta\ndata: {\"chat\":\"\",\"who\":\"Ann\",\"type\":\"text\",\"text\":\"one\"}\n\n"
        );
        assert_eq!(
            delta(Delta::Restart),
            "event: delta\ndata: {\"chat\":\"\",\"who\":\"Ann\",\"type\":\"restart\",\"restart\":null}\n\n"
        );
    }
}
