//! Batches: many conversations at once.
//!
//! A [`Batch`] runs a conversation for every item, with limited concurrency, each in its own log. The id of the log is
//! all that links it to its item: run the same items again, after a crash or with a larger budget, and finished
//! conversations are skipped, interrupted ones are resumed, and no finished model call is repeated.
//!
//! Errors stay within one conversation: a failing model, a limit, a pending question. Only a store that cannot be
//! written ends the batch, because later results would be lost.
//!
//! # The same team on many tasks
//! ```
//! use polylogue::runs::batch::{Batch, BatchStart};
//! use polylogue::kernel::data::LogId;
//! use polylogue::kernel::limits::RunBound;
//! use polylogue::kernel::log::{AnyStore, Meta};
//! use polylogue::runs::Report;
//! use polylogue::{Assistant, Chat, models, sequential};
//! use polylogue_store::Memory;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let model = models::scripted(r#"[{"Ann": "It is done."}]"#)?;
//! let start = |task: &String| {
//!     let chat = Chat::builder("solo").participant(Assistant::new("Ann", &model)?).policy(sequential());
//!     Ok(BatchStart { id: LogId::new(task)?, meta: Meta::default(), chat: chat.build()?, task: task.clone(), bound: RunBound::default() })
//! };
//! let mut summaries = Vec::new();
//! let tasks = ["wash", "cook", "rest"].map(String::from);
//! let each = |ended: polylogue::runs::batch::BatchResult<String>| {
//!     summaries.push(format!("{}: {}", ended.item, Report::of_last_run(&ended.events).summary));
//! };
//! Batch::new(AnyStore::new(Memory::new())).concurrency(2).run(tasks, start, each).await?;
//! summaries.sort();
//! assert_eq!(summaries, ["cook: It is done.", "rest: It is done.", "wash: It is done."]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::num::NonZero;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use polylogue_core::{
    Allowance, AnyStore, BoundException, Budget, Cancellation, Chat, Error, Event, LimitOverrides, Limits,
    Log, LogId, Meta, Name, Result, RunBound, Status, StopReason, Store, StoreError, Timer,
};

/// Runs many conversations. See the [module](self).
#[derive(Debug, Clone)]
#[must_use]
pub struct Batch {
    store: AnyStore,
    concurrency: NonZero<usize>,
    limits: Limits,
    agent_limits: Vec<(Name, Allowance)>,
    timer: Option<Timer>,
    overrides: LimitOverrides,
    began_with: fn(&Meta) -> LimitOverrides,
    begun_bound: fn(&Meta, &BatchStart) -> RunBound,
    budget: Option<Budget>,
    budget_source: Option<Arc<dyn BudgetSource>>,
    /// Whether the usage of earlier runs is charged already.
    is_charged: bool,
    cancellation: Cancellation,
}

/// Budgets that pay for the conversations of a batch besides its own, such as budgets that several processes share.
pub trait BudgetSource: fmt::Debug + Send + Sync {
    /// Attaches a log to the budgets that pay for it, before its chat makes a call: a new one, or one that an earlier run has
    /// begun.
    ///
    /// # Errors
    /// When what pays cannot be read or written.
    fn attach<'a>(&'a self, log: Log, chat: &'a Chat, is_new: bool) -> BoxFuture<'a, Result<Log>>;

    /// Returns the budgets that pay for the conversations attached so far. Once one is exhausted, no other conversation begins.
    fn budgets(&self) -> Vec<Budget>;
}

/// A conversation to run.
#[derive(Debug)]
pub struct BatchStart {
    /// The id of its log. Must be the same for the same item in every run of the batch.
    pub id: LogId,
    /// The metadata of a new log.
    pub meta: Meta,
    /// The chat.
    pub chat: Chat,
    /// The task.
    pub task: String,
    /// The most that a new conversation takes. Default: no bound. See also [`Batch::begun_bounds`].
    pub bound: RunBound,
}

/// A conversation that ended, stopped or failed in this run of the batch.
#[derive(Debug)]
pub struct BatchResult<I> {
    /// The item that the run was started for.
    pub item: I,
    /// The result. A conversation that failed, is waiting or was cancelled continues when the batch runs again, and so does
    /// one that a [shared](StopReason::is_shared) budget ended; any other closed one does not.
    pub status: Result<Status>,
    /// The complete log. Empty when it could not be opened.
    pub events: Vec<Arc<Event>>,
    /// Why its [bound](BatchStart::bound) does not apply any more.
    pub bound_exception: Option<BoundException>,
}

impl Batch {
    /// Default concurrency: low enough for the rate limits of new provider accounts.
    pub const DEFAULT_CONCURRENCY: usize = 8;

    /// Creates a batch with logs in `store`.
    pub fn new(store: AnyStore) -> Self {
        let concurrency = NonZero::new(Self::DEFAULT_CONCURRENCY).unwrap_or(NonZero::<usize>::MIN);
        Self {
            store,
            concurrency,
            limits: Limits::default(),
            agent_limits: Vec::new(),
            timer: None,
            overrides: LimitOverrides::default(),
            began_with: |_| LimitOverrides::default(),
            begun_bound: |_, start| start.bound,
            budget: None,
            budget_source: None,
            is_charged: false,
            cancellation: Cancellation::default(),
        }
    }

    /// Sets the concurrency; 0 means 1. Results do not depend on it.
    pub fn concurrency(self, conversations: usize) -> Self {
        Self { concurrency: NonZero::new(conversations).unwrap_or(NonZero::<usize>::MIN), ..self }
    }

    /// Sets the limits of each conversation.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets limits of agents in each conversation, as [`Log::agent_limits`].
    pub fn agent_limits(self, limits: impl IntoIterator<Item = (Name, Allowance)>) -> Self {
        Self { agent_limits: limits.into_iter().collect(), ..self }
    }

    /// Sets the timer of limits on running time in each conversation, as [`Log::timer`].
    pub fn timer(self, timer: Timer) -> Self {
        Self { timer: Some(timer), ..self }
    }

    /// Sets overrides of [`limits`](Self::limits) for each unfinished conversation. They are logged: a later run
    /// without overrides continues with them. `began_with` returns the overrides that a conversation started with, from
    /// [`BatchStart::meta`].
    pub fn overrides(self, overrides: LimitOverrides, began_with: fn(&Meta) -> LimitOverrides) -> Self {
        Self { overrides, began_with, ..self }
    }

    /// Sets what a conversation takes at most that an earlier run began: by its metadata, and its start in this run. Default: the
    /// [bound](BatchStart::bound) of its start.
    pub fn begun_bounds(self, begun_bound: fn(&Meta, &BatchStart) -> RunBound) -> Self {
        Self { begun_bound, ..self }
    }

    /// Charges all model calls to `budget`. A conversation whose next call it cannot cover ends, and no others begin. Those
    /// that it ended continue when the batch runs again with a larger budget.
    pub fn budget(self, budget: Budget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Charges all model calls to other budgets, too. The source counts the usage of earlier runs itself.
    pub fn budget_source(self, source: Arc<dyn BudgetSource>) -> Self {
        Self { budget_source: Some(source), ..self }
    }

    /// Charges the usage of earlier runs on `items` to the budget. `id` returns the id of the log of an item, as in
    /// `start`. After this, [`run`](Self::run) makes no call beyond the budget; without it, the earlier usage of a
    /// conversation is charged when it continues, while others are running.
    ///
    /// A model call that may have been in flight when an earlier process died is charged at its upper bound, in the log
    /// of its conversation. `start` is called for such conversations only.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn charge<I>(
        self,
        items: impl IntoIterator<Item = I>,
        id: impl Fn(&I) -> Result<LogId>,
        start: impl Fn(&I) -> Result<BatchStart>,
    ) -> Result<Self> {
        if let Some(budget) = &self.budget {
            for item in items {
                let id = id(&item)?;
                match self.store.meta(&id).await {
                    Err(StoreError::NotFound { .. }) => continue,
                    found => found?,
                };
                budget.count_events(&self.store.read_intact(&id).await?.events);
                match self.charge_lost_calls(&id, budget, || start(&item)).await {
                    // Errors of one conversation show when it continues.
                    Err(Error::Store(error)) if is_of_all(&error) => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(Self { is_charged: true, ..self })
    }

    /// Charges the calls of a conversation that may have been in flight when an earlier process died.
    async fn charge_lost_calls(
        &self,
        id: &LogId,
        budget: &Budget,
        start: impl FnOnce() -> Result<BatchStart>,
    ) -> Result<()> {
        let log = Log::open(self.store.clone(), id.clone()).await?;
        if log.may_have_lost_calls().await? {
            let meta = self.store.meta(id).await?;
            let mut log = self.limited(log, &meta).await?.budget(budget.clone());
            let charged = start()?.chat.charge_lost_calls(&mut log).await;
            log.release().await?;
            charged?;
        }
        Ok(())
    }

    /// Cancels all conversations, and starts no others.
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Runs a conversation for each of `items` as made by `start`, and calls `each` with the results, in the order in
    /// which they finish.
    ///
    /// Items are consumed one by one, and finished conversations are dropped: memory is bounded by the concurrency.
    ///
    /// # Errors
    /// When the store cannot be read or written. Running conversations continue first, as far as possible.
    pub async fn run<I>(
        &self,
        items: impl IntoIterator<Item = I>,
        start: impl Fn(&I) -> Result<BatchStart>,
        mut each: impl FnMut(BatchResult<I>),
    ) -> Result<()> {
        let mut items = items.into_iter();
        let mut running = FuturesUnordered::new();
        let mut broken = None;
        loop {
            while running.len() < self.concurrency.get() && broken.is_none() && !self.is_over() {
                let Some(item) = items.next() else { break };
                running.push(self.run_item(item, &start));
            }
            let Some(ended) = running.next().await else { break };
            if let Err(Error::Store(error)) = &ended.status
                && is_of_all(error)
            {
                broken = broken.or_else(|| Some(error.clone()));
            }
            each(ended);
        }
        broken.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Whether no other conversation begins.
    fn is_over(&self) -> bool {
        self.cancellation.is_requested() || self.budgets().iter().any(Budget::is_exhausted)
    }

    /// All budgets that pay.
    fn budgets(&self) -> Vec<Budget> {
        let shared = self.budget_source.iter().flat_map(|source| source.budgets());
        self.budget.iter().cloned().chain(shared).collect()
    }

    async fn run_item<I>(&self, item: I, start: impl Fn(&I) -> Result<BatchStart>) -> BatchResult<I> {
        let ran = match start(&item) {
            Ok(start) => self.converse(start).await,
            Err(error) => Err(error),
        };
        let (status, events, bound) =
            ran.unwrap_or_else(|error| (Err(error), Vec::new(), RunBound::default()));
        let bound_exception = bound.exception_after(events.iter().map(|event| &**event));
        BatchResult { item, status, events, bound_exception }
    }

    /// Runs or continues a conversation. Returns its bound, too.
    async fn converse(&self, start: BatchStart) -> Result<(Result<Status>, Vec<Arc<Event>>, RunBound)> {
        let (mut log, begun) = self.log(&start).await?;
        if let Some(source) = &self.budget_source {
            log = source.attach(log, &start.chat, begun.is_none()).await?;
        }
        let bound = begun.map_or(start.bound, |begun| (self.begun_bound)(&begun, &start));
        log = log.bound(bound).cancelled_by(self.cancellation.clone());
        if let Some(budget) = &self.budget {
            log = log.budget(budget.clone());
        }
        let transcript = log.transcript().await?;
        let status = match transcript.closed() {
            Some((reason, _)) if self.is_interrupted(reason) => {
                log.reopen().await?;
                start.chat.resume(&mut log).await.map(|result| result.status)
            }
            Some((reason, summary)) => {
                // No call fits that did not fit before.
                let budgets = self.budgets();
                let too_small = budgets.iter().filter(|budget| budget.still_refuses(reason));
                too_small.for_each(|budget| budget.mark_refused(reason));
                Ok(Status::Closed { reason: reason.clone(), summary: summary.clone() })
            }
            None if !log.has_begun().await? => {
                start.chat.run_in(&mut log, &start.task).await.map(|result| result.status)
            }
            None => start.chat.resume(&mut log).await.map(|result| result.status),
        };
        let events = log.events().await;
        log.release().await?;
        Ok((status, events, bound))
    }

    /// Whether a conversation that ended for `reason` continues: a budget ended it that is larger now, or gone.
    fn is_interrupted(&self, reason: &StopReason) -> bool {
        reason.is_shared() && !self.budgets().iter().any(|budget| budget.still_refuses(reason))
    }

    /// The log of a conversation: that of an earlier run, with its metadata, or a new one.
    async fn log(&self, start: &BatchStart) -> Result<(Log, Option<Meta>)> {
        let meta = match self.store.meta(&start.id).await {
            Err(StoreError::NotFound { .. }) => {
                let log = Log::create_with(self.store.clone(), start.id.clone(), &start.meta).await?;
                return Ok((self.within(log, self.overrides), None));
            }
            meta => meta?,
        };
        let log = Log::open(self.store.clone(), start.id.clone()).await?;
        let log = self.limited(log, &meta).await?;
        if let Some(budget) = self.budget.as_ref().filter(|_| !self.is_charged) {
            budget.count_events(log.events().await.iter().map(|event| &**event));
        }
        Ok((log, Some(meta)))
    }

    /// The log of an earlier run with the limits that apply; changed ones are logged.
    async fn limited(&self, mut log: Log, meta: &Meta) -> Result<Log> {
        let kept = LimitOverrides::last_of(&log.events().await).unwrap_or_else(|| (self.began_with)(meta));
        let limits = self.overrides.or(kept);
        if limits != kept && log.transcript().await?.closed().is_none() {
            log.change_limits(limits, &kept.apply_to(self.limits)).await?;
        }
        Ok(self.within(log, limits))
    }

    fn within(&self, log: Log, limits: LimitOverrides) -> Log {
        let log = log.limits(limits.apply_to(self.limits)).agent_limits(self.agent_limits.iter().cloned());
        match &self.timer {
            Some(timer) => log.timer(timer.clone()),
            None => log,
        }
    }
}

/// Whether an error of the store affects all conversations.
const fn is_of_all(error: &StoreError) -> bool {
    use StoreError::{Full, Io, ReadOnly, Unreachable, Unsuitable};
    matches!(error, Full { .. } | ReadOnly { .. } | Io { .. } | Unreachable { .. } | Unsuitable { .. })
}
