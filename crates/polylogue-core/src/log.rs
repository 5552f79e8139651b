//! A conversation: the events so far, and the right to append more.

mod clock;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Waker};

use futures_util::future::{Either, select};
use std::pin::pin;
use tokio::sync::{Mutex, MutexGuard};

pub use self::clock::Clock;
use self::clock::{Stopwatch, system_time};
use crate::budget::Account;
use crate::cancellation::{CancelMode, Cancellation};
use crate::event_buffer::EventBuffer;
use crate::transcript::OpenTurn;
use crate::updates::Publisher;
use crate::{
    AnyStore, Body, Budget, ChargeReason, Claim, Error, Event, Limits, LogId, Message, Meta, Name, Path,
    Question, Resources, Result, StopReason, Store, StoreError, Subscription, Timestamp, TotalUsage,
    Transcript,
};

/// A conversation: a log of events in a store, claimed for writing.
///
/// The log is the program counter. Everything that is not a pure function of it - what a model replied, what a
/// person answered, what a tool returned - is in it as an event, so that a run can be stopped anywhere and go on in
/// another process.
pub struct Log {
    id: LogId,
    store: AnyStore,
    claim: Claim,
    pub(crate) limits: Limits,
    pub(crate) budget: Option<Budget>,
    pub(crate) account: Account,
    /// How many of its events are from before it was opened.
    pub(crate) inherited: u64,
    clock: Clock,
    running: Stopwatch,
    live: Publisher,
    halt: Cancellation,
    held: Resources,
    pub(crate) kept: Mutex<EventBuffer>,
    /// Held by the call of an agent that is going on: one at a time.
    pub(crate) calls: Mutex<()>,
    /// Whether the right to append was returned.
    released: bool,
}

impl Drop for Log {
    /// Returns the right to append. Stores begin to do so when they are asked for the first time, so nobody needs to wait.
    fn drop(&mut self) {
        if !self.released {
            let release = pin!(self.store.release(self.claim.clone()));
            let _ = release.poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

/// The right of a [`Log`] to append, to be renewed from beside a run: appending renews it too, but a turn may take longer than
/// [`LEASE`](crate::LEASE). A run that nobody renews goes on; another process may take it over, when it is asked to.
#[derive(Debug, Clone)]
pub struct Lease {
    store: AnyStore,
    claim: Claim,
}

impl Lease {
    /// Renews it.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when another process has taken the log over, [`StoreError::Replaced`] when the log is no longer
    /// there: what is said from then on is kept nowhere.
    pub async fn renew(&self) -> Result<(), StoreError> {
        self.store.renew(&self.claim).await
    }
}

impl Log {
    /// Begins a conversation in `store`.
    ///
    /// # Errors
    /// When there is one of this `id`, or the store cannot be written.
    pub async fn create(store: AnyStore, id: LogId, meta: &Meta) -> Result<Self> {
        let claim = store.create(&id, meta).await?;
        Ok(Self::new(store, id, claim, EventBuffer::default()))
    }

    /// Goes on with a conversation in `store`.
    ///
    /// # Errors
    /// When there is none of this `id`, when another process runs it, or when it is damaged.
    pub async fn open(store: AnyStore, id: LogId) -> Result<Self> {
        let claim = store.claim(&id).await?;
        Self::of_claim(store, id, claim).await
    }

    /// Goes on with a conversation in `store`, also with one of a process that is stopped or hangs, once its lease has run out.
    /// That process is fenced: nothing that it still appends is kept.
    ///
    /// # Errors
    /// As [`open`](Self::open); while the lease lasts, that the other process runs it.
    pub async fn take_over(store: AnyStore, id: LogId) -> Result<Self> {
        let claim = store.take_over(&id).await?;
        Self::of_claim(store, id, claim).await
    }

    async fn of_claim(store: AnyStore, id: LogId, claim: Claim) -> Result<Self> {
        match store.read(&id, 0).await {
            Ok(events) => {
                let mut kept = EventBuffer::default();
                kept.take_in(events);
                Ok(Self::new(store, id, claim, kept))
            }
            Err(error) => {
                // What is wrong with the log is what counts.
                let _ = store.release(claim).await;
                Err(error.into())
            }
        }
    }

    /// What keeps the right to append while a turn takes long.
    #[must_use]
    pub fn lease(&self) -> Lease {
        Lease { store: self.store.clone(), claim: self.claim.clone() }
    }

    fn new(store: AnyStore, id: LogId, claim: Claim, kept: EventBuffer) -> Self {
        let (limits, live, halt) = (Limits::default(), Publisher::new(), Cancellation::default());
        let ran_ms = kept.events.last().map_or(0, |event| event.ran_ms);
        Self {
            id,
            store,
            claim,
            limits,
            budget: None,
            account: Account::default(),
            inherited: kept.next_seq(),
            clock: Arc::new(system_time),
            running: Stopwatch::opened(ran_ms),
            live,
            halt,
            held: Resources::default(),
            kept: Mutex::new(kept),
            calls: Mutex::new(()),
            released: false,
        }
    }

    /// The same log under other limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same log, whose calls are paid from `budget`, which others may share.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// The same log with another source of the time of day. The running time does not depend on it.
    #[must_use]
    pub fn time_of_day(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The same log with another clock, which tells the running time, too: tests have their own.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self.running = self.running.by_another_clock();
        self
    }

    /// The same log, stopped by `halt`, which may be that of many.
    #[must_use]
    pub fn cancelled_by(mut self, halt: Cancellation) -> Self {
        self.halt = halt;
        self
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> &LogId {
        &self.id
    }

    /// What tools hold for this conversation as long as it is open.
    #[must_use]
    pub const fn resources(&self) -> &Resources {
        &self.held
    }

    /// The handle that stops runs of this log.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.halt.clone()
    }

    /// Watches what happens from now on. Watch before you read, so that nothing falls between.
    pub async fn subscribe(&self) -> Subscription {
        self.live.subscribe(self.kept.lock().await.next_seq())
    }

    /// The events so far.
    pub async fn events(&self) -> Vec<Arc<Event>> {
        self.kept.lock().await.events.clone()
    }

    /// Looks at the events so far without taking them along.
    pub(crate) async fn look<T>(&self, at: impl FnOnce(&[Arc<Event>]) -> T) -> T {
        at(&self.kept.lock().await.events)
    }

    /// The sources of the words from outside that `who` has read in the chat `at` before the event `before`.
    pub(crate) async fn read_by(&self, at: &Path, who: &Name, before: Option<u64>) -> Vec<Arc<str>> {
        self.kept.lock().await.tally.origins.read_by(at, who, before)
    }

    /// What was spent so far.
    pub async fn usage(&self) -> TotalUsage {
        self.kept.lock().await.tally.spent
    }

    /// How many turns agents had in all chats, as [`Limits::turns`] counts them.
    pub async fn turns(&self) -> u64 {
        self.kept.lock().await.tally.turns
    }

    /// How many model calls each agent finished.
    pub async fn calls(&self) -> BTreeMap<Name, u64> {
        self.kept.lock().await.tally.calls.clone()
    }

    /// The outermost chat.
    ///
    /// # Errors
    /// When the log is no valid conversation.
    pub async fn transcript(&self) -> Result<Transcript> {
        self.transcript_of(&Path::root()).await
    }

    /// The chat `at`.
    ///
    /// # Errors
    /// When the log is no valid conversation.
    pub async fn transcript_of(&self, at: &Path) -> Result<Transcript> {
        let kept = self.kept.lock().await;
        Transcript::of(at, &kept.events).map_err(|flaw| self.invalid(&flaw))
    }

    pub(crate) fn invalid(&self, flaw: &str) -> Error {
        Error::Bug(format!("the log of `{}` is no valid conversation: {flaw}", self.id))
    }

    /// The questions that nobody has answered yet, with the chats they were asked in.
    ///
    /// # Errors
    /// When the log is no valid conversation.
    pub async fn questions(&self) -> Result<Vec<(Path, Question)>> {
        let events = self.events().await;
        let mut open: Vec<(Path, Question)> = Vec::new();
        for event in &events {
            match &event.body {
                Body::InputRequired(question) => open.push((event.at.clone(), question.clone())),
                Body::InputProvided { to, .. } => open.retain(|(at, q)| *at != event.at || q.who != *to),
                // A call is undone in all of its rooms, with all that it asks.
                Body::RolledBack { .. } => open.retain(|(at, _)| *at != event.at),
                _ => {}
            }
        }
        Ok(open)
    }

    /// Answers the question that `who` asked in the chat `at`. The answer is in the log when this returns; run the chat
    /// again to go on.
    ///
    /// # Errors
    /// When there is no such question, or the store cannot be written.
    pub async fn answer(&mut self, at: &Path, who: &Name, text: impl Into<Arc<str>>) -> Result<()> {
        if !self.questions().await?.iter().any(|(path, question)| path == at && question.who == *who) {
            return Err(Error::Config(format!("`{who}` asks nothing")));
        }
        self.append(at, [Body::InputProvided { to: who.clone(), text: text.into() }]).await?;
        Ok(())
    }

    /// Opens a closed conversation again, for instance under a higher limit. One that is not closed stays as it is.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn reopen(&mut self) -> Result<()> {
        if self.transcript().await?.closed().is_some() {
            self.append(&Path::root(), [Body::Reopened { message: None }]).await?;
        }
        Ok(())
    }

    /// Opens a closed conversation again to go on about something more.
    pub(crate) async fn go_on(&self, message: Message) -> Result<()> {
        if self.transcript().await?.closed().is_none() {
            return Err(Error::Config(format!("the conversation `{}` is not over", self.id)));
        }
        self.append(&Path::root(), [Body::Reopened { message: Some(message) }]).await?;
        Ok(())
    }

    /// Ends a conversation for good from outside: the outermost chat is closed, because of `by`. One that is closed stays
    /// as it is.
    ///
    /// # Errors
    /// When it has not begun, or the store cannot be written.
    pub async fn close(&mut self, by: &str) -> Result<()> {
        let transcript = self.transcript().await?;
        if !transcript.is_open() {
            return Err(Error::Config(format!("the conversation `{}` has not begun", self.id)));
        }
        if transcript.closed().is_none() {
            let reason = StopReason::Stopped { by: by.to_owned() };
            let summary = transcript.summary();
            self.append(&Path::root(), [Body::Closed { reason, summary }]).await?;
        }
        Ok(())
    }

    /// Gives the right to append back. Dropping a log does so too, but cannot tell of errors.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release(mut self) -> Result<()> {
        self.released = true;
        Ok(self.store.release(self.claim.clone()).await?)
    }

    /// The time of an event, and for how long the conversation has run.
    fn now(&self) -> (Timestamp, u64) {
        let time = (self.clock)();
        (time, self.running.at(time))
    }

    /// Appends, then shows.
    pub(crate) async fn append(
        &self,
        at: &Path,
        bodies: impl IntoIterator<Item = Body>,
    ) -> Result<Vec<Arc<Event>>> {
        let mut kept = self.ready().await?;
        let batch = kept.stage(at, self.now(), bodies);
        self.settle(&mut kept).await?;
        Ok(batch)
    }

    /// Appends events of several chats, in one write.
    pub(crate) async fn append_each(&self, bodies: impl IntoIterator<Item = (Path, Body)>) -> Result<()> {
        let mut kept = self.ready().await?;
        for (at, body) in bodies {
            kept.stage(&at, self.now(), [body]);
        }
        if kept.staged().is_empty() { Ok(()) } else { self.settle(&mut kept).await }
    }

    /// Makes events that are appended, and shown, together with the next ones: for what can be computed again from the
    /// log, so that a step costs one write less.
    pub(crate) async fn stage(
        &self,
        at: &Path,
        bodies: impl IntoIterator<Item = Body>,
    ) -> Result<Vec<Arc<Event>>> {
        let mut kept = self.kept.lock().await;
        self.catch_up(&mut kept).await?;
        Ok(kept.stage(at, self.now(), bodies))
    }

    /// Appends what is staged.
    pub(crate) async fn flush(&self) -> Result<()> {
        let mut kept = self.ready().await?;
        if kept.staged().is_empty() { Ok(()) } else { self.settle(&mut kept).await }
    }

    /// Appends the charges that are not written yet: what was sent counts before anything else is sent.
    pub(crate) async fn write_pending(&self) -> Result<()> {
        if self.account.has_pending() { self.flush().await } else { Ok(()) }
    }

    /// What is kept, with the charges staged that are not written yet.
    async fn ready(&self) -> Result<MutexGuard<'_, EventBuffer>> {
        let mut kept = self.kept.lock().await;
        self.catch_up(&mut kept).await?;
        for (at, charge) in self.account.take_pending() {
            kept.stage(&at, self.now(), [charge]);
        }
        Ok(kept)
    }

    async fn settle(&self, kept: &mut EventBuffer) -> Result<()> {
        kept.doubtful = true;
        self.store.append(&self.claim, kept.staged()).await?;
        kept.doubtful = false;
        kept.settle().iter().for_each(|event| self.live.event(event));
        Ok(())
    }

    /// Forgets what an earlier run staged and never appended.
    pub(crate) async fn begin(&self) -> Result<()> {
        self.account.begin();
        let mut kept = self.kept.lock().await;
        kept.doubtful |= !kept.staged().is_empty();
        Ok(self.catch_up(&mut kept).await?)
    }

    /// Reads what an append left behind that failed or was dropped half-way.
    async fn catch_up(&self, kept: &mut EventBuffer) -> Result<(), StoreError> {
        if kept.doubtful {
            let more = self.store.read(&self.id, kept.events.len() as u64).await?;
            kept.take_in(more);
            kept.doubtful = false;
        }
        Ok(())
    }

    /// Whether upper bounds of calls count.
    pub(crate) const fn is_limited(&self) -> bool {
        self.limits.need_bounds() || self.budget.is_some()
    }

    /// Ends a run in which a limit refused a call, whatever its agent made of it.
    pub(crate) fn check_refused(&self) -> Result<()> {
        self.account.refused().map_or(Ok(()), |reason| Err(Error::Limit(reason)))
    }

    /// The limit that the run passed, if it did.
    pub(crate) async fn passed(&self) -> Option<StopReason> {
        self.limits.passed(&self.kept.lock().await.tally.spent, self.account.before())
    }

    /// Whether a call that follows the event `last` in its turn may have been in flight when an earlier process died, and
    /// whether it has to be told apart from then on: `settled` if that event says that none was in flight.
    pub(crate) async fn doubt(&self, last: u64, settled: bool) -> Option<ChargeReason> {
        let closed = self.kept.lock().await.tally.closed.is_some_and(|closed| closed > last);
        match last >= self.inherited {
            _ if settled || closed => Some(ChargeReason::Repeated),
            true => None,
            false => Some(ChargeReason::Crashed),
        }
    }

    /// Whether the process that wrote this log last may have died while a model call was in flight. Such a call is charged when
    /// the conversation is resumed, before anything is sent.
    ///
    /// # Errors
    /// When the log is no valid conversation.
    pub async fn may_have_lost_calls(&self) -> Result<bool> {
        let transcript = self.transcript().await?;
        let is_lost = |turn: &OpenTurn| turn.asked.is_none() && !turn.settled && turn.last < self.inherited;
        Ok(transcript.closed().is_none() && transcript.open_turns().iter().any(is_lost))
    }

    /// Whether another turn is within the limits.
    pub(crate) async fn admit_turn(&self) -> Result<()> {
        match self.limits.turns {
            Some(limit) if self.turns().await >= limit => Err(Error::Limit(StopReason::Turns { limit })),
            _ => Ok(()),
        }
    }

    pub(crate) const fn depth(&self) -> usize {
        self.limits.depth
    }

    pub(crate) const fn live(&self) -> &Publisher {
        &self.live
    }

    /// Waits for `work`, or for the order to stop at once.
    pub(crate) async fn unless_halted<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        match select(pin!(work), pin!(self.halt.wait(CancelMode::Now))).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right(_) => Err(Error::Cancelled),
        }
    }

    /// Whether work may go on.
    pub(crate) fn check_halt_now(&self) -> Result<()> {
        if self.halt.order() == CancelMode::Now { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Whether another step may begin.
    pub(crate) fn check_halt(&self) -> Result<()> {
        if self.halt.order() >= CancelMode::AfterStep { Err(Error::Cancelled) } else { Ok(()) }
    }
}
