//! The conversations of a store: beginning, finding, opening and changing them.

mod opening;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use polylogue_core::{
    Allowance, AnyQueue, AnyStore, Budget, Cancellation, Due, Features, LimitOverrides, ListQuery, Listing,
    Log, LogId, Name, Page, Path, Progress, Queue as _, Responder, RunBound, StopReason, Store as _,
    StoreError, Subscription, Summary, Timer,
};
use tracing::warn;

pub use self::opening::ClaimedConversation;
use crate::budgets::{Paying, SharedBudgets};
use crate::conversation::{Conversation, Opened, Shared};
use crate::fork::{Fork, ForkPoint, NewFork};
use crate::new_log::{NewLog, with_request};
use crate::stored::{StoredDocument, StoredTeam, fresh_id};
use crate::{Error, Prepared, Result, StoreLocation, TeamRun};

/// The conversations of one store, and those of them that this process has open.
///
/// Cloning shares it: a server gives one to each of its requests.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

/// `log`, whose calls in flight end with the time of a limit, and are paid by `budget` if there is one.
fn timed(log: Log, budgets: impl Iterator<Item = Budget>) -> Log {
    let log = log.timer(Timer::new(tokio::time::sleep));
    budgets.fold(log, Log::budget)
}

#[derive(Clone)]
struct Inner {
    place: StoreLocation,
    store: AnyStore,
    /// The budget that all conversations share.
    budget: Option<Budget>,
    /// The budgets that they share with other processes.
    shared: SharedBudgets,
    /// Whether workers continue what begins here if this process dies.
    has_successors: bool,
    /// The conversations that this process has open, through this runtime or one that was derived from the same.
    open: Arc<Mutex<HashMap<LogId, Weak<Shared>>>>,
}

/// The options with which a stored conversation is opened.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Takes the conversation over from a process that is stopped or hangs, once its lease has expired.
    pub take_over: bool,
    /// The amounts that it may use beyond what it has used so far. A limit without a value stays as it was.
    pub more: LimitOverrides,
    /// Whether it continues with another version of its team, of which all [changes](Conversation::change_team) are harmless: its bound still
    /// applies.
    pub is_harmless_version: bool,
    /// Budgets that pay for its calls, next to its own limits and the budget of the runtime.
    pub budgets: Vec<Budget>,
    /// The shared budgets of a day that pay from now on, with their limits: their names are [`token_budget`](crate::database::token_budget)s. They
    /// are made if they do not exist, and those that paid before pay no longer. Default: those that paid before.
    pub daily: Option<Vec<(String, Allowance)>>,
    /// The handle that cancels its runs. Default: a handle of its own.
    pub stop: Option<Cancellation>,
}

impl Runtime {
    /// Opens the store at `place`, and creates it if it does not exist.
    ///
    /// # Errors
    /// As [`StoreLocation::open`].
    pub fn open_at(place: StoreLocation) -> Result<Self> {
        let store = place.open()?;
        Ok(Self::with_store(place, store))
    }

    /// Opens another store, as [`open_at`](Self::open_at): `place` is for work directories and memory. The caller renews the
    /// leases of claims.
    pub fn with_store(place: StoreLocation, store: AnyStore) -> Self {
        Self(Arc::new(Inner {
            place,
            store,
            budget: None,
            shared: SharedBudgets::default(),
            has_successors: false,
            open: Arc::default(),
        }))
    }

    /// Another runtime of the same conversations, which differs in what `change` sets.
    fn with(&self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Inner::clone(&self.0);
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// Returns the same runtime, whose conversations share `budget`, next to those that they have besides: for a runtime that
    /// has none open.
    #[must_use]
    pub fn with_budget(self, budget: Option<Budget>) -> Self {
        self.with(|inner| inner.budget = budget)
    }

    /// The limit that is reached of what all conversations share.
    pub(crate) fn budget_reached(&self) -> Option<StopReason> {
        self.0.budget.as_ref().and_then(Budget::reached)
    }

    /// Returns the same runtime, whose conversations are paid by budgets that they share with other processes, next to all others: for a runtime
    /// that has none open.
    #[must_use]
    pub(crate) fn with_shared(self, shared: SharedBudgets) -> Self {
        self.with(|inner| inner.shared = shared)
    }

    /// Returns the same runtime, for a process that does not stay: what it begins is continued by workers if it dies, if its
    /// store is one that processes share, and its files are not here. [`Conversation::continue_if_lost`] does so for what it
    /// opens.
    #[must_use]
    pub fn with_successors(self) -> Self {
        let has_successors = self.place().is_shared() && !self.place().has_files_in_folder();
        self.with(|inner| inner.has_successors = has_successors)
    }

    /// Returns whether workers continue what this process runs if it dies.
    pub fn has_successors(&self) -> bool {
        self.0.has_successors
    }

    /// The budgets that they share with other processes.
    pub(crate) fn shared(&self) -> &SharedBudgets {
        &self.0.shared
    }

    /// Returns a runtime of the same conversations for a worker, in `store`, a wrapper of the one that it has. Calls wait for shared limits for up to
    /// `patience`.
    pub(crate) fn for_worker(&self, store: AnyStore, patience: Duration) -> Self {
        let place = self.place().clone().with_patience(patience);
        self.with(|inner| {
            (inner.place, inner.store) = (place, store);
            inner.has_successors = false;
        })
    }

    /// What pays for a conversation that has also budgets of its `own`. Calls that an earlier process has lost were not paid by the budget of
    /// this one.
    fn budgets<'b>(&'b self, own: &'b [Budget]) -> impl Iterator<Item = Budget> + 'b {
        self.0.budget.iter().map(Budget::without_lost_calls).chain(own.iter().cloned())
    }

    /// Checks that the store can be used: a database is connected to on first use only. [Warnings](StoreLocation::warnings) are logged.
    ///
    /// # Errors
    /// When it cannot be used.
    pub async fn check(&self) -> Result<()> {
        self.list(&ListQuery { limit: Some(1), ..ListQuery::default() }).await?;
        let _ = self.place().warnings().await;
        Ok(())
    }

    /// Returns the store.
    pub fn store(&self) -> &AnyStore {
        &self.0.store
    }

    /// Returns the store as a queue.
    ///
    /// # Errors
    /// [`Error::NoQueue`] when it is none.
    pub fn queue(&self) -> Result<AnyQueue> {
        self.store().queue().ok_or_else(|| Error::NoQueue { place: self.place().shown() })
    }

    /// Hands the conversation `id` of the team `prepared` over to workers: what [the team needs](Prepared::needs) replaces what it needed
    /// before, next to what people have said, which `needs` replaces. One that this process has open is theirs when it is
    /// [released](Conversation::release), and its work directory here is removed if a worker makes the same one. A parked one is parked no more.
    ///
    /// # Errors
    /// [`Error::NoQueue`], or when the store cannot be written.
    pub async fn hand_over(&self, id: &LogId, prepared: &Prepared, needs: Option<&Features>) -> Result<()> {
        let needs = self.needs_of(id, prepared, needs).await?;
        self.queue()?.schedule(id, Due::Now, Some(&needs)).await?;
        if let Some(conversation) = self.get(id) {
            // While it is claimed here. What stays is in the way of no worker.
            let _ = prepared.run().remove_stored_work_dir(id, &conversation.events().await).await;
        }
        Ok(())
    }

    /// Returns the location of the store.
    pub fn place(&self) -> &StoreLocation {
        &self.0.place
    }

    /// The conversations that this process has open.
    fn opened(&self) -> MutexGuard<'_, HashMap<LogId, Weak<Shared>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a conversation while a handle of it exists.
    fn register(&self, conversation: Conversation) -> Conversation {
        let mut opened = self.opened();
        // Before it grows: looking at all of them each time would cost as many looks as there are.
        if opened.len() == opened.capacity() {
            opened.retain(|_, shared| shared.strong_count() > 0);
        }
        opened.insert(conversation.id().clone(), Arc::downgrade(&conversation.0));
        conversation
    }

    /// Begins a conversation of `run` under its own id. [`Conversation::run`] runs it.
    ///
    /// # Errors
    /// When the team cannot be built, the price of a model is unknown under a limit on cost, or the store cannot be written.
    pub async fn begin(&self, run: &TeamRun<'_>) -> Result<Conversation> {
        loop {
            match self.begin_as(run, fresh_id(), None).await {
                Err(Error::Run(polylogue_core::Error::Store(StoreError::Exists { .. }))) => {}
                begun => return begun,
            }
        }
    }

    /// Begins a conversation as [`begin`](Self::begin) under a given id, for a request if it names one, and with a title of its own in lists.
    ///
    /// # Errors
    /// As [`begin`](Self::begin); [`StoreError::Exists`] when there is a conversation with this id.
    pub async fn begin_as(
        &self,
        run: &TeamRun<'_>,
        new: impl Into<NewLog>,
        title: Option<&str>,
    ) -> Result<Conversation> {
        let NewLog { id, request } = new.into();
        let name = run.team().name.to_string();
        let stored = run.stored()?;
        let meta = stored.meta(title.map_or_else(|| name.clone(), |title| format!("{name} {title}")))?;
        let meta = with_request(meta, request.as_deref());
        let paying = self.0.shared.paying(self.place(), None, Some(run.daily())).await?;
        // A refused one leaves no log.
        let budgets = self.budgets(run.budgets()).chain(Paying::all(paying.as_ref()));
        run.check_prices(&run.limits(), budgets, run.daily())?;
        run.check_work_dir()?;
        let (chat, most) = (run.chat(&id)?, stored.bound.map(|bound| bound.most).unwrap_or_default());
        let log = Log::create_with(self.store().clone(), id.clone(), &meta).await?;
        let log = match self.set_up(log, run, most, paying).await {
            Ok(log) => log,
            Err(error) => {
                // A worker could begin it, whose caller has an error.
                self.discard(&id).await;
                return Err(error);
            }
        };
        let is_continued = self.has_successors();
        let (task, limits, more) = (run.task().to_owned(), run.limits(), LimitOverrides::default());
        let opened = Opened { task, limits, before: limits, changed: None, more, events: 0, is_continued };
        let conversation = Conversation::new(chat, log, opened, self.store().clone());
        conversation.attach(run.attached().to_vec());
        Ok(self.register(conversation))
    }

    /// Limits a new log of `run`, has its budgets pay for it, makes its work directory, and notes for workers what it needs.
    async fn set_up(
        &self,
        log: Log,
        run: &TeamRun<'_>,
        most: RunBound,
        paying: Option<Paying>,
    ) -> Result<Log> {
        let log = log.limits(run.limits()).agent_limits(run.team().agent_limits()).bound(most);
        let log = timed(log, self.budgets(run.budgets()));
        let log = match paying {
            Some(paying) => paying.begin(log).await?,
            None => log,
        };
        run.make_work_dir(log.id())?;
        if self.has_successors() {
            log.continue_if_lost().await?;
        }
        self.note_needs(log.id(), run.prepared).await?;
        Ok(log)
    }

    /// Removes a conversation that was created and could not be set up. Its log was dropped, and may be just being released.
    async fn discard(&self, id: &LogId) {
        let removing = async {
            self.claim(id, false).await?.release().await?;
            self.remove(id).await
        };
        if let Err(error) = removing.await {
            warn!(conversation = %id, %error, "a conversation that could not be begun is not removed");
        }
    }

    /// Returns the conversation `id`, if this process has it open.
    pub fn get(&self, id: &LogId) -> Option<Conversation> {
        let open = self.opened().get(id).and_then(Weak::upgrade).map(Conversation);
        open.filter(|conversation| !conversation.is_released())
    }

    /// Subscribes to updates of the conversation `id` from now on, if this process has it open.
    pub async fn subscribe(&self, id: &LogId) -> Option<Subscription> {
        Some(self.get(id)?.subscribe().await)
    }

    /// Returns the team that is stored with the conversation `id`, to [prepare](Prepared::new) it again.
    ///
    /// # Errors
    /// As [`StoredTeam::of`].
    pub async fn stored_team(&self, id: &LogId) -> Result<StoredTeam> {
        StoredTeam::of(self.store(), id).await
    }

    /// Returns the same, not read yet, with the limits of the conversation.
    ///
    /// # Errors
    /// As [`StoredDocument::of`].
    pub async fn stored_document(&self, id: &LogId) -> Result<StoredDocument> {
        StoredDocument::of(self.store(), id).await
    }

    /// Returns the task of the conversation of `listing`, up to [`Summary::TASK_CHARS`] characters: of one that has not begun, whose events do not
    /// say it yet, that of its team. Empty if there is none, or if the team cannot be read.
    pub async fn task(&self, listing: &Listing) -> Arc<str> {
        if listing.summary.progress != Progress::New || listing.is_damaged {
            return Arc::clone(&listing.summary.task);
        }
        let team = self.stored_document(&listing.id).await.and_then(|document| document.team());
        let task = team.ok().and_then(|stored| stored.team.task).unwrap_or_default();
        task.chars().take(Summary::TASK_CHARS).collect::<String>().into()
    }

    /// Finds the conversation that `text` names: an id, the beginning of just one, or `last`.
    ///
    /// # Errors
    /// When there is none, or several.
    pub async fn find(&self, text: &str) -> Result<LogId> {
        if let Ok(id) = LogId::new(text)
            && self.store().meta(&id).await.is_ok()
        {
            return Ok(id);
        }
        let newest = ListQuery { limit: Some(1), ..ListQuery::default() };
        let query = match text {
            "last" => newest.clone(),
            _ => ListQuery { limit: Some(5), id: Some(text.to_owned()), ..ListQuery::default() },
        };
        // Every id begins with an empty text, which is what an unset variable of a shell is.
        let found = if text.is_empty() { Vec::new() } else { self.list(&query).await?.logs };
        match found.as_slice() {
            [only] => Ok(only.id.clone()),
            [] if self.list(&newest).await?.logs.is_empty() => {
                Err(Error::Empty { tenant: self.place().tenant().map(str::to_owned) })
            }
            [] => Err(Error::Unknown { text: text.to_owned() }),
            several => {
                let ids = several.iter().map(|listing| listing.id.clone()).collect();
                Err(Error::Ambiguous { text: text.to_owned(), ids })
            }
        }
    }

    /// Lists a page of the conversations, newest first, with their summaries. Reads no logs.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self, query: &ListQuery) -> Result<Page> {
        Ok(self.store().list(query).await?)
    }

    /// Forks the conversation `id`: copies its events before a point into a new conversation, with its parent in the
    /// metadata. The original is only read; it can be running. The fork has its own work directory, with a copy of the
    /// original's files if they are known to be those of that point. [`open`](Self::open) opens the fork.
    ///
    /// # Errors
    /// [`Error::BadFork`] within a tool call, or when the conversation has no such event or message.
    pub async fn fork(&self, id: &LogId, point: &ForkPoint) -> Result<Fork> {
        crate::fork::fork(self.place(), self.store(), (id, NewFork::default()), point).await
    }

    /// Forks as [`fork`](Self::fork), with a given id of the fork, for a request if it names one, and with another team if it is given: it has
    /// the same past, and its agents continue it.
    ///
    /// # Errors
    /// As [`fork`](Self::fork), and when the team does not have the participants of the conversation; [`StoreError::Exists`] when there
    /// is a conversation with this id.
    pub async fn fork_as(
        &self,
        id: &LogId,
        point: &ForkPoint,
        new: impl Into<NewLog>,
        team: Option<&Prepared>,
    ) -> Result<Fork> {
        let new = NewFork { log: Some(new.into()), team };
        crate::fork::fork(self.place(), self.store(), (id, new), point).await
    }

    /// Cancels the conversation `id` after its step, if this process has it open. Returns whether it has.
    pub fn cancel(&self, id: &LogId) -> bool {
        let conversation = self.get(id);
        conversation.iter().for_each(|conversation| conversation.cancellation().cancel_after_step());
        conversation.is_some()
    }

    /// Answers the question of `who` in the chat `at` of the conversation `id`, whether this process has it open or no
    /// process runs it. `by` is in the log.
    ///
    /// # Errors
    /// [`Error::NoQuestion`], or when another process runs it.
    pub async fn answer(&self, id: &LogId, at: &Path, who: &Name, text: &str, by: Responder) -> Result<()> {
        if let Some(conversation) = self.get(id) {
            return conversation.answer(at, who, text, by).await;
        }
        self.check_own(id).await?;
        let mut log = self.claim(id, false).await?;
        if !log.questions().await?.iter().any(|(path, question)| path == at && question.who == *who) {
            return Err(Error::NoQuestion { id: id.clone() });
        }
        log.answer_by(at, who, text, by).await?;
        Ok(log.release().await?)
    }

    /// Removes the conversation `id` and its work directory.
    ///
    /// # Errors
    /// When a process runs it, or the store cannot be written.
    pub async fn remove(&self, id: &LogId) -> Result<()> {
        self.store().remove(id).await?;
        self.place().remove_work_dir(id)
    }
}
