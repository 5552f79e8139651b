//! Logs: the events of a conversation, and the right to append more.
//!
//! | about | look at |
//! |---|---|
//! | events | [`Event`], [`Body`], [`TurnRequest`], [`Question`], [`Timestamp`]; the checksums that link them: [`chain`] |
//! | an open log | [`Log`], [`LogHandle`], [`Meta`], [`Subscription`], [`Update`], [`Reservation`], [`Resources`] |
//! | stores | [`Store`], [`AnyStore`], [`StoreWrapper`], [`Claim`], [`Blobs`] |
//! | lists of logs | [`ListQuery`], [`Listing`], [`OpenState`], [`Summary`], [`Page`] |
//! | messages to a running conversation | [`InboxMessage`], [`Instruction`], [`OpenQuestion`] |
//! | queues of logs for workers | [`Queue`], [`AnyQueue`], [`QueueWrapper`], [`Due`], [`Lease`], [`QueueOverview`] |

mod accounts;
mod admission;
mod allowances;
mod answers;
mod background;
mod background_start;
mod blobs;
mod bound_account;
mod bound_facts;
mod buffer;
mod cancel;
pub mod chain;
mod claim;
mod clock;
mod cut_off;
mod cut_replies;
mod doubt;
mod due;
mod dyn_queue;
mod event;
mod features;
mod given_approval;
mod handle;
mod in_memory;
mod inbox;
mod lease;
mod list;
mod meta;
mod meter;
mod open;
mod open_question;
mod origins;
mod overview;
mod pause;
mod question;
mod queue;
mod raise;
mod request;
mod reservation;
mod resources;
mod result_account;
mod results;
mod run_time;
mod steer;
mod steps;
mod store;
mod summary;
mod time_limit;
mod turns;
mod updates;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, MutexGuard};
use tracing::{debug, error, trace};

pub(crate) use self::answers::Answer;
pub use self::blobs::Blobs;
pub use self::bound_facts::BoundFacts;
use self::buffer::EventBuffer;
pub(crate) use self::buffer::RunTotals;
pub use self::claim::{Claim, FoundDue, LEASE, LeaseNumber};
use self::clock::Stopwatch;
pub use self::clock::{Clock, Timestamp};
pub(crate) use self::doubt::{LastEvent, UncheckedTurn};
pub use self::due::{Due, Heartbeat, MAX_TRIES, ParkedLog};
pub use self::dyn_queue::DynQueue;
pub use self::event::{Body, Event, HistoryEntry, JoinHistory, Opening};
pub use self::features::{FeatureError, Features};
pub use self::given_approval::GivenApproval;
pub use self::handle::LogHandle;
use self::inbox::Inbox;
pub use self::inbox::{Confirmation, InboxMessage, Instruction, InstructionError};
pub(crate) use self::inbox::{Pending, Timing};
pub use self::lease::Lease;
pub use self::list::{Cursor, ListQuery, Listing, LogState, OpenState, Page};
pub use self::meta::{Meta, Parent, TeamChanged};
pub use self::meter::Meter;
pub use self::open_question::OpenQuestion;
pub use self::overview::{QueueFigures, QueueOverview, QueueState, QueuedLog, SeenWorker, WorkerInfo};
use self::pause::Pause;
pub use self::pause::PauseHold;
pub use self::question::{AnswerChoice, AnswerEffect, DefaultAnswer, Question, QuestionKind, Responder};
pub use self::queue::{AnyQueue, Queue, QueueWrapper};
pub(crate) use self::raise::AtLimit;
pub use self::request::{Choice, Chooser, TurnRequest};
pub(crate) use self::reservation::ReservationRequest;
pub use self::reservation::{FailedAttempt, Reservation};
pub use self::resources::{ResourceKey, Resources};
pub use self::result_account::NotStored;
use self::result_account::ResultAccount;
pub use self::results::{StoredResults, StoredText};
pub use self::store::{AnyStore, KEY_RESERVATION, RecoveredEvents, Store, StoreWrapper};
pub use self::summary::{Progress, Summary};
pub(crate) use self::turns::turns_taken;
use self::updates::Publisher;
pub use self::updates::{Subscription, Update};
use crate::limits::{Account, Budgets};
use crate::{
    Allowance, AllowanceOwner, Budget, Cancellation, Limits, LogId, Name, Path, Result, RunBound, StoreError,
    Timer, TotalUsage,
};

/// A conversation: a log of events in a store, claimed for writing.
///
/// The log is the program counter. Everything that is not a pure function of it - model replies, answers of people,
/// tool results - is in it as an event, so that a run can be stopped anywhere and continue in another process.
pub struct Log {
    id: LogId,
    store: AnyStore,
    claim: Claim,
    limits: RwLock<Limits>,
    /// Those of an earlier process, if it may have died with calls in flight.
    pub(crate) lost_under: Option<Limits>,
    /// Those that it shares with other runs.
    pub(crate) budgets: Budgets,
    pub(crate) allowances: Vec<(Name, Allowance)>,
    /// The limits of chats that may not have run since the log was opened.
    pub(crate) chat_allowances: Vec<(AllowanceOwner, Allowance)>,
    /// What the run takes at most.
    pub(crate) bound: Option<RunBound>,
    pub(crate) account: Account,
    /// How many of its events are from before it was opened.
    pub(crate) inherited: u64,
    /// How many of these were copied from another conversation.
    pub(crate) copied: u64,
    clock: Clock,
    running: Stopwatch,
    timer: Option<Timer>,
    live: Publisher,
    cancellation: Cancellation,
    resources: Resources,
    results: ResultAccount,
    pub(crate) buffer: Arc<Mutex<EventBuffer>>,
    /// Instructions from outside.
    pub(crate) inbox: Inbox,
    pause: Pause,
    /// Locked by the agent call in progress: one at a time.
    pub(crate) calls: Mutex<()>,
    /// Whether events wait for the next append, and would be lost if the process died while the run waits.
    unwritten: AtomicBool,
    /// Whether the claim was released.
    released: bool,
}

impl Drop for Log {
    /// Releases the claim, and tells those who wait for instructions that they are lost. Stores start the release when the future is
    /// first polled, so there is no need to wait.
    fn drop(&mut self) {
        self.inbox.close();
        if !self.released {
            let release = pin!(self.store.release(self.claim.clone()));
            let _ = release.poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Log {
    /// Returns the claim, to be renewed while a turn takes long.
    pub fn lease(&self) -> Lease {
        Lease::new(self.store.clone(), self.claim.clone())
    }

    fn new(store: AnyStore, id: LogId, claim: Claim, buffer: EventBuffer) -> Self {
        let (limits, live, cancellation) = (RwLock::default(), Publisher::default(), Cancellation::default());
        let ran_ms = buffer.events.last().map_or(0, |event| event.ran_ms);
        Self {
            id,
            store,
            claim,
            limits,
            lost_under: None,
            budgets: Budgets::default(),
            allowances: Vec::new(),
            chat_allowances: Vec::new(),
            bound: None,
            account: Account::default(),
            inherited: buffer.next_seq(),
            copied: 0,
            clock: Arc::new(Timestamp::now),
            running: Stopwatch::opened(ran_ms),
            timer: None,
            live,
            cancellation,
            resources: Resources::default(),
            results: ResultAccount::default(),
            buffer: Arc::new(Mutex::new(buffer)),
            inbox: Inbox::default(),
            pause: Pause::default(),
            calls: Mutex::new(()),
            unwritten: AtomicBool::new(false),
            released: false,
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = RwLock::new(limits);
        self
    }

    /// Adds a budget that pays for the calls. Several runs can share one, and a run can have several, such as those of a process and of a
    /// token: all of them are charged, and the one that cannot cover a call ends the run.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budgets.add(budget);
        self
    }

    /// Sets another source of the time of day. The running time does not depend on it. For tests.
    #[must_use]
    pub fn time_of_day(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets another clock, also for the running time. For tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self.running = self.running.by_another_clock();
        self
    }

    /// Sets the cancellation handle. Several runs can share one.
    #[must_use]
    pub fn cancelled_by(mut self, cancellation: Cancellation) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// Returns the id of the conversation.
    pub const fn id(&self) -> &LogId {
        &self.id
    }

    /// Returns the resources that tools keep for this conversation while it is open.
    pub const fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Returns the handle that cancels runs of this log.
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Subscribes to the updates of an empty log.
    pub(crate) fn subscribe_from_start(&self) -> Subscription {
        self.live.subscribe(0)
    }

    /// Subscribes to updates from now on, and to what has been streamed of replies that are being written. Subscribe
    /// before reading, so that nothing is missed.
    pub async fn subscribe(&self) -> Subscription {
        self.live.subscribe(self.buffer.lock().await.next_seq())
    }

    /// Returns a handle for others than the runner.
    pub fn handle(&self) -> LogHandle {
        LogHandle {
            id: self.id.clone(),
            buffer: Arc::clone(&self.buffer),
            updates: self.live.downgrade(),
            cancellation: self.cancellation(),
            inbox: self.inbox.clone(),
            pause: self.pause.clone(),
            bound: self.bound,
        }
    }

    /// Returns the events so far.
    pub async fn events(&self) -> Vec<Arc<Event>> {
        self.buffer.lock().await.events.clone()
    }

    /// Reads the events so far without cloning them.
    pub(crate) async fn look<T>(&self, at: impl FnOnce(&[Arc<Event>]) -> T) -> T {
        at(&self.buffer.lock().await.events)
    }

    /// The questions without an answer, oldest first.
    pub(crate) async fn open_questions(&self) -> Vec<OpenQuestion> {
        self.buffer.lock().await.open_questions()
    }

    /// The sources of content from outside that `who` has read in the chat `at` before the event `before`.
    pub(crate) async fn read_by(&self, at: &Path, who: &Name, before: Option<u64>) -> Vec<Arc<str>> {
        self.buffer.lock().await.totals.origins.read_by(at, who, before)
    }

    /// Returns the total usage so far.
    pub async fn usage(&self) -> TotalUsage {
        self.buffer.lock().await.totals.usage
    }

    /// Returns the number of turns in all chats, as [`Limits::turns`] counts them.
    pub async fn turns(&self) -> u64 {
        self.buffer.lock().await.totals.turns.ended
    }

    /// Returns the number of finished model calls of each agent.
    pub async fn calls(&self) -> BTreeMap<Name, u64> {
        self.buffer.lock().await.totals.calls.clone()
    }

    /// The time of day.
    pub(crate) fn time_now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The time of day, and the running time of the conversation in milliseconds.
    fn now(&self) -> (Timestamp, u64) {
        let time = (self.clock)();
        (time, self.running.at(time))
    }

    /// Appends events, then publishes them.
    pub(crate) async fn append(
        &self,
        at: &Path,
        bodies: impl IntoIterator<Item = Body>,
    ) -> Result<Vec<Arc<Event>>> {
        let mut buffer = self.ready().await?;
        let batch = buffer.stage(at, self.now(), bodies);
        self.settle(&mut buffer).await?;
        Ok(batch)
    }

    /// Appends events of several chats in one write.
    pub(crate) async fn append_each(&self, bodies: impl IntoIterator<Item = (Path, Body)>) -> Result<()> {
        let mut buffer = self.ready().await?;
        for (at, body) in bodies {
            buffer.stage(&at, self.now(), [body]);
        }
        if buffer.staged().is_empty() { Ok(()) } else { self.settle(&mut buffer).await }
    }

    /// Rolls back everything since an event in a call chat and the chats within it, the outermost last: a call is
    /// over when all of it is rolled back.
    pub(crate) async fn roll_back(&self, chat: &Path, since: u64) -> Result<()> {
        self.roll_back_except(chat, since, &[]).await
    }

    /// As [`roll_back`](Self::roll_back), without the chats `others` and those within them.
    pub(crate) async fn roll_back_except(&self, chat: &Path, since: u64, others: &[Path]) -> Result<()> {
        let mut paths: Vec<(Path, u64)> = Vec::new();
        let is_in = |at: &Path, chat: &Path| at == chat || at.is_within(chat);
        let is_there = |at: &Path| is_in(at, chat) && !others.iter().any(|other| is_in(at, other));
        for event in self.buffer.lock().await.since(since).iter().filter(|event| is_there(&event.chat)) {
            if !paths.iter().any(|(at, _)| *at == event.chat) {
                paths.push((event.chat.clone(), event.seq));
            }
        }
        paths.sort_by_key(|(at, _)| std::cmp::Reverse(at.depth()));
        self.append_each(paths.into_iter().map(|(at, since)| (at, Body::RolledBack { since }))).await
    }

    /// Makes events that are appended and published together with the next ones. For events that can be computed
    /// again from the log, so that a step needs one write less.
    pub(crate) async fn stage(
        &self,
        at: &Path,
        bodies: impl IntoIterator<Item = Body>,
    ) -> Result<Vec<Arc<Event>>> {
        let mut buffer = self.buffer.lock().await;
        self.catch_up(&mut buffer).await?;
        Ok(buffer.stage(at, self.now(), bodies))
    }

    /// As [`append`](Self::append), but leaves the write to the next append, or to [`write_while`](Self::write_while)
    /// when the run has to wait for something. Until then, nothing has happened that the events do not explain.
    pub(crate) async fn append_with_next(
        &self,
        at: &Path,
        bodies: impl IntoIterator<Item = Body>,
    ) -> Result<Vec<Arc<Event>>> {
        let mut buffer = self.ready().await?;
        let batch = buffer.stage(at, self.now(), bodies);
        self.unwritten.store(true, Ordering::Relaxed);
        Ok(batch)
    }

    /// Does `work`, and writes the events that were left to the next append whenever `work` has to wait.
    ///
    /// # Errors
    /// When the store cannot be written: the events are lost, and `work` is dropped.
    pub(crate) async fn write_while<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let mut work = pin!(work);
        let mut done = None;
        let mut write: Option<BoxFuture<'_, Result<()>>> = None;
        poll_fn(|cx| {
            if done.is_none()
                && let Poll::Ready(result) = work.as_mut().poll(cx)
            {
                done = Some(result);
            }
            if write.is_none() && done.is_none() && self.unwritten.load(Ordering::Relaxed) {
                write = Some(self.flush().boxed());
            }
            if let Some(writing) = &mut write {
                match writing.as_mut().poll(cx) {
                    Poll::Ready(result) => {
                        write = None;
                        result?;
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            done.take().map_or(Poll::Pending, |result| Poll::Ready(Ok(result)))
        })
        .await
    }

    /// Appends the staged events.
    pub(crate) async fn flush(&self) -> Result<()> {
        let mut buffer = self.ready().await?;
        if buffer.staged().is_empty() { Ok(()) } else { self.settle(&mut buffer).await }
    }

    /// Appends pending charges: a call that was sent counts before anything else is sent.
    pub(crate) async fn write_pending(&self) -> Result<()> {
        if self.account.has_pending() { self.flush().await } else { Ok(()) }
    }

    /// The buffer, with pending charges staged.
    async fn ready(&self) -> Result<MutexGuard<'_, EventBuffer>> {
        let mut buffer = self.buffer.lock().await;
        self.catch_up(&mut buffer).await?;
        for (at, charge) in self.account.take_pending() {
            buffer.stage(&at, self.now(), [Body::Charged(charge)]);
        }
        Ok(buffer)
    }

    async fn settle(&self, buffer: &mut EventBuffer) -> Result<()> {
        self.unwritten.store(false, Ordering::Relaxed);
        buffer.may_lack_events = true;
        let appended = self.store.append(&self.claim, buffer.staged()).await;
        appended.inspect_err(|error| error!(id = %self.id, %error, "append failed"))?;
        buffer.may_lack_events = false;
        let events = buffer.settle();
        debug!(id = %self.id, events = events.len(), first = events.first().map(|event| event.seq), "appended");
        for event in events {
            trace!(seq = event.seq, at = %event.chat, body = ?event.body, "event");
            self.live.event(event);
        }
        Ok(())
    }

    /// Discards events that an earlier run staged and never appended.
    pub(crate) async fn begin(&self) -> Result<()> {
        self.account.begin();
        let mut buffer = self.buffer.lock().await;
        buffer.may_lack_events |= !buffer.staged().is_empty();
        self.catch_up(&mut buffer).await?;
        self.open_agent_accounts(&mut buffer);
        self.skip_idle_time(buffer.totals.time.last_ms());
        Ok(())
    }

    /// Reads the events of an append that failed or was dropped half-way.
    async fn catch_up(&self, buffer: &mut EventBuffer) -> Result<(), StoreError> {
        if buffer.may_lack_events {
            let more = self.store.read(&self.id, buffer.events.len() as u64).await?;
            buffer.take_in(more);
            buffer.may_lack_events = false;
        }
        Ok(())
    }

    pub(crate) fn depth(&self) -> usize {
        self.limits_now().depth
    }

    pub(crate) const fn live(&self) -> &Publisher {
        &self.live
    }
}
