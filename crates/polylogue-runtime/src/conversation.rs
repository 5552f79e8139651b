//! An open conversation: run by one task, and watched, answered and cancelled by others.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};

use polylogue_core::{
    Agent as _, Cancellation, Chat, Event, LimitOverrides, Limits, Log, LogHandle, LogId, Message, Name,
    Path, Question, RunOutcome, Status, StopReason, Subscription, TotalUsage,
};
use tokio::sync::Mutex;

use crate::{Error, Result};

/// A conversation that this process has open, and the right to continue it.
///
/// Cloning shares it: one task [runs](Self::run) it while others subscribe, read, answer and cancel. The last handle that is dropped
/// closes it here, and another process can open it.
#[derive(Clone)]
pub struct Conversation(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    chat: Chat,
    opened: Opened,
    /// For all but the runner.
    handle: LogHandle,
    /// Locked while the conversation runs; `None` when it was released.
    log: Mutex<Option<Log>>,
}

/// How a conversation was opened.
pub(crate) struct Opened {
    /// The task of one that has not begun.
    pub(crate) task: String,
    pub(crate) limits: Limits,
    /// Limits that differ from the logged ones.
    pub(crate) changed: Option<LimitOverrides>,
}

/// Whether a conversation continues.
#[derive(Debug, Clone, PartialEq)]
pub enum Resumed {
    /// It continues when it is run.
    Continues,
    /// It has reached its goal: running it does nothing.
    Done,
    /// It would end again at once for the same reason: running it does nothing. A higher limit or a new message
    /// continues it.
    EndsAgain(StopReason),
}

impl Conversation {
    pub(crate) fn new(chat: Chat, log: Log, opened: Opened) -> Self {
        let handle = log.handle();
        Self(Arc::new(Shared { chat, opened, handle, log: Mutex::new(Some(log)) }))
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &LogId {
        self.0.handle.id()
    }

    /// The outermost chat.
    #[must_use]
    pub fn chat(&self) -> &Chat {
        &self.0.chat
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.opened.limits
    }

    /// Subscribes to updates from now on. Subscribe before reading, so that nothing is missed.
    pub async fn subscribe(&self) -> Subscription {
        self.0.handle.subscribe().await
    }

    /// The events so far.
    pub async fn events(&self) -> Vec<Arc<Event>> {
        self.0.handle.events().await
    }

    /// The total usage so far.
    pub async fn usage(&self) -> TotalUsage {
        self.0.handle.usage().await
    }

    /// The number of turns in all chats.
    pub async fn turns(&self) -> u64 {
        self.0.handle.turns().await
    }

    /// The questions without an answer, with the paths of their chats.
    pub async fn questions(&self) -> Vec<(Path, Question)> {
        self.0.handle.questions().await
    }

    /// The handle that cancels it: the run ends after its step, or at once, and can be resumed.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.0.handle.cancellation()
    }

    /// Runs it until it closes, waits for a person, or is cancelled. Begins one that has not begun. When it runs already, waits for
    /// that run first.
    ///
    /// # Errors
    /// When a turn fails or the log cannot be written. Everything before is in the log, and running again tries again.
    pub async fn run(&self) -> Result<Status> {
        loop {
            let status = self.run_once().await?;
            // Messages that were sent after the last step.
            if !self.0.handle.has_unposted() {
                return Ok(status);
            }
            if matches!(status, Status::Cancelled) {
                self.post_inbox().await?;
                return Ok(status);
            }
        }
    }

    async fn post_inbox(&self) -> Result<()> {
        let mut log = self.0.log.lock().await;
        log.as_mut().ok_or_else(|| self.gone())?.post_inbox().await?;
        Ok(())
    }

    async fn run_once(&self) -> Result<Status> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        let Shared { chat, opened, .. } = &*self.0;
        if !log.has_begun().await? {
            return Ok(chat.run_in(log, &opened.task).await?.status);
        }
        log.post_inbox().await?;
        Ok(chat.resume(log).await?.status)
    }

    /// Sends `message` into it, and returns when the message is in the log. While it runs, the run adds it before its next step, and
    /// agents see it from their next turn on. When it is closed, the message reopens it, and when it waits, it is added to it;
    /// [`run`](Self::run) continues. What an agent does in its turn must not wait for it: the step ends after the turn.
    ///
    /// # Errors
    /// When it has not begun, or the log cannot be written.
    pub async fn send(&self, message: Message) -> Result<()> {
        let mut sent = pin!(self.0.handle.send(message).confirmed());
        // While it is locked, its runner takes the message; what it has not taken by its end is added here.
        match select(sent.as_mut(), pin!(self.0.log.lock())).await {
            Either::Left((true, _)) => return Ok(()),
            Either::Left((false, _)) => {}
            Either::Right((mut log, _)) => {
                log.as_mut().ok_or_else(|| self.gone())?.post_inbox().await?;
                if sent.await {
                    return Ok(());
                }
            }
        }
        Err(Error::NotSent { id: self.id().clone() })
    }

    /// Adds `message` to one that has not begun: its run appends the message after the task, before the first turn.
    pub fn attach(&self, message: Message) {
        self.0.handle.send(message);
    }

    /// Prepares one that was stored to continue, with `message` if it is closed: logs limits that have changed, and reopens it unless
    /// it would end again at once. [`run`](Self::run) continues it.
    ///
    /// # Errors
    /// [`Error::NotClosed`] when there is a message and it is not closed.
    pub async fn resume(&self, message: Option<Message>) -> Result<Resumed> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        let closed = log.transcript().await?.closed().map(|(reason, _)| reason.outcome());
        match (&message, closed) {
            (Some(_), None) => return Err(self.not_closed().await),
            (None, Some(RunOutcome::Done)) => return Ok(Resumed::Done),
            (None, Some(_)) => {
                if let Some(reason) = self.0.chat.ends_again(log, self.limits()).await? {
                    return Ok(Resumed::EndsAgain(reason));
                }
            }
            _ => {}
        }
        if let Some(limits) = self.0.opened.changed {
            log.change_limits(limits).await?;
        }
        match message {
            // Appended by the run, which subscribers watch.
            Some(message) => drop(self.0.handle.send(message)),
            None => log.reopen().await?,
        }
        Ok(Resumed::Continues)
    }

    /// Whether it has ended: a message reopens it.
    ///
    /// # Errors
    /// When the log is not a valid conversation. Waits while it runs.
    pub async fn is_closed(&self) -> Result<bool> {
        let log = self.0.log.lock().await;
        let log = log.as_ref().ok_or_else(|| self.gone())?;
        Ok(log.transcript().await?.closed().is_some())
    }

    async fn not_closed(&self) -> Error {
        let asks = self.questions().await.first().map(|(_, question)| question.who.clone());
        Error::NotClosed { id: self.id().clone(), asks }
    }

    /// Answers the question of `who` in the chat `at`; [`run`](Self::run) continues. Waits while it runs.
    ///
    /// # Errors
    /// [`Error::NoQuestion`], or when the log cannot be written.
    pub async fn answer(&self, at: &Path, who: &Name, text: impl Into<Arc<str>>) -> Result<()> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        if !log.questions().await?.iter().any(|(path, question)| path == at && question.who == *who) {
            return Err(Error::NoQuestion { id: self.id().clone() });
        }
        Ok(log.answer(at, who, text).await?)
    }

    /// Closes it from outside, for the reason that `by` stopped it. Waits while it runs.
    ///
    /// # Errors
    /// When it has not begun, or the log cannot be written.
    pub async fn close(&self, by: &str) -> Result<()> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        Ok(log.close(by).await?)
    }

    /// Gives up the turns that are open after a cancellation or an error, and closes it, so that a message that is
    /// [sent](Self::send) begins new ones. Does nothing if it is closed. Waits while it runs.
    ///
    /// # Errors
    /// When it has not begun, or the log cannot be written.
    pub async fn give_up(&self, by: &str) -> Result<()> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        if log.transcript().await?.closed().is_none() {
            log.roll_back_open_turns().await?;
        }
        Ok(log.close(by).await?)
    }

    /// The participants of the outermost chat, who can be the author of a message from outside besides `user`.
    pub fn authors(&self) -> impl Iterator<Item = Name> {
        let participants = self.0.chat.participants().iter().map(|agent| agent.name().clone());
        participants.chain([Name::user()])
    }

    /// Releases it, so that another process can open it. Other handles can no longer run it. Dropping the last handle does so, too,
    /// but cannot report errors.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release(&self) -> Result<()> {
        match self.0.log.lock().await.take() {
            Some(log) => Ok(log.release().await?),
            None => Ok(()),
        }
    }

    fn gone(&self) -> Error {
        Error::Released { id: self.id().clone() }
    }
}
