//! Workers of a runtime: the loop of [`polylogue::runs::worker`], with conversations whose teams are stored with them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};
use polylogue::runs::worker::{Claimed, Pace, Release, Worker as WorkerLoop, WorkerStore, WorkerTime};
pub use polylogue::runs::worker::{LeaseCheck, WorkerEvent, WorkerSlots};
use polylogue_core::{
    AnyStore, Cancellation, Due, Event, Features, LogId, Queue as _, Status, Store as _, StoreError, Timer,
};
use polylogue_store::parts::uptime;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

pub use crate::needs::offered_features;
use crate::stored::StoredDocument;
use crate::{ClaimedConversation, Conversation, Error, OpenOptions, Prepared, Result, Runtime};

/// Prepares the team that is stored with a conversation: models, permissions and secrets are those of this process.
pub trait StoredTeams: Send + Sync + 'static {
    /// Returns the prepared team of the conversation `id`, with which `document` is stored: its log is not read again.
    ///
    /// # Errors
    /// Why it cannot be run by this process, in one line.
    fn prepare<'a>(
        &'a self,
        runtime: &'a Runtime,
        id: &'a LogId,
        document: &'a StoredDocument,
    ) -> BoxFuture<'a, std::result::Result<Prepared, String>>;
}

/// Runs the conversations of a worker, and counts what they take.
pub trait WorkerMeter: fmt::Debug + Send + Sync + 'static {
    /// Runs a conversation of the team of this name, which `store` has, as [`Conversation::run`].
    fn run<'a>(
        &'a self,
        store: &'a AnyStore,
        team: &'a str,
        conversation: &'a Conversation,
    ) -> BoxFuture<'a, Result<Status>>;

    /// Receives what has happened to the worker.
    fn note(&self, event: &WorkerEvent);

    /// Receives how much of a lease was left at a check.
    fn note_lease(&self, at: LeaseCheck, left: Duration);
}

/// The options of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The number of conversations that the worker runs at the same time.
    pub at_once: usize,
    /// The slots for conversations that the worker shares with other workers of this process. Default: none, so that only `at_once` limits it.
    pub slots: Option<WorkerSlots>,
    /// The features that the worker offers to conversations.
    pub offers: Features,
    /// The address at which others reach this process over HTTP.
    pub address: Option<String>,
    /// Whether work directories of conversations that have ended stay on this machine, though their files are stored with them.
    pub keeps_files: bool,
    /// Counts the usage of its conversations. Default: nothing is counted.
    pub meter: Option<Arc<dyn WorkerMeter>>,
}

impl Default for WorkerOptions {
    /// 200 conversations, and nothing special.
    fn default() -> Self {
        let (at_once, offers) = (WorkerLoop::DEFAULT_CONCURRENCY, Features::none());
        Self { at_once, slots: None, offers, address: None, keeps_files: false, meter: None }
    }
}

/// How long a call waits for a limit that processes share. A conversation that would wait longer is released until then, and others have
/// its place.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the conversations of a queue that are due.
pub struct Worker {
    /// With the store of the worker, in which calls begin only under claims that were confirmed lately.
    runtime: Runtime,
    store: WorkerStore,
    worker: WorkerLoop,
    teams: Arc<dyn StoredTeams>,
    offers: Features,
    keeps_files: bool,
    meter: Option<Arc<dyn WorkerMeter>>,
    /// Why it has ended by itself: a later version has changed the store.
    ended_by: Arc<OnceLock<StoreError>>,
}

impl Worker {
    /// Creates a worker for the conversations of `runtime`, whose store does not renew claims by itself.
    ///
    /// # Errors
    /// [`Error::NoQueue`] when its store is none.
    pub fn new(runtime: &Runtime, teams: Arc<dyn StoredTeams>, options: WorkerOptions) -> Result<Arc<Self>> {
        let time = WorkerTime::new(uptime, Timer::new(tokio::time::sleep));
        let WorkerOptions { at_once, slots, offers, address, keeps_files, meter } = options;
        let noted = meter.clone();
        let store = WorkerStore::new(runtime.queue()?, time).observe_leases(move |at, left| {
            noted.iter().for_each(|meter| meter.note_lease(at, left));
        });
        let worker =
            WorkerLoop::new(store.clone()).concurrency(at_once).offers(offers.clone()).address(address);
        let worker = slots.into_iter().fold(worker, WorkerLoop::slots);
        let ended_by = Arc::<OnceLock<StoreError>>::default();
        let (noted, ending) = (meter.clone(), Arc::clone(&ended_by));
        let failures = LoggedFailures::default();
        let worker = worker.pace(Pace::of_process(std::process::id())).observe(move |event| {
            if failures.is_news(event, uptime()) {
                log(event);
            }
            if let WorkerEvent::StoreFailed(error @ StoreError::Newer { .. }) = event {
                // The first one counts.
                let _ = ending.set(error.clone());
            }
            noted.iter().for_each(|meter| meter.note(event));
        });
        let runtime = runtime.for_worker(store.store(), PATIENCE);
        Ok(Arc::new(Self { runtime, store, worker, teams, offers, keeps_files, meter, ended_by }))
    }

    /// Runs what is due until `stop` resolves; once the [budget of this process alone](Runtime::with_budget) is used, others run it. Then it claims nothing more, lets steps end, for at most
    /// [`DEFAULT_DRAIN_TIMEOUT`](WorkerLoop::DEFAULT_DRAIN_TIMEOUT), and releases all: other workers continue them at once.
    ///
    /// # Errors
    /// [`StoreError::Newer`] when a later version has changed the store while it ran: it has dropped what it ran, and this version can write nothing
    /// there any more. No other error ends it.
    pub async fn run(self: &Arc<Self>, stop: impl Future<Output = ()>) -> Result<()> {
        let work = self.worker.run(|claimed| async { Arc::clone(self).run_as_task(claimed).await.1 });
        self.drained_by(stop, work).await;
        match self.ended_by.get() {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    /// Runs the conversation `id` alone, until it is at rest, or `stop` resolves. Does nothing if another process runs it.
    ///
    /// # Errors
    /// [`Error::NotOffered`] when it needs more than this worker offers; when it cannot be claimed, prepared or run.
    pub async fn run_only(self: &Arc<Self>, id: &LogId, stop: impl Future<Output = ()>) -> Result<Status> {
        let missing = self.runtime.queue()?.needs(id).await?.difference(&self.offers);
        if !missing.is_empty() {
            return Err(Error::NotOffered { id: id.clone(), missing });
        }
        let claim = self.store.claim(id).await?;
        let ended = Mutex::new(None);
        let work = self.worker.run_claimed(claim, |claimed| async {
            let (status, release) = Arc::clone(self).run_as_task(claimed).await;
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
            release
        });
        self.drained_by(stop, work).await;
        match (ended.into_inner().unwrap_or_else(PoisonError::into_inner), self.ended_by.get()) {
            (Some(status), _) => status,
            (None, Some(error)) => Err(error.clone().into()),
            (None, None) if self.worker.drain().is_requested() => Ok(Status::Cancelled),
            (None, None) => Err(StoreError::Fenced { id: id.clone() }.into()),
        }
    }

    /// Drains the worker when `stop` resolves, until `work` ends.
    async fn drained_by(&self, stop: impl Future<Output = ()>, work: impl Future<Output = ()>) {
        match select(pin!(work), pin!(stop)).await {
            Either::Left(_) => {}
            Either::Right(((), work)) => {
                self.worker.drain().request();
                work.await;
            }
        }
    }

    /// Runs it as a task, so that the conversations of a worker share the threads of the process.
    async fn run_as_task(self: Arc<Self>, claimed: Claimed) -> (Result<Status>, Release) {
        let id = claimed.claim.id.clone();
        // Aborted when it is dropped.
        let mut task = JoinSet::new();
        task.spawn(async move { self.run_to_rest(&claimed).await });
        match task.join_next().await {
            Some(Ok(ended)) => ended,
            Some(Err(failed)) if failed.is_panic() => resume_unwind(failed.into_panic()),
            Some(Err(_)) | None => (Err(StoreError::Fenced { id }.into()), Release::Lost),
        }
    }

    /// Opens it and runs it to its rest. Its log is read once, after it was claimed.
    async fn run_to_rest(&self, claimed: &Claimed) -> (Result<Status>, Release) {
        let found = match self.runtime.read_claimed(&claimed.claim).await {
            Ok(found) => found,
            Err(error) => return unopened(error),
        };
        // One that was named by its id is run whatever is to be done.
        let is_due = claimed.claim.found.is_some();
        if is_due && let Some(release) = self.leaves(&found).await {
            return (Ok(Status::Cancelled), release);
        }
        match self.open(found, claimed).await {
            Ok((conversation, prepared)) => self.run_opened(claimed, conversation, prepared).await,
            Err(error) => unopened(error),
        }
    }

    /// Until when it leaves alone what was due: its team is not prepared for that.
    async fn leaves(&self, found: &ClaimedConversation) -> Option<Release> {
        if found.is_at_rest().await {
            return Some(Release::Until(Due::Never));
        }
        // It would end at once, though others may have a budget for it.
        let reason = self.runtime.budget_reached()?;
        Some(Release::ForOthers { why: format!("a worker has used its own budget: {reason}") })
    }

    async fn run_opened(
        &self,
        claimed: &Claimed,
        conversation: Conversation,
        prepared: Prepared,
    ) -> (Result<Status>, Release) {
        let before = conversation.events().await;
        let ended = match Release::before(&before) {
            Some(release) => (Ok(Status::Cancelled), release),
            None => {
                let team = prepared.team().name.to_string();
                let status = self.run_unless_paused(&conversation, &team, &claimed.stop).await;
                let outcome = status.clone().map_err(Error::into_run);
                let events = conversation.events().await;
                (status, Release::after(&outcome, &events, before.len(), claimed.is_draining()))
            }
        };
        let events = conversation.events().await;
        // Others who watch it cannot run it; the claim is released by the worker.
        let _ = conversation.release().await;
        drop(conversation);
        if matches!(ended.0, Ok(Status::Closed { .. })) && !self.keeps_files {
            self.remove_files(&claimed.claim.id, &prepared, &events).await;
        }
        ended
    }

    /// Removes the work directory of a conversation that has ended, while no other process can have it. A message that continues it restores the files.
    async fn remove_files(&self, id: &LogId, prepared: &Prepared, events: &[Arc<Event>]) {
        match prepared.run().remove_stored_work_dir(id, events).await {
            Ok(true) => debug!(conversation = %id, "its work directory is removed: its files are stored"),
            Ok(false) => {}
            Err(error) => warn!(conversation = %id, %error, "a work directory stays"),
        }
    }

    /// Runs it to its rest. One that a person pauses is stopped when the turns that had begun have ended, so that others have its place, and
    /// commands can claim it.
    async fn run_unless_paused(
        &self,
        conversation: &Conversation,
        team: &str,
        stop: &Cancellation,
    ) -> Result<Status> {
        let mut run = pin!(self.run_metered(conversation, team));
        match select(run.as_mut(), pin!(conversation.rests())).await {
            Either::Left((status, _)) => status,
            Either::Right(((), _)) => {
                stop.cancel_after_step();
                run.await
            }
        }
    }

    async fn run_metered(&self, conversation: &Conversation, team: &str) -> Result<Status> {
        match &self.meter {
            Some(meter) => meter.run(self.runtime.store(), team, conversation).await,
            None => conversation.run().await,
        }
    }

    /// The conversation, and its team.
    async fn open(&self, found: ClaimedConversation, claimed: &Claimed) -> Result<(Conversation, Prepared)> {
        let id = &claimed.claim.id;
        let document = found.document().await?;
        let prepared = self.teams.prepare(&self.runtime, id, &document).await;
        let prepared = prepared.map_err(|why| Error::Unprepared { id: id.clone(), why })?;
        let options = OpenOptions { stop: Some(claimed.stop.clone()), ..OpenOptions::default() };
        let conversation = self.runtime.open_prepared(found, &prepared, options).await?;
        Ok((conversation, prepared))
    }
}

/// What follows if a conversation could not be opened.
fn unopened(error: Error) -> (Result<Status>, Release) {
    let release = match &error {
        // Another worker may have the key, the program or the permission, or no budget of its own, and a program of its own the agents; or
        // the volume, or a disk on which a work directory can be made.
        Error::Unprepared { .. }
        | Error::NoTeam { .. }
        | Error::UnknownBudget { .. }
        | Error::Model(_)
        | Error::NoProject(_)
        | Error::NoVolume(_)
        | Error::Io { .. } => Release::ForOthers { why: error.to_string() },
        error => Release::failed(&error.clone().into_run()),
    };
    (Err(error), release)
}

impl Error {
    /// As an error of a run.
    pub(crate) fn into_run(self) -> polylogue_core::Error {
        match self {
            Self::Run(error) => error,
            Self::Model(error) => error.into(),
            error => polylogue_core::Error::agent(error),
        }
    }
}

/// Errors of the store that were logged lately, and when. While the store does not work, a worker tries it several times a second.
#[derive(Default)]
struct LoggedFailures(Mutex<BTreeMap<String, Duration>>);

impl LoggedFailures {
    /// For how long the same error is not logged again.
    const SILENCE: Duration = Duration::from_secs(60);

    /// Whether `event` is to be logged at the time `now`: not the same error of the store that was logged less than a minute ago.
    fn is_news(&self, event: &WorkerEvent, now: Duration) -> bool {
        let WorkerEvent::StoreFailed(error) = event else { return true };
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logged.retain(|_, at| now.saturating_sub(*at) < Self::SILENCE);
        match logged.entry(error.to_string()) {
            Entry::Vacant(unlogged) => {
                unlogged.insert(now);
                true
            }
            Entry::Occupied(_) => false,
        }
    }
}

/// Logs what happens to a worker.
fn log(event: &WorkerEvent) {
    match event {
        WorkerEvent::Claimed(id) => debug!(conversation = %id, "a conversation is claimed"),
        WorkerEvent::Released(id, due) => info!(conversation = %id, ?due, "a conversation is at rest"),
        WorkerEvent::Failed(id, due, error) => {
            warn!(conversation = %id, ?due, error, "a conversation has failed");
        }
        WorkerEvent::LeftToOthers(id, why) => {
            warn!(conversation = %id, why, "a conversation is left to other workers");
        }
        WorkerEvent::Lost(id) => warn!(conversation = %id, "the claim was lost: its calls are aborted"),
        WorkerEvent::StoreFailed(error @ StoreError::Newer { .. }) => {
            warn!(%error, "a later version has changed the store: this worker ends");
        }
        WorkerEvent::StoreFailed(error) => warn!(%error, "the store does not work: it is tried again"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_store_is_logged_once_a_minute() {
        let failures = LoggedFailures::default();
        let failed = |why: &str| {
            WorkerEvent::StoreFailed(StoreError::Unreachable { place: "the store".into(), why: why.into() })
        };
        let (denied, away) = (failed("permission denied"), failed("no answer"));
        let found =
            [(&denied, 0), (&away, 1), (&denied, 2), (&away, 59), (&denied, 60), (&away, 60), (&away, 61)]
                .map(|(event, second)| failures.is_news(event, Duration::from_secs(second)));
        assert_eq!(found, [true, true, false, false, true, false, true]);
        // Everything else is news each time.
        let lost = WorkerEvent::Lost(LogId::new("k3v9x2").unwrap());
        assert!(failures.is_news(&lost, Duration::ZERO) && failures.is_news(&lost, Duration::ZERO));
    }
}
