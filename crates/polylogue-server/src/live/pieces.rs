//! Which pieces are of one reply, from its first on. A piece carries its place, so that a reader shows a reply from its first piece or not at
//! all, over lost connections and moves to another process. One who begins to follow in the middle of a reply has its pieces so far first.

use std::collections::HashMap;
use std::sync::Arc;

use polylogue_core::{Body, Delta, DeltaRef, Event, Name, Path};
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

/// Where a reply is, for the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// It has not begun.
    Ahead,
    /// After which event it has begun, and how many pieces there were.
    Begun(u64, u64),
    /// A piece of it was not seen: it is not shown any further.
    Incomplete,
}

/// Where replies are, for the holder, which sees all events and pieces in their order. A subscription has replies that had begun before it
/// from their first piece on, so all that comes is whole until something is missed.
#[derive(Debug)]
pub(super) struct PieceOrder {
    next_seq: u64,
    replies: HashMap<Key, Reply>,
    /// Where those are that are not in `replies`.
    others: Reply,
}

impl PieceOrder {
    pub(super) fn new(next_seq: u64) -> Self {
        Self { next_seq, replies: HashMap::new(), others: Reply::Ahead }
    }

    /// An event has come. Returns the replies that it ends.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Key> {
        self.next_seq = event.seq + 1;
        if self.replies.len() > MOST {
            self.lose_pieces();
        }
        let keys = agents_of(&event.body).into_iter().map(|who| (event.chat.clone(), who.clone()));
        keys.filter(|key| matches!(self.replies.insert(key.clone(), Reply::Ahead), Some(Reply::Begun(..))))
            .collect()
    }

    /// The place of a piece; `None` if its reply was not seen from its first piece on.
    pub(super) fn place(&mut self, at: &Path, who: &Name, delta: &Delta) -> Option<(u64, u64)> {
        let reply = self.replies.entry((at.clone(), who.clone())).or_insert(self.others);
        // From here on it is whole again.
        let is_new = matches!(delta, Delta::Restart | Delta::Fallback { .. });
        let (after, nth) = match *reply {
            Reply::Begun(after, count) => (after, count),
            Reply::Incomplete if !is_new => return None,
            Reply::Ahead | Reply::Incomplete => (self.next_seq, 0),
        };
        *reply = Reply::Begun(after, nth + 1);
        Some((after, nth))
    }

    /// Nothing more of a reply is whole.
    pub(super) fn forget(&mut self, at: &Path, who: &Name) {
        self.replies.insert((at.clone(), who.clone()), Reply::Incomplete);
    }

    /// Updates were missed.
    pub(super) fn lose_pieces(&mut self) {
        self.replies.clear();
        self.others = Reply::Incomplete;
    }
}

/// A reply that another process receives, as far as its pieces have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BegunReply {
    pub(crate) chat: Path,
    pub(crate) who: Name,
    pub(crate) after: u64,
    /// How many pieces have come, of which `pieces` are joined.
    pub(crate) count: u64,
    pub(crate) pieces: Vec<Delta>,
}

/// The replies of one conversation that another process receives, for readers who begin to follow in the middle of them.
#[derive(Debug, Default)]
pub(super) struct BegunReplies(HashMap<Key, BegunReply>);

impl BegunReplies {
    /// A piece has come. A reply is known from its first piece on, or not at all.
    pub(super) fn piece(&mut self, OrderedDelta { after, nth, piece }: &OrderedDelta) {
        let Some(delta) = piece.content.clone().into_delta() else { return };
        let (after, nth, at, who) = (*after, *nth, piece.chat.clone(), piece.who.clone());
        let key = (at.clone(), who.clone());
        if nth == 0 && self.0.len() < MOST {
            self.0.insert(key.clone(), BegunReply { chat: at, who, after, count: 0, pieces: Vec::new() });
        }
        match self.0.get_mut(&key) {
            Some(reply) if (reply.after, reply.count) == (after, nth) => {
                reply.count += 1;
                DeltaRef::from(&delta).join_to(&mut reply.pieces);
            }
            _ => drop(self.0.remove(&key)),
        }
    }

    /// These replies have ended.
    pub(super) fn end(&mut self, replies: &[Key]) {
        replies.iter().for_each(|key| drop(self.0.remove(key)));
    }

    /// None of them counts any more.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<BegunReply>> {
        self.0.values().cloned().map(Arc::new).collect()
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
            let key = (event.chat.clone(), who.clone());
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

    /// The reply before a reader began to follow. Returns whether it is shown: its next piece follows it.
    pub(crate) fn begun(&mut self, key: Key, after: u64, count: u64) -> bool {
        let is_shown = !self.is_read_since(&key, after);
        if is_shown {
            self.shown.insert(key, (after, count));
        }
        is_shown
    }

    /// The event `seq`, which the reader has, ends a reply. Returns whether the reply is shown all the same: its reader began to read behind
    /// that event.
    pub(crate) fn ended(&mut self, key: &Key, seq: u64) -> bool {
        let is_shown = self.shown.get(key).is_some_and(|(after, _)| *after <= seq);
        is_shown && self.shown.remove(key).is_some()
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
        Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body }
    }

    fn turn(seq: u64, who: &str) -> Event {
        event(seq, Body::TurnStarted { turns: vec![TurnRequest::to_all(name(who))] })
    }

    #[test]
    fn a_reply_has_places_from_its_first_piece_on_or_none() {
        let (mut order, text) = (PieceOrder::new(7), Delta::Text("a".into()));
        let place = |order: &mut PieceOrder, delta: &Delta| order.place(&Path::root(), &name("Ann"), delta);
        assert_eq!(place(&mut order, &text), Some((7, 0)), "a subscription has it from its beginning on");
        assert_eq!(place(&mut order, &Delta::Restart), Some((7, 1)), "it begins again");
        assert!(order.event(&turn(7, "Bob")).is_empty(), "another agent's turn is nothing to it");
        assert_eq!(place(&mut order, &text), Some((7, 2)));
        assert_eq!(order.event(&event(8, Body::Passed { who: name("Ann") })), [key("Ann")]);
        assert!(order.event(&turn(9, "Ann")).is_empty(), "it has ended before");
        assert_eq!(place(&mut order, &text), Some((10, 0)), "the next reply");
        order.forget(&Path::root(), &name("Ann"));
        assert_eq!(place(&mut order, &text), None);
        assert_eq!(place(&mut order, &Delta::Restart), Some((10, 0)), "it begins again");
        order.lose_pieces();
        assert_eq!(place(&mut order, &text), None);
        assert!(order.event(&turn(10, "Ann")).is_empty(), "nothing of it was sent since");
        assert_eq!(place(&mut order, &text), Some((11, 0)));
    }

    fn piece(after: u64, nth: u64, delta: &Delta) -> OrderedDelta {
        OrderedDelta { after, nth, piece: ReplyDelta::of(&Path::root(), &name("Ann"), delta).unwrap() }
    }

    #[test]
    fn one_who_comes_in_the_middle_of_a_reply_has_its_pieces_so_far_or_none() {
        let (mut begun, text) = (BegunReplies::default(), |text: &str| Delta::Text(text.into()));
        let all = |begun: &BegunReplies| -> Vec<(u64, u64, Vec<Delta>)> {
            begun.all().iter().map(|reply| (reply.after, reply.count, reply.pieces.clone())).collect()
        };
        begun.piece(&piece(5, 1, &text("two")));
        assert!(all(&begun).is_empty(), "its first piece has not come");
        begun.piece(&piece(5, 0, &text("wrong")));
        begun.piece(&piece(5, 1, &Delta::Restart));
        begun.piece(&piece(5, 2, &text("one ")));
        begun.piece(&piece(5, 3, &text("two")));
        assert_eq!(all(&begun), [(5, 4, vec![text("one two")])]);
        begun.end(&[key("Bob")]);
        begun.piece(&piece(5, 5, &text("four")));
        assert!(all(&begun).is_empty(), "one is missing");
        begun.piece(&piece(5, 0, &text("one")));
        begun.end(&[key("Ann")]);
        assert!(all(&begun).is_empty());
    }

    #[test]
    fn what_came_before_a_reader_is_followed_by_the_next_piece_and_ends_with_its_event() {
        let mut shown = ShownPieces::default();
        assert!(shown.begun(key("Ann"), 5, 3));
        assert_eq!(shown.piece(key("Ann"), 5, 3), Verdict { restarts: false, is_shown: true });
        // One who reads from behind the event that ends the reply.
        assert!(!shown.ended(&key("Ann"), 4), "that is an earlier event");
        assert!(shown.ended(&key("Ann"), 6));
        assert!(!shown.ended(&key("Ann"), 6), "it is not shown any more");
        shown.event(&turn(7, "Ann"));
        assert!(!shown.begun(key("Ann"), 5, 3), "its event was read");
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
