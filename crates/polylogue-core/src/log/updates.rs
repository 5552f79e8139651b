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
    /// A piece of a reply was streamed. Pieces are never stored; the whole reply follows as an event. A subscription
    /// that begins in the middle of a reply has its pieces so far first, joined, after a [`Delta::Restart`].
    Delta {
        /// The chat.
        chat: Path,
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
    /// Returns the number of the next event that it receives. Pieces that it receives before belong to that event or to a later
    /// one, so who has read that event from the store already has no use for them.
    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Waits for the next update; `None` when the log is dropped. Can be dropped and called again.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            match self.queue.take() {
                Taken::Nothing => self.queue.news.notified().await,
                taken => return self.receive(taken),
            }
        }
    }

    /// Returns the next update, if it has come already. `None`: there is none yet, or none any more.
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
#[derive(Debug, Clone, Default)]
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
struct Subscribers(Mutex<Watched>);

#[derive(Debug, Default)]
struct Watched {
    queues: Vec<Weak<Queue>>,
    /// The replies that are being streamed.
    drafts: Vec<Weak<Draft>>,
}

impl Subscribers {
    /// Those who are still there, and the replies that have not ended.
    fn watched(&self) -> MutexGuard<'_, Watched> {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.queues.retain(|queue| queue.strong_count() > 0);
        watched.drafts.retain(|draft| draft.strong_count() > 0);
        watched
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        self.watched().queues.iter().filter_map(Weak::upgrade).for_each(|queue| queue.end());
    }
}

impl Watched {
    /// Makes the update only if there is a subscriber.
    fn send(&self, update: impl Fn() -> Update) {
        self.queues.iter().filter_map(Weak::upgrade).for_each(|queue| queue.push(update()));
    }
}

/// What has been streamed of a reply, for those who subscribe in the middle of it.
#[derive(Debug)]
struct Draft {
    at: Path,
    who: Name,
    pieces: Mutex<Vec<Delta>>,
}

impl Draft {
    fn pieces(&self) -> MutexGuard<'_, Vec<Delta>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a new subscriber receives of it: nothing, if it has not begun.
    fn updates(&self) -> Vec<Update> {
        let pieces = self.pieces();
        let begins = (!pieces.is_empty()).then_some(Delta::Restart);
        let all = begins.into_iter().chain(pieces.iter().cloned());
        all.map(|delta| Update::Delta { chat: self.at.clone(), who: self.who.clone(), delta }).collect()
    }
}

impl Publisher {
    pub(crate) fn downgrade(&self) -> WeakPublisher {
        WeakPublisher(Arc::downgrade(&self.0))
    }

    pub(crate) fn subscribe(&self, next_seq: u64) -> Subscription {
        let queue = Arc::<Queue>::default();
        // Locked, so that each piece comes once.
        let mut watched = self.0.watched();
        let begun = watched.drafts.iter().filter_map(Weak::upgrade).flat_map(|draft| draft.updates());
        begun.for_each(|update| queue.push(update));
        watched.queues.push(Arc::downgrade(&queue));
        Subscription { queue, next_seq }
    }

    pub(crate) fn event(&self, event: &Arc<Event>) {
        // Locked while it is sent, so that all receive updates in the same order.
        self.0.watched().send(|| Update::Event(Arc::clone(event)));
    }

    /// A sink for the pieces of the reply to `who` at `at`. Of a reply that the agent does not say, such as the summary of its
    /// history (`is_said` is false), only retries are published.
    pub(crate) fn deltas<'a>(&'a self, at: &'a Path, who: &'a Name, is_said: bool) -> PublishedDeltas<'a> {
        let draft = is_said.then(|| {
            let draft = Arc::new(Draft { at: at.clone(), who: who.clone(), pieces: Mutex::default() });
            self.0.watched().drafts.push(Arc::downgrade(&draft));
            draft
        });
        PublishedDeltas { live: self, at, who, draft }
    }
}

/// Publishes the pieces of a reply. While it exists, new subscribers receive what has been streamed of the reply.
pub(crate) struct PublishedDeltas<'a> {
    live: &'a Publisher,
    at: &'a Path,
    who: &'a Name,
    /// `None` if the agent does not say the reply.
    draft: Option<Arc<Draft>>,
}

impl PublishedDeltas<'_> {
    /// What has been streamed is no reply: another one is asked for.
    pub(crate) fn discard(&mut self) {
        if self.draft.as_ref().is_some_and(|draft| !draft.pieces().is_empty()) {
            self.push(DeltaRef::Restart);
        }
    }

    /// The text that has been streamed.
    pub(crate) fn into_text(self) -> Arc<str> {
        let Some(draft) = self.draft else { return "".into() };
        let pieces = draft.pieces();
        let texts = pieces.iter().filter_map(|piece| match piece {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let text: String = texts.collect();
        text.into()
    }
}

impl DeltaSink for PublishedDeltas<'_> {
    fn push(&mut self, delta: DeltaRef<'_>) {
        if let DeltaRef::Retry { cause, retry, retries, wait } = delta {
            warn!(who = %self.who, cause, retry, retries, ?wait, "model call is retried");
        }
        if let DeltaRef::Fallback { cause, model } = delta {
            warn!(who = %self.who, cause, model, "model call failed, asking another model");
        }
        let watched = self.live.0.watched();
        match &self.draft {
            Some(draft) => delta.join_to(&mut draft.pieces()),
            None if matches!(delta, DeltaRef::Retry { .. } | DeltaRef::Fallback { .. }) => {}
            None => return,
        }
        watched.send(|| Update::Delta { chat: self.at.clone(), who: self.who.clone(), delta: delta.into() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a subscription has received so far.
    fn received(subscription: &mut Subscription) -> Vec<Delta> {
        let updates = std::iter::from_fn(|| subscription.try_next());
        let delta = |update: Update| match update {
            Update::Delta { delta, .. } => delta,
            other => panic!("{other:?}"),
        };
        updates.map(delta).collect()
    }

    #[test]
    fn who_subscribes_in_the_middle_of_a_reply_receives_what_was_streamed_of_it_first() {
        let (live, at, who) = (Publisher::default(), Path::root(), Name::new("Ann").unwrap());
        let text = |text: &str| Delta::Text(text.into());
        let mut sink = live.deltas(&at, &who, true);
        assert!(received(&mut live.subscribe(0)).is_empty(), "it has not begun");
        sink.push(DeltaRef::Text("wrong"));
        sink.push(DeltaRef::Restart);
        assert!(received(&mut live.subscribe(0)).is_empty(), "it begins again");
        sink.push(DeltaRef::Thought("hm"));
        sink.push(DeltaRef::Text("one "));
        sink.push(DeltaRef::Text("two "));
        let mut late = live.subscribe(0);
        sink.push(DeltaRef::Text("three"));
        let thought = Delta::Thought("hm".into());
        assert_eq!(received(&mut late), [Delta::Restart, thought, text("one two "), text("three")]);
        assert_eq!(&*sink.into_text(), "one two three");
        assert!(received(&mut live.subscribe(0)).is_empty(), "its event follows, or there is none");
    }

    #[test]
    fn pieces_of_a_call_are_joined_and_those_of_a_summary_are_not_kept() {
        let (live, at, who) = (Publisher::default(), Path::root(), Name::new("Ann").unwrap());
        let mut sink = live.deltas(&at, &who, true);
        let piece = |index, tool, args| DeltaRef::Call { index, tool, args };
        for delta in
            [piece(0, Some("add"), ""), piece(0, None, "{"), piece(0, None, "}"), piece(1, Some("add"), "")]
        {
            sink.push(delta);
        }
        let call = |index, args: &str| Delta::Call { index, tool: Some("add".into()), args: args.into() };
        assert_eq!(received(&mut live.subscribe(0)), [Delta::Restart, call(0, "{}"), call(1, "")]);
        drop(sink);
        let mut summary = live.deltas(&at, &who, false);
        summary.push(DeltaRef::Text("In short"));
        assert!(received(&mut live.subscribe(0)).is_empty());
        assert_eq!(&*summary.into_text(), "");
    }
}
