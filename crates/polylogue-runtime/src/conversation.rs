//! An open conversation: run by one task, and watched, answered and cancelled by others.

mod continuing;
mod elsewhere;
mod release;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

use futures_util::future::{Either, select};
use polylogue::runs::worker::Worker;
use polylogue_core::{
    Agent as _, AnyStore, BoundException, Cancellation, Chat, Confirmation, Event, Instruction,
    LimitOverrides, Limits, Log, LogHandle, LogId, Message, Name, Part, Path, PauseHold, Question, Responder,
    RunBound, RunOutcome, Status, StopReason, Subscription, TeamChanged, TotalUsage,
};
use polylogue_team::TeamChange;
use tokio::sync::Mutex;

use crate::continuation::{is_raised, raises};
use crate::inbox::{deliver, fetch};
use crate::{Error, Prepared, Result};

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
    /// Has the inbox.
    store: AnyStore,
    /// Parts for the message with the task of one that has not begun.
    attached: std::sync::Mutex<Vec<Part>>,
    /// Whether limits that were changed are in the log.
    has_limits: AtomicBool,
    /// Another version of its team, which is not in the log yet.
    team: std::sync::Mutex<Option<TeamChanged>>,
    /// How many events it had when its last run ended because all that is open in it waits for people; 0 if that ended otherwise.
    waits_at: AtomicUsize,
    /// Locked while the conversation runs; `None` when it was released.
    log: Mutex<Option<Log>>,
}

/// How a conversation was opened.
pub(crate) struct Opened {
    /// The task of one that has not begun.
    pub(crate) task: String,
    pub(crate) limits: Limits,
    /// The limits that it had before.
    pub(crate) before: Limits,
    /// Limits that differ from the logged ones.
    pub(crate) changed: Option<LimitOverrides>,
    /// What it may use beyond what it has used.
    pub(crate) more: LimitOverrides,
    /// How many events it had.
    pub(crate) events: u64,
    /// Whether workers continue it if this process dies.
    pub(crate) is_continued: bool,
}

/// Whether a resumed conversation continues.
#[derive(Debug, Clone, PartialEq)]
pub enum Resumed {
    /// It continues when it is run.
    Continues,
    /// It has reached its goal: running it does nothing.
    Done(StopReason),
    /// It would end again at once for the same reason: running it does nothing. A higher limit or a new message
    /// continues it.
    EndsAgain(StopReason),
}

impl Conversation {
    pub(crate) fn new(chat: Chat, log: Log, opened: Opened, store: AnyStore) -> Self {
        let (handle, has_limits) = (log.handle(), AtomicBool::new(opened.changed.is_none()));
        Self(Arc::new(Shared {
            chat,
            opened,
            handle,
            store,
            attached: Default::default(),
            has_limits,
            team: std::sync::Mutex::default(),
            waits_at: AtomicUsize::new(0),
            log: Mutex::new(Some(log)),
        }))
    }

    /// Returns the id.
    pub fn id(&self) -> &LogId {
        self.0.handle.id()
    }

    /// Returns the outermost chat.
    pub fn chat(&self) -> &Chat {
        &self.0.chat
    }

    /// Returns the limits of the conversation.
    pub fn limits(&self) -> &Limits {
        &self.0.opened.limits
    }

    /// Returns how many events it had when this process opened it.
    pub fn inherited_events(&self) -> u64 {
        self.0.opened.events
    }

    /// Subscribes to updates from now on. Subscribe before reading, so that nothing is missed.
    pub async fn subscribe(&self) -> Subscription {
        self.0.handle.subscribe().await
    }

    /// Returns the events so far.
    pub async fn events(&self) -> Vec<Arc<Event>> {
        self.0.handle.events().await
    }

    /// Returns the total usage so far.
    pub async fn usage(&self) -> TotalUsage {
        self.0.handle.usage().await
    }

    /// Returns the number of turns in all chats.
    pub async fn turns(&self) -> u64 {
        self.0.handle.turns().await
    }

    /// Returns the bound of the conversation, what it takes at most, if that was computed before it began.
    pub fn bound(&self) -> Option<RunBound> {
        self.0.handle.bound()
    }

    /// Returns why its [bound](Self::bound) does not apply any more; `None` if it does, or if there is none.
    pub async fn bound_exception(&self) -> Option<BoundException> {
        self.0.handle.bound_exception().await
    }

    /// Returns the questions without an answer, with the paths of their chats.
    pub async fn questions(&self) -> Vec<(Path, Question)> {
        self.0.handle.questions().await
    }

    /// Returns the handle that cancels it: the run ends after its step, or at once, and can be resumed.
    pub fn cancellation(&self) -> Cancellation {
        self.0.handle.cancellation()
    }

    /// Runs the conversation until it closes, waits for a person, or is cancelled. Begins one that has not begun. When it runs
    /// already, waits for that run first.
    ///
    /// # Errors
    /// When a turn fails or the log cannot be written, and [`StoreError::UnknownInstruction`](polylogue_core::StoreError::UnknownInstruction)
    /// when its inbox has an instruction of a later version: it ends after its step, for that version. Everything before is in the log, and
    /// running again tries again.
    pub async fn run(&self) -> Result<Status> {
        let mut run = pin!(self.run_to_rest());
        let inbox = pin!(deliver(self.0.store.clone(), self.0.handle.clone()));
        let unknown = match select(run.as_mut(), inbox).await {
            Either::Left((status, _)) => return status,
            Either::Right((unknown, _)) => unknown,
        };
        // As when a worker is drained.
        self.cancellation().cancel_after_step();
        let status = match select(run.as_mut(), pin!(tokio::time::sleep(Worker::DEFAULT_DRAIN_TIMEOUT))).await
        {
            Either::Left((status, _)) => status?,
            Either::Right(((), _)) => {
                self.cancellation().cancel_now();
                run.await?
            }
        };
        match status {
            Status::Cancelled => Err(unknown.into()),
            status => Ok(status),
        }
    }

    async fn run_to_rest(&self) -> Result<Status> {
        loop {
            let status = self.run_once().await?;
            if matches!(status, Status::Closed { .. }) {
                // What another process has sent since this one looked last. If that cannot be read now, the next process takes it.
                let _ = fetch(&self.0.store, &self.0.handle).await;
            }
            // What was sent after the last step, and answers that came when no turn was in progress any more.
            let is_any = self.0.handle.has_unposted() && self.post_inbox().await?;
            if !is_any || matches!(status, Status::Cancelled) {
                return Ok(status);
            }
        }
    }

    async fn run_once(&self) -> Result<Status> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        let Shared { chat, opened, waits_at, .. } = &*self.0;
        let result = if log.has_begun().await? {
            log.post_inbox().await?;
            if !self.has_logged_limits() && log.transcript().await?.closed().is_none() {
                self.log_changes(log).await?;
            }
            chat.resume(log).await?
        } else {
            chat.run_with(log, &opened.task, self.attached()).await?
        };
        let waits = matches!(result.status, Status::Waiting(_));
        waits_at.store(if waits { result.events().len() } else { 0 }, Ordering::Relaxed);
        Ok(result.status)
    }

    /// Lets the conversation continue with `prepared`, another version of its team, which has these `changes`:
    /// [`resume`](Self::resume) logs that before anything else. If all of them are harmless, its bound still applies.
    ///
    /// # Errors
    /// When the team cannot be stored.
    pub fn change_team(&self, prepared: &Prepared, changes: Vec<TeamChange>) -> Result<()> {
        let stored = prepared.run().stored()?;
        let (digest, team) = (stored.digest.as_str().into(), stored.value()?);
        let harmless = changes.iter().all(|change| change.is_harmless);
        let changes = changes.into_iter().map(|change| change.text.into()).collect();
        *self.team() = Some(TeamChanged { digest, changes, harmless, team });
        Ok(())
    }

    /// Logs another version of its team, that was [set](Self::change_team), without running it.
    pub(crate) async fn log_team(&self) -> Result<()> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        self.log_changes(log).await
    }

    fn team(&self) -> std::sync::MutexGuard<'_, Option<TeamChanged>> {
        self.0.team.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs limits that were changed when it was opened, and another version of its team, once. Its opening is before limits in the log; a team
    /// can change before, with all participants.
    async fn log_changes(&self, log: &mut Log) -> Result<()> {
        let team = self.team().clone();
        let limits = self.0.opened.changed.filter(|_| !self.has_logged_limits());
        if limits.is_some() {
            self.begin_in(log).await?;
        }
        if let Some(changed) = team {
            log.change_team(changed).await?;
            *self.team() = None;
        }
        if let Some(limits) = limits {
            log.change_limits(limits, &self.0.opened.before).await?;
            self.0.has_limits.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn has_logged_limits(&self) -> bool {
        self.0.has_limits.load(Ordering::Relaxed)
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
            Either::Left((Ok(()), _)) => return Ok(()),
            Either::Left((Err(_), _)) => {}
            Either::Right((mut log, _)) => {
                log.as_mut().ok_or_else(|| self.gone())?.post_inbox().await?;
                if sent.await.is_ok() {
                    return Ok(());
                }
            }
        }
        Err(Error::NotSent { id: self.id().clone() })
    }

    /// Waits until its run rests because it is paused: [`LogHandle::rests`].
    pub async fn rests(&self) {
        self.0.handle.rests().await;
    }

    /// Keeps its run, which [rests](Self::rests), from continuing while what is returned exists: [`LogHandle::hold`].
    #[must_use]
    pub fn hold(&self) -> Option<PauseHold> {
        self.0.handle.hold()
    }

    /// Waits until it is not paused.
    pub async fn resumed(&self) {
        self.0.handle.resumed().await;
    }

    /// Gives the conversation an instruction, from this process. The [`Confirmation`] says when its event is in the log: a
    /// message or a next speaker before the next step, an answer when it waits, or when only the turn that asks does, next to
    /// others of its step, everything else at once while it [runs](Self::run).
    pub fn instruct(&self, instruction: Instruction) -> Confirmation {
        self.0.handle.instruct(instruction)
    }

    /// Adds parts, such as pictures, to the message with the task of one that has not begun.
    pub fn attach(&self, parts: Vec<Part>) {
        self.0.attached.lock().unwrap_or_else(PoisonError::into_inner).extend(parts);
    }

    /// Begins the conversation without running it: when this returns, its opening is in the log, with the task and what was
    /// [attached](Self::attach), so that a process that dies before it runs loses none of that. Does nothing if it has begun.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn begin(&self) -> Result<()> {
        let mut log = self.0.log.lock().await;
        self.begin_in(log.as_mut().ok_or_else(|| self.gone())?).await
    }

    async fn begin_in(&self, log: &mut Log) -> Result<()> {
        if log.has_begun().await? {
            return Ok(());
        }
        Ok(self.0.chat.open_in(log, &self.0.opened.task, self.attached()).await?)
    }

    fn attached(&self) -> Vec<Part> {
        self.0.attached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number for replies of any length, where a number is needed: exact in every JSON reader.
    pub const ANY_REPLY_LENGTH: u64 = (1 << 53) - 1;

    /// Limits replies of agents in the outermost chat to `tokens` from now on, in this process and in those that continue it;
    /// [`ANY_REPLY_LENGTH`](Self::ANY_REPLY_LENGTH) ends that. Waits while it runs.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn limit_replies(&self, tokens: u64) -> Result<()> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        let logged = LimitOverrides::last_of(&log.events().await);
        let own = logged.and_then(|logged| logged.reply_tokens).or(self.limits().reply_tokens);
        if own.unwrap_or(Self::ANY_REPLY_LENGTH) == tokens {
            return Ok(());
        }
        self.begin_in(log).await?;
        let limits = LimitOverrides { reply_tokens: Some(tokens), ..LimitOverrides::default() };
        Ok(log.override_limits(limits).await?)
    }

    /// Prepares a stored conversation to continue, with `message` if it is closed: logs limits that have changed, and reopens
    /// it unless it would end again at once; a message is then not added. One that has not begun [begins](Self::begin) before
    /// its limits change. Without a message, limits of its outermost chat are raised by the [`more`](crate::OpenOptions::more)
    /// that it was opened for, unless a message that was sent before its end has no answer: the run continues with that.
    /// [`run`](Self::run) continues it.
    ///
    /// # Errors
    /// [`Error::NotClosed`] when there is a message and it is not closed.
    pub async fn resume(&self, message: Option<Message>) -> Result<Resumed> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        let Opened { limits, more, .. } = &self.0.opened;
        let transcript = log.transcript().await?;
        let closed = transcript.closed().map(|(reason, _)| reason.clone());
        let is_more = |reason: &StopReason| raises(reason, more) || is_raised(reason, transcript.raised());
        let answers = message.is_none() && self.0.chat.has_unanswered_message(log).await?;
        match (&message, closed) {
            (Some(_), None) => return Err(self.not_closed().await),
            (None, Some(_)) if answers => self.log_changes(log).await?,
            (None, Some(reason)) if reason.outcome() == RunOutcome::Done && !is_more(&reason) => {
                return Ok(Resumed::Done(reason));
            }
            (None, Some(_)) => {
                let raised = match self.raised(log, limits, *more).await? {
                    Ok(raised) => raised,
                    Err(reason) => return Ok(Resumed::EndsAgain(reason)),
                };
                self.log_changes(log).await?;
                log.reopen_for(raised).await?;
            }
            (Some(message), Some(_)) => {
                if let Some(reason) = self.0.chat.ends_again_after_message(log, limits, message).await? {
                    return Ok(Resumed::EndsAgain(reason));
                }
                self.log_changes(log).await?;
            }
            (None, None) => self.log_changes(log).await?,
        }
        // Appended by the run, which subscribers watch.
        message.into_iter().for_each(|message| drop(self.0.handle.send(message)));
        Ok(Resumed::Continues)
    }

    /// How much limits of the closed chat itself are raised so that it continues under `limits`: by nothing if these ended it, else
    /// by `more`. The error is why it would end again.
    async fn raised(
        &self,
        log: &Log,
        limits: &Limits,
        more: LimitOverrides,
    ) -> Result<std::result::Result<LimitOverrides, StopReason>> {
        let (chat, none) = (&self.0.chat, LimitOverrides::default());
        Ok(match chat.ends_again(log, limits, none).await? {
            None => Ok(none),
            Some(reason) if more.is_empty() => Err(reason),
            Some(_) => chat.ends_again(log, limits, more).await?.map_or(Ok(more), Err),
        })
    }

    /// Returns whether the conversation has ended: a message reopens it.
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

    /// Answers the question of `who` in the chat `at`; [`run`](Self::run) continues. Waits while it runs. `by` is in the log.
    ///
    /// # Errors
    /// [`Error::NoQuestion`], or when the log cannot be written.
    pub async fn answer(
        &self,
        at: &Path,
        who: &Name,
        text: impl Into<Arc<str>>,
        by: Responder,
    ) -> Result<()> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        if !log.questions().await?.iter().any(|(path, question)| path == at && question.who == *who) {
            return Err(Error::NoQuestion { id: self.id().clone() });
        }
        Ok(log.answer_by(at, who, text, by).await?)
    }

    /// Returns the participants of the outermost chat, who can be the author of a message from outside besides `user`.
    pub fn authors(&self) -> impl Iterator<Item = Name> {
        let participants = self.0.chat.participants().iter().map(|agent| agent.name().clone());
        participants.chain([Name::user()])
    }

    fn gone(&self) -> Error {
        Error::Released { id: self.id().clone() }
    }
}
