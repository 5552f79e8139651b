//! Subscriptions to a run: events and streamed pieces as they happen.

use std::sync::{Arc, OnceLock, Weak};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tracing::warn;

use super::event::Event;
use crate::{Delta, DeltaRef, DeltaSink, Name, Path};

/// An update of a run for a subscriber.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// An event was appended to the log.
    Event(Arc<Event>),
    /// A piece of a reply was streamed. Pieces are never stored; the whole reply follows as an event.
    Delta {
        /// The chat.
        at: Path,
        /// The agent whose model replies.
        who: Name,
        /// The piece.
        delta: Delta,
    },
    /// The subscriber was too slow, so updates were dropped. Events can be read again from the store, from `seq` on.
    Missed {
        /// How many updates were dropped.
        updates: u64,
        /// The first event that may be among them.
        seq: u64,
    },
}

/// A receiver of updates. A slow subscriber never slows the run: it loses updates, and receives [`Update::Missed`].
#[derive(Debug)]
pub struct Subscription {
    updates: broadcast::Receiver<Update>,
    next_seq: u64,
}

impl Subscription {
    /// The number of the next event that it receives. Pieces that it receives before belong to that event or to a later one, so who
    /// has read that event from the store already has no use for them.
    #[must_use]
    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The next update; `None` when the log is dropped.
    pub async fn next(&mut self) -> Option<Update> {
        match self.updates.recv().await {
            Ok(update) => {
                if let Update::Event(event) = &update {
                    self.next_seq = event.seq + 1;
                }
                Some(update)
            }
            Err(RecvError::Lagged(signals)) => Some(Update::Missed { updates: signals, seq: self.next_seq }),
            Err(RecvError::Closed) => None,
        }
    }
}

/// The sender of updates.
#[derive(Debug, Clone)]
pub(crate) struct Publisher(Arc<OnceLock<broadcast::Sender<Update>>>);

/// The same, of a log that may be gone.
#[derive(Debug, Clone)]
pub(crate) struct WeakPublisher(Weak<OnceLock<broadcast::Sender<Update>>>);

impl WeakPublisher {
    pub(crate) fn upgrade(&self) -> Option<Publisher> {
        self.0.upgrade().map(Publisher)
    }
}

impl Publisher {
    /// How many updates a subscriber can lag behind: a long reply in small pieces, at about 100 bytes each.
    const CAPACITY: usize = 4096;

    /// The channel is created for the first subscriber: it allocates space for all its updates, and ten thousand runs
    /// without subscribers need none of it.
    pub(crate) fn new() -> Self {
        Self(Arc::new(OnceLock::new()))
    }

    pub(crate) fn downgrade(&self) -> WeakPublisher {
        WeakPublisher(Arc::downgrade(&self.0))
    }

    pub(crate) fn subscribe(&self, next_seq: u64) -> Subscription {
        let sender = self.0.get_or_init(|| broadcast::Sender::new(Self::CAPACITY));
        Subscription { updates: sender.subscribe(), next_seq }
    }

    pub(crate) fn event(&self, event: &Arc<Event>) {
        self.send(|| Update::Event(Arc::clone(event)));
    }

    /// Makes the update only if there is a subscriber.
    fn send(&self, update: impl FnOnce() -> Update) {
        if let Some(sender) = self.0.get().filter(|sender| sender.receiver_count() > 0) {
            // Fails only if the last subscriber left just now.
            let _ = sender.send(update());
        }
    }

    /// A sink for the pieces of the reply to `who` at `at`. Of a reply that the agent does not say, such as the summary of its
    /// history (`is_said` is false), only retries are published.
    pub(crate) fn deltas<'a>(&'a self, at: &'a Path, who: &'a Name, is_said: bool) -> PublishedDeltas<'a> {
        PublishedDeltas { live: self, at, who, is_said }
    }
}

pub(crate) struct PublishedDeltas<'a> {
    live: &'a Publisher,
    at: &'a Path,
    who: &'a Name,
    is_said: bool,
}

impl DeltaSink for PublishedDeltas<'_> {
    fn push(&mut self, delta: DeltaRef<'_>) {
        if let DeltaRef::Retry { cause, retry, retries, wait } = delta {
            warn!(who = %self.who, cause, retry, retries, ?wait, "model call is retried");
        }
        if let DeltaRef::Fallback { cause, model } = delta {
            warn!(who = %self.who, cause, model, "model call failed, asking another model");
        }
        if !self.is_said && !matches!(delta, DeltaRef::Retry { .. } | DeltaRef::Fallback { .. }) {
            return;
        }
        self.live.send(|| Update::Delta { at: self.at.clone(), who: self.who.clone(), delta: delta.into() });
    }
}
