//! A handle of an open log, for others than its runner.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::buffer::EventBuffer;
use super::inbox::{Confirmation, Inbox, Instruction, Timing};
use super::pause::{Pause, PauseHold};
use super::updates::WeakPublisher;
use super::{Event, LogId, Path, Question, Subscription};
use crate::{BoundException, Cancellation, Message, RunBound, TotalUsage};

/// A handle of an open [`Log`](crate::Log): subscribes, reads, cancels and sends messages while another task runs it.
/// Cloning shares it. It does not keep the claim.
#[derive(Clone, derive_more::Debug)]
#[debug("LogHandle {{ id: {id:?}, .. }}")]
pub struct LogHandle {
    pub(super) id: LogId,
    pub(super) buffer: Arc<Mutex<EventBuffer>>,
    pub(super) updates: WeakPublisher,
    pub(super) cancellation: Cancellation,
    pub(super) inbox: Inbox,
    pub(super) pause: Pause,
    pub(super) bound: Option<RunBound>,
}

impl LogHandle {
    /// Returns the id of the conversation.
    pub const fn id(&self) -> &LogId {
        &self.id
    }

    /// Subscribes to updates from now on, and to what has been streamed of replies that are being written. Subscribe
    /// before reading, so that nothing is missed.
    pub async fn subscribe(&self) -> Subscription {
        let next_seq = self.buffer.lock().await.next_seq();
        // Of a log that was closed, there are no more updates.
        self.updates.upgrade().unwrap_or_default().subscribe(next_seq)
    }

    /// Returns the events so far.
    pub async fn events(&self) -> Vec<Arc<Event>> {
        self.buffer.lock().await.events.clone()
    }

    /// Returns the total usage so far.
    pub async fn usage(&self) -> TotalUsage {
        self.buffer.lock().await.totals.usage
    }

    /// Returns the bound of the run, the most that it takes, if that was computed before it began.
    pub const fn bound(&self) -> Option<RunBound> {
        self.bound
    }

    /// Returns why the bound of the run does not apply any more; `None` if it does, or if there is none.
    pub async fn bound_exception(&self) -> Option<BoundException> {
        let bound = self.bound.as_ref().filter(|bound| bound.bounds_anything())?;
        self.buffer.lock().await.totals.bound.exception(bound)
    }

    /// Returns the number of turns in all chats.
    pub async fn turns(&self) -> u64 {
        self.buffer.lock().await.totals.turns.ended
    }

    /// Returns the questions without an answer, with the paths of their chats.
    pub async fn questions(&self) -> Vec<(Path, Question)> {
        Question::with_chats(self.buffer.lock().await.open_questions())
    }

    /// Returns the handle that cancels runs of the log.
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Sends a message into the conversation. The run posts it before its next step, and agents see it from their next turn on.
    /// Until then it is in memory only: the [`Confirmation`] says when it is in the log. A message that was not posted when the
    /// run ended waits for [`Log::post_inbox`](crate::Log::post_inbox) or the next run.
    pub fn send(&self, message: Message) -> Confirmation {
        self.instruct(Instruction::Send(message))
    }

    /// Waits until the run rests because the conversation is paused: the turns that had begun have ended. Of chats that run at the same time, until
    /// the first one rests.
    pub async fn rests(&self) {
        self.pause.rests().await;
    }

    /// Keeps a run that [rests](Self::rests) from beginning a turn while what is returned exists, also when the conversation is resumed meanwhile:
    /// its time does not count as running time. Instructions are carried out. `None` if the run does not rest.
    #[must_use]
    pub fn hold(&self) -> Option<PauseHold> {
        self.pause.hold()
    }

    /// Waits until the conversation is not paused.
    pub async fn resumed(&self) {
        self.pause.resumed().await;
    }

    /// Gives an instruction to the conversation, as [`send`](Self::send) does. A run that is in progress pauses, resumes, is cancelled
    /// and gets higher limits at once, takes in messages and the next speaker before its next step, and an answer when it waits, or when only
    /// the turn that asks does, next to others of its step or to background tasks, or the agent that is called, next to other calls, or the
    /// background task, next to the steps of its chat.
    pub fn instruct(&self, instruction: Instruction) -> Confirmation {
        self.inbox.push(instruction)
    }

    /// Gives an instruction like [`instruct`](Self::instruct): the message `number` in the inbox of the store. Does nothing and returns
    /// `None` if the log has it already, or it waits already.
    pub async fn deliver(&self, number: u64, instruction: Instruction) -> Option<Confirmation> {
        let is_taken = self.buffer.lock().await.totals.taken.contains(number);
        if is_taken { None } else { self.inbox.push_message(number, instruction) }
    }

    /// Returns the number up to which the log has all messages of the inbox of the store.
    pub async fn taken_until(&self) -> u64 {
        self.buffer.lock().await.totals.taken.until()
    }

    /// Returns whether instructions wait that can be carried out when the run has ended.
    pub fn has_unposted(&self) -> bool {
        self.inbox.has(&[Timing::Now, Timing::BetweenSteps, Timing::AtRest])
    }
}
