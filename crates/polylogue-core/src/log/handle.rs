//! A handle of an open log, for others than its runner.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError};

use tokio::sync::{Mutex, oneshot};

use super::buffer::EventBuffer;
use super::updates::{Publisher, WeakPublisher};
use super::{Event, LogId, Path, Question, Subscription};
use crate::{Cancellation, Message, TotalUsage};

/// A handle of an open [`Log`](crate::Log): subscribes, reads, cancels and sends messages while another task runs it.
/// Cloning shares it. It does not keep the claim.
#[derive(Clone)]
pub struct LogHandle {
    pub(super) id: LogId,
    pub(super) buffer: Arc<Mutex<EventBuffer>>,
    pub(super) updates: WeakPublisher,
    pub(super) cancellation: Cancellation,
    pub(super) inbox: Inbox,
}

impl LogHandle {
    /// The id of the conversation.
    #[must_use]
    pub const fn id(&self) -> &LogId {
        &self.id
    }

    /// Subscribes to updates from now on. Subscribe before reading, so that nothing is missed.
    pub async fn subscribe(&self) -> Subscription {
        let next_seq = self.buffer.lock().await.next_seq();
        // Of a log that was closed, there are no more updates.
        self.updates.upgrade().unwrap_or_else(Publisher::new).subscribe(next_seq)
    }

    /// The events so far.
    pub async fn events(&self) -> Vec<Arc<Event>> {
        self.buffer.lock().await.events.clone()
    }

    /// The total usage so far.
    pub async fn usage(&self) -> TotalUsage {
        self.buffer.lock().await.totals.usage
    }

    /// The number of turns in all chats.
    pub async fn turns(&self) -> u64 {
        self.buffer.lock().await.totals.turns.ended
    }

    /// The questions without an answer, with the paths of their chats.
    pub async fn questions(&self) -> Vec<(Path, Question)> {
        Question::open_in(&self.events().await)
    }

    /// The handle that cancels runs of the log.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Sends a message into the conversation. The run posts it before its next step, and agents see it from their next turn on.
    /// Until then it is in memory only: the [`Confirmation`] says when it is in the log. A message that was not posted when the
    /// run ended waits for [`Log::post_inbox`](crate::Log::post_inbox) or the next run.
    pub fn send(&self, message: Message) -> Confirmation {
        self.inbox.push(message)
    }

    /// Whether messages wait to be posted.
    #[must_use]
    pub fn has_unposted(&self) -> bool {
        !self.inbox.queue().is_empty()
    }
}

impl fmt::Debug for LogHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Confirms that a message that was sent is in the log.
#[derive(Debug)]
pub struct Confirmation(oneshot::Receiver<()>);

impl Confirmation {
    /// Waits until the message is in the log. `false` if it was lost, because the log could not be written or was dropped.
    pub async fn confirmed(self) -> bool {
        self.0.await.is_ok()
    }
}

/// A message from outside, and who waits until it is in the log.
pub(crate) struct InboxMessage {
    pub(crate) message: Message,
    confirm: oneshot::Sender<()>,
}

impl InboxMessage {
    /// Tells the sender that the message is in the log.
    pub(crate) fn confirm(self) {
        // Fails only if the sender does not wait.
        let _ = self.confirm.send(());
    }
}

/// Messages from outside that the run posts between two steps.
#[derive(Clone, Default)]
pub(crate) struct Inbox(Arc<Lock<VecDeque<InboxMessage>>>);

impl Inbox {
    fn queue(&self) -> MutexGuard<'_, VecDeque<InboxMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, message: Message) -> Confirmation {
        let (confirm, confirmed) = oneshot::channel();
        self.queue().push_back(InboxMessage { message, confirm });
        Confirmation(confirmed)
    }

    /// Takes all messages.
    pub(crate) fn take(&self) -> Vec<InboxMessage> {
        self.queue().drain(..).collect()
    }

    /// Takes the first message.
    pub(crate) fn take_first(&self) -> Option<InboxMessage> {
        self.queue().pop_front()
    }
}
