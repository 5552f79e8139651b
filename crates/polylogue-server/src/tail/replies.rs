//! Pieces of replies that another process receives.

use polylogue_core::{Delta, Name, Path};
use polylogue_wire::stream::ReplyDelta;

use super::Tail;
use crate::live::pieces::{BegunReply, Key, OrderedDelta};
use crate::projection::Projection;

impl<P: Projection> Tail<P> {
    /// Sends a piece of a reply that another process receives, unless the reply was not sent from its first piece on.
    pub(super) fn piece(&mut self, OrderedDelta { after, nth, piece }: &OrderedDelta) {
        let ReplyDelta { chat: at, who, content } = piece.clone();
        let Some(delta) = content.into_delta().filter(|_| *after <= self.follow.from) else { return };
        let verdict = self.pieces.piece((at.clone(), who.clone()), *after, *nth);
        let restart = verdict.restarts.then_some(Delta::Restart);
        for delta in restart.into_iter().chain(verdict.is_shown.then_some(delta)) {
            self.send(|projection| projection.delta(&at, &who, &delta));
        }
    }

    /// Sends what another process has received of a reply before this tail began. Its next piece follows.
    pub(super) fn begun(&mut self, reply: &BegunReply) {
        let BegunReply { chat: at, who, after, count, pieces } = reply;
        if *after <= self.follow.from && self.pieces.begun((at.clone(), who.clone()), *after, *count) {
            for delta in std::iter::once(&Delta::Restart).chain(pieces) {
                self.send(|projection| projection.delta(at, who, delta));
            }
        }
    }

    /// The event `seq`, behind which this tail began, ends these replies: what was sent of them does not count any more.
    pub(super) fn end_replies(&mut self, seq: u64, replies: &[Key]) {
        for key in replies {
            if self.pieces.ended(key, seq) {
                self.send(|projection| projection.delta(&key.0, &key.1, &Delta::Restart));
            }
        }
    }

    /// What was sent of replies that are not stored does not count any more.
    pub(super) fn restart_replies(&mut self) {
        for (at, who) in self.pieces.broken() {
            self.send(|projection| projection.delta(&at, &who, &Delta::Restart));
        }
    }

    /// Whether the reply that had pieces before the event `seq` is among the events that were read from there on.
    pub(super) fn is_stored(&self, at: &Path, who: &Name, seq: u64) -> bool {
        seq < self.follow.from && self.pieces.is_read_since(&(at.clone(), who.clone()), seq)
    }
}
