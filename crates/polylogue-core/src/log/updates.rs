//! Subscriptions to a run: events and streamed pieces as they happen.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
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
    queue: Arc<Queue>,
    next_seq: u64,
}

impl Subscription {
    /// The number of the next event that it receives. Pieces that it receives before belong to that event or to a later one, so who
    /// has read that event from the store already has no use for them.
    #[must_use]
    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The next update; `None` when the log is dropped. Can be dropped and called again.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            match self.queue.take() {
                Taken::Nothing => self.queue.news.notified().await,
                taken => return self.receive(taken),
            }
        }
    }

    /// The next update, if it has come already. `None`: there is none yet, or none any more.
    pub fn try_next(&mut self) -> Option<Update> {
        let taken = self.queue.take();
        self.receive(taken)
    }

    fn receive(&mut self, taken: Taken) -> Option<Update> {
        match taken {
            Taken::Update(update) => {
                if let Update::Event(event) = &update {
                    self.next_seq = event.seq + 1;
                }
                Some(update)
            }
            Taken::Missed(updates) => Some(Update::Missed { updates, seq: self.next_seq }),
            Taken::End | Taken::Nothing => None,
        }
    }
}

/// What a subscriber has not received yet. It grows with what it holds, since most are empty: of ten thousand runs that are watched,
/// few are ahead of those who watch them.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<QueueState>,
    /// Wakes the subscriber, which is the only one who waits.
    news: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    updates: VecDeque<Update>,
    /// How many were dropped before the first of `updates`.
    missed: u64,
    has_ended: bool,
}

/// What a queue has next.
enum Taken {
    Update(Update),
    /// So many were dropped.
    Missed(u64),
    /// Nothing yet.
    Nothing,
    End,
}

impl Queue {
    /// How many updates a subscriber can lag behind: a long reply in small pieces, at about 100 bytes each.
    const CAPACITY: usize = 4096;
    /// An empty queue keeps the space for so many.
    const KEPT: usize = 16;

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, update: Update) {
        let mut state = self.state();
        if state.updates.len() >= Self::CAPACITY {
            state.updates.pop_front();
            state.missed += 1;
        }
        state.updates.push_back(update);
        drop(state);
        self.news.notify_one();
    }

    fn take(&self) -> Taken {
        let mut state = self.state();
        match std::mem::take(&mut state.missed) {
            0 => {}
            missed => return Taken::Missed(missed),
        }
        match state.updates.pop_front() {
            Some(update) => Taken::Update(update),
            None if state.has_ended => Taken::End,
            None => {
                state.updates.shrink_to(Self::KEPT);
                Taken::Nothing
            }
        }
    }

    fn end(&self) {
        self.state().has_ended = true;
        self.news.notify_one();
    }
}

/// The sender of updates.
#[derive(Debug, Clone)]
pub(crate) struct Publisher(Arc<Subscribers>);

/// The same, of a log that may be gone.
#[derive(Debug, Clone)]
pub(crate) struct WeakPublisher(Weak<Subscribers>);

impl WeakPublisher {
    pub(crate) fn upgrade(&self) -> Option<Publisher> {
        self.0.upgrade().map(Publisher)
    }
}

/// Those who watch a run.
#[derive(Debug, Default)]
struct Subscribers(Mutex<Vec<Weak<Queue>>>);

impl Subscribers {
    /// Those who are still there.
    fn queues(&self) -> MutexGuard<'_, Vec<Weak<Queue>>> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|queue| queue.strong_count() > 0);
        queues
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        self.queues().iter().filter_map(Weak::upgrade).for_each(|queue| queue.end());
    }
}

impl Publisher {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn downgrade(&self) -> WeakPublisher {
        WeakPublisher(Arc::downgrade(&self.0))
    }

    pub(crate) fn subscribe(&self, next_seq: u64) -> Subscription {
        let queue = Arc::<Queue>::default();
        self.0.queues().push(Arc::downgrade(&queue));
        Subscription { queue, next_seq }
    }

    pub(crate) fn event(&self, event: &Arc<Event>) {
        self.send(|| Update::Event(Arc::clone(event)));
    }

    /// Makes the update only if there is a subscriber.
    fn send(&self, update: impl Fn() -> Update) {
        // Locked while it is sent, so that all receive updates in the same order.
        self.0.queues().iter().filter_map(Weak::upgrade).for_each(|queue| queue.push(update()));
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
