//! Conversations by the thousand.
//!
//! A [`Batch`] runs a conversation for every item it is given, so many at a time, each in a log of its own. The id of a
//! log is all that ties it to its item: run the same items again, after a crash or with more money, and what is over is not
//! run again, what was cut off goes on from its log, and no finished model call is made twice.
//!
//! What one conversation meets is its own: a model that fails, a limit, a person who is asked. Only a store that cannot be
//! written ends the whole batch, because nothing that happened afterwards would be kept.
//!
//! # The same team on many tasks
//! ```
//! use polylogue::batch::{Batch, Start};
//! use polylogue::{AnyModel, AnyStore, Assistant, Chat, LogId, Meta, Report, once_each};
//! use polylogue_models::Script;
//! use polylogue_store::Memory;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let script: Script = serde_json::from_str(r#"[{"Ann": "It is done."}]"#)?;
//! let model = AnyModel::new(script.model("demo"));
//! let start = |task: &String| {
//!     let chat = Chat::named("solo").with(Assistant::new("Ann", model.clone())?).policy(once_each());
//!     Ok(Start { id: LogId::new(task)?, meta: Meta::default(), chat: chat.build()?, task: task.clone() })
//! };
//! let mut summaries = Vec::new();
//! let tasks = ["wash", "cook", "rest"].map(String::from);
//! let each = |ended: polylogue::batch::Ended<String>| {
//!     summaries.push(format!("{}: {}", ended.item, Report::of(&ended.events).summary));
//! };
//! Batch::new(AnyStore::new(Memory::new())).at_once(2).run(tasks, start, each).await?;
//! summaries.sort();
//! assert_eq!(summaries, ["cook: It is done.", "rest: It is done.", "wash: It is done."]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::num::NonZero;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use polylogue_core::{
    AnyStore, Budget, Cancellation, Chat, Error, Event, LimitOverrides, Limits, Log, LogId, Meta, Result,
    Status, Store, StoreError,
};

use crate::Report;

/// Runs many conversations. See the [module](self).
#[derive(Debug, Clone)]
pub struct Batch {
    store: AnyStore,
    at_once: NonZero<usize>,
    limits: Limits,
    overrides: LimitOverrides,
    began_with: fn(&Meta) -> LimitOverrides,
    budget: Option<Budget>,
    /// Whether what earlier runs have spent is counted already.
    is_charged: bool,
    halt: Cancellation,
}

/// A conversation that is to be held.
#[derive(Debug)]
pub struct BatchStart {
    /// Under what it is kept. The same item has the same id in every run of the batch.
    pub id: LogId,
    /// What is kept with it when it begins.
    pub meta: Meta,
    /// Who talks, and how.
    pub chat: Chat,
    /// About what.
    pub task: String,
}

/// A conversation that this run of the batch is done with.
#[derive(Debug)]
pub struct BatchResult<I> {
    /// What it was about.
    pub item: I,
    /// How it ended. A conversation that failed, waits for somebody or was halted goes on when the batch is run again; one
    /// that is closed, for whatever reason, does not.
    pub status: Result<Status>,
    /// Its log, whole. Empty when it could not be opened.
    pub events: Vec<Arc<Event>>,
}

impl Batch {
    /// How many conversations there are at a time, unless it is said: few enough for the limits that providers set on those
    /// who have just come.
    pub const AT_ONCE: usize = 8;

    /// Conversations in `store`.
    #[must_use]
    pub fn new(store: AnyStore) -> Self {
        let at_once = NonZero::new(Self::AT_ONCE).unwrap_or(NonZero::<usize>::MIN);
        Self {
            store,
            at_once,
            limits: Limits::default(),
            overrides: LimitOverrides::default(),
            began_with: |_| LimitOverrides::default(),
            budget: None,
            is_charged: false,
            halt: Cancellation::default(),
        }
    }

    /// Sets how many are held at the same time; 0 is 1. What comes out does not depend on it.
    #[must_use]
    pub fn concurrency(self, conversations: usize) -> Self {
        Self { at_once: NonZero::new(conversations).unwrap_or(NonZero::<usize>::MIN), ..self }
    }

    /// Sets what each conversation may consume.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets limits over those of [`limits`](Self::limits), for each conversation that is not over. They are kept with it: a later run
    /// that sets none of its own continues under them. `began_with` returns those that a conversation began with, which
    /// [`BatchStart::meta`] holds.
    #[must_use]
    pub fn overrides(self, overrides: LimitOverrides, began_with: fn(&Meta) -> LimitOverrides) -> Self {
        Self { overrides, began_with, ..self }
    }

    /// Pays all model calls from `budget`. When it cannot cover the next one, the batch ends: conversations that are not over
    /// go on when it is run again with more.
    #[must_use]
    pub fn budget(self, budget: Budget) -> Self {
        budget.cancels(self.halt.clone());
        Self { budget: Some(budget), ..self }
    }

    /// Counts in the budget what the conversations about `items` have spent in earlier runs, as far as there are such. `id` names
    /// the conversation about an item, as `start` does. Done before [`run`](Self::run), no call is made with money that is gone;
    /// without it, what a conversation has spent is counted when it continues, while others are running.
    ///
    /// A model call that may have been in flight when an earlier process died is charged at its upper bound, in the log of its
    /// conversation. `start` is called for such conversations only.
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
                let events = self.store.read_intact(&id).await?.events;
                let events: Vec<Arc<Event>> = events.into_iter().map(Arc::new).collect();
                budget.spend(Report::of_all(&events).spent.counted_cost());
                match self.charge_lost_calls(&id, budget, || start(&item)).await {
                    // What is wrong with one conversation shows when it continues.
                    Err(Error::Store(error)) if is_of_all(&error) => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(Self { is_charged: true, ..self })
    }

    /// Resumes a conversation up to its next model calls, so that those in flight at the death of an earlier process are charged.
    async fn charge_lost_calls(
        &self,
        id: &LogId,
        budget: &Budget,
        start: impl FnOnce() -> Result<BatchStart>,
    ) -> Result<()> {
        let log = Log::open(self.store.clone(), id.clone()).await?;
        if log.may_have_lost_calls().await? {
            let halt = Cancellation::default();
            halt.now();
            let meta = self.store.meta(id).await?;
            let mut log = self.limited(log, &meta).await?.budget(budget.clone()).cancelled_by(halt);
            let charged = start()?.chat.resume(&mut log).await;
            log.release().await?;
            charged?;
        }
        Ok(())
    }

    /// Stops all conversations, and begins no other.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.halt.clone()
    }

    /// Holds a conversation for every one of `items` as `start` says, and tells `each` of those that ended, in the order in
    /// which they ended.
    ///
    /// Items are taken one by one as there is room, and what is over is let go: memory is that of the conversations that are
    /// held at the same time.
    ///
    /// # Errors
    /// When the store cannot be read or written. Those that are being held are let end first, as far as they get.
    pub async fn run<I>(
        &self,
        items: impl IntoIterator<Item = I>,
        start: impl Fn(&I) -> Result<BatchStart>,
        mut each: impl FnMut(BatchResult<I>),
    ) -> Result<()> {
        let mut items = items.into_iter();
        let mut held = FuturesUnordered::new();
        let mut broken = None;
        loop {
            while held.len() < self.at_once.get() && broken.is_none() && !self.halt.is_requested() {
                let Some(item) = items.next() else { break };
                held.push(self.hold(item, &start));
            }
            let Some(ended) = held.next().await else { break };
            if let Err(Error::Store(error)) = &ended.status
                && is_of_all(error)
            {
                broken = broken.or_else(|| Some(error.clone()));
            }
            each(ended);
        }
        broken.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn hold<I>(&self, item: I, start: impl Fn(&I) -> Result<BatchStart>) -> BatchResult<I> {
        let (status, events) = match start(&item) {
            Ok(start) => self.converse(start).await.unwrap_or_else(|error| (Err(error), Vec::new())),
            Err(error) => (Err(error), Vec::new()),
        };
        BatchResult { item, status, events }
    }

    async fn converse(&self, start: BatchStart) -> Result<(Result<Status>, Vec<Arc<Event>>)> {
        let mut log = self.log(&start).await?.cancelled_by(self.halt.clone());
        if let Some(budget) = &self.budget {
            log = log.budget(budget.clone());
        }
        let status = match log.transcript().await?.closed() {
            Some((reason, summary)) => {
                Ok(Status::Closed { reason: reason.clone(), summary: summary.clone() })
            }
            None if !log.has_begun().await? => start.chat.run(&mut log, &start.task).await,
            None => start.chat.resume(&mut log).await,
        };
        let events = log.events().await;
        log.release().await?;
        Ok((status, events))
    }

    /// The log of a conversation: that of an earlier run, or a new one.
    async fn log(&self, start: &BatchStart) -> Result<Log> {
        let meta = match self.store.meta(&start.id).await {
            Err(StoreError::NotFound { .. }) => {
                let log = Log::create(self.store.clone(), start.id.clone(), &start.meta).await?;
                return Ok(log.limits(self.overrides.over(self.limits)));
            }
            meta => meta?,
        };
        let log = Log::open(self.store.clone(), start.id.clone()).await?;
        let log = self.limited(log, &meta).await?;
        if let Some(budget) = self.budget.as_ref().filter(|_| !self.is_charged) {
            budget.spend(log.usage().await.counted_cost());
        }
        Ok(log)
    }

    /// The log of an earlier run under the limits that hold for it; those that change are kept.
    async fn limited(&self, mut log: Log, meta: &Meta) -> Result<Log> {
        let kept = LimitOverrides::last_of(&log.events().await).unwrap_or_else(|| (self.began_with)(meta));
        let limits = self.overrides.or(kept);
        if limits != kept && log.transcript().await?.closed().is_none() {
            log.change_limits(limits).await?;
        }
        Ok(log.limits(limits.over(self.limits)))
    }
}

/// Whether an error of the store is none of the one conversation.
const fn is_of_all(error: &StoreError) -> bool {
    matches!(error, StoreError::Full { .. } | StoreError::ReadOnly { .. } | StoreError::Io { .. })
}
