//! Which pieces are of one reply, from its first on. A piece carries its place, so that a reader shows a reply from its first piece or not at
//! all, over lost connections and moves to another process.

use std::collections::HashMap;

use polylogue_core::{Body, Delta, Event, Name, Path};
use polylogue_wire::stream::ReplyDelta;
use serde::{Deserialize, Serialize};

/// A piece of a reply, and its place in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OrderedDelta {
    /// The number of the next event when the first piece of the reply came.
    pub(crate) after: u64,
    /// The place among the pieces of the reply, from 0.
    pub(crate) nth: u64,
    pub(crate) piece: ReplyDelta,
}

/// The chat and the agent of a reply.
pub(crate) type Key = (Path, Name);

/// So many replies are known at once; more are forgotten, and not shown live.
const MOST: usize = 4096;

/// Where replies are, for the holder, which sees all events and pieces in their order.
#[derive(Debug, Default)]
pub(super) struct PieceOrder {
    next_seq: u64,
    /// The replies that were seen from their first piece on, or have not begun: after which event, and how many pieces there were.
    whole: HashMap<Key, Option<(u64, u64)>>,
}

impl PieceOrder {
    pub(super) fn new(next_seq: u64) -> Self {
        Self { next_seq, whole: HashMap::new() }
    }

    pub(super) fn event(&mut self, event: &Event) {
        self.next_seq = event.seq + 1;
        if self.whole.len() > MOST {
            self.whole.clear();
        }
        for who in agents_of(&event.body) {
            self.whole.insert((event.at.clone(), who.clone()), None);
        }
    }

    /// The place of a piece; `None` if its reply was not seen from its first piece on.
    pub(super) fn place(&mut self, at: &Path, who: &Name, delta: &Delta) -> Option<(u64, u64)> {
        let key = (at.clone(), who.clone());
        // From here on it is whole again.
        if matches!(delta, Delta::Restart | Delta::Fallback { .. }) {
            self.whole.entry(key.clone()).or_insert(None);
        }
        let (after, count) = self.whole.get_mut(&key)?.get_or_insert((self.next_seq, 0));
        *count += 1;
        Some((*after, *count - 1))
    }

    /// Nothing more of a reply is whole.
    pub(super) fn forget(&mut self, at: &Path, who: &Name) {
        self.whole.remove(&(at.clone(), who.clone()));
    }

    /// Updates were missed.
    pub(super) fn tear(&mut self) {
        self.whole.clear();
    }
}

/// What a reader has shown of replies that are not stored yet.
#[derive(Debug, Default)]
pub(crate) struct ShownPieces {
    /// After which event, and how many pieces.
    shown: HashMap<Key, (u64, u64)>,
    /// The last event of each that was read.
    read: HashMap<Key, u64>,
    /// Events before this one are not in `read` any more.
    forgotten: u64,
}

/// What becomes of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// What was shown of the reply does not count.
    pub(crate) restarts: bool,
    pub(crate) is_shown: bool,
}

impl ShownPieces {
    /// An event was read.
    pub(crate) fn event(&mut self, event: &Event) {
        if self.read.len() > MOST {
            self.read.clear();
            self.forgotten = event.seq;
        }
        for who in agents_of(&event.body) {
            let key = (event.at.clone(), who.clone());
            self.shown.remove(&key);
            self.read.insert(key, event.seq);
        }
    }

    /// Whether an event of the reply, or a later one of its agent, was read from the event `seq` on.
    pub(crate) fn is_read_since(&self, key: &Key, seq: u64) -> bool {
        self.read.get(key).is_some_and(|read| *read >= seq) || seq < self.forgotten
    }

    /// A piece of this place has come from another process.
    pub(crate) fn piece(&mut self, key: Key, after: u64, nth: u64) -> Verdict {
        let is_stored = self.is_read_since(&key, after);
        let before = self.shown.get(&key).copied();
        let is_next = before.map_or(nth == 0, |before| before == (after, nth));
        if !is_stored && (is_next || nth == 0) {
            self.shown.insert(key, (after, nth + 1));
            return Verdict { restarts: !is_next, is_shown: true };
        }
        // Of one that was shown, a piece is missing.
        let restarts = before.is_some_and(|(shown, _)| shown == after) && self.shown.remove(&key).is_some();
        Verdict { restarts, is_shown: false }
    }

    /// A piece of a reply in this process was shown.
    pub(crate) fn own(&mut self, at: &Path, who: &Name) {
        self.shown.insert((at.clone(), who.clone()), (u64::MAX, 0));
    }

    /// What was shown of these replies does not count any more.
    pub(crate) fn broken(&mut self) -> Vec<Key> {
        let mut broken: Vec<Key> = self.shown.drain().map(|(key, _)| key).collect();
        broken.sort();
        broken
    }
}

/// The agents whose replies an event ends, or precedes.
fn agents_of(body: &Body) -> Vec<&Name> {
    match body {
        Body::TurnStarted { turns } => turns.iter().map(|turn| &turn.who).collect(),
        Body::ModelReplied(reply) => vec![&reply.who],
        Body::Message(message) => vec![&message.from],
        Body::CapabilityMissing { who, .. }
        | Body::SealsRefused { who, .. }
        | Body::TooLong { who, .. }
        | Body::Prompted { who, .. }
        | Body::ToolCalled { who, .. }
        | Body::ToolReturned { who, .. }
        | Body::Passed { who }
        | Body::Left { who, .. }
        | Body::Stopped { who, .. }
        | Body::Failed { who, .. }
        | Body::ReplyInterrupted { who, .. } => vec![who],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Timestamp, TurnRequest};

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn key(text: &str) -> Key {
        (Path::root(), name(text))
    }

    fn event(seq: u64, body: Body) -> Event {
        Event { seq, at: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body }
    }

    fn turn(seq: u64, who: &str) -> Event {
        event(seq, Body::TurnStarted { turns: vec![TurnRequest::to_all(name(who))] })
    }

    #[test]
    fn a_reply_has_places_from_its_first_piece_on_or_none() {
        let (mut order, text) = (PieceOrder::new(7), Delta::Text("a".into()));
        let place = |order: &mut PieceOrder, delta: &Delta| order.place(&Path::root(), &name("Ann"), delta);
        assert_eq!(place(&mut order, &text), None, "it had begun before");
        assert_eq!(place(&mut order, &Delta::Restart), Some((7, 0)), "it begins again");
        assert_eq!(place(&mut order, &text), Some((7, 1)));
        order.event(&turn(7, "Bob"));
        assert_eq!(place(&mut order, &text), Some((7, 2)), "another agent's turn is nothing to it");
        order.event(&event(8, Body::Passed { who: name("Ann") }));
        assert_eq!(place(&mut order, &text), Some((9, 0)), "the next reply");
        order.tear();
        assert_eq!(place(&mut order, &text), None);
    }

    #[test]
    fn a_reader_shows_a_reply_whole_or_not_at_all() {
        let verdict = |restarts, is_shown| Verdict { restarts, is_shown };
        let mut shown = ShownPieces::default();
        shown.event(&turn(4, "Ann"));
        assert_eq!(shown.piece(key("Ann"), 5, 1), verdict(false, false), "its first piece was not seen");
        assert_eq!(shown.piece(key("Ann"), 5, 0), verdict(false, true));
        assert_eq!(shown.piece(key("Ann"), 5, 1), verdict(false, true));
        assert_eq!(
            shown.piece(key("Ann"), 5, 0),
            verdict(true, true),
            "another process makes the call again"
        );
        assert_eq!(shown.piece(key("Ann"), 5, 2), verdict(true, false), "one is missing");
        assert_eq!(shown.piece(key("Ann"), 5, 3), verdict(false, false));
        assert_eq!(shown.piece(key("Bob"), 5, 0), verdict(false, true));
        assert_eq!(shown.broken(), [key("Bob")]);
        shown.event(&turn(6, "Bob"));
        assert_eq!(shown.piece(key("Bob"), 5, 0), verdict(false, false), "its reply was read already");
        assert_eq!(shown.piece(key("Bob"), 7, 0), verdict(false, true));
    }
}
