//! A worker: runs the conversations of a queue that are due, many at a time, until it is stopped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use polylogue_core::{
    AnyQueue, Body, Claim, Due, Event, Features, LEASE, LogId, Queue as _, Status, Store as _, StoreError,
    WorkerInfo,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{info, warn};

use crate::{Conversation, Error, OpenOptions, Prepared, Result, Runtime};

/// Prepares the team that is stored with a conversation: models, permissions and secrets are those of this process.
pub trait StoredTeams: Send + Sync + 'static {
    /// The team of the conversation `id`.
    ///
    /// # Errors
    /// Why it cannot be run by this process, in one line.
    fn prepare<'a>(
        &'a self,
        runtime: &'a Runtime,
        id: &'a LogId,
    ) -> BoxFuture<'a, std::result::Result<Prepared, String>>;
}

/// What a worker takes.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// How many conversations it runs at the same time.
    pub at_once: usize,
    /// What it has that conversations may need.
    pub offers: Features,
    /// Where others reach this process over HTTP.
    pub address: Option<String>,
}

impl Default for WorkerOptions {
    /// 200 conversations, and nothing special.
    fn default() -> Self {
        Self { at_once: 200, offers: Features::none(), address: None }
    }
}

/// Runs the conversations of a queue that are due.
pub struct Worker {
    runtime: Runtime,
    queue: AnyQueue,
    teams: Arc<dyn StoredTeams>,
    options: WorkerOptions,
    running: Mutex<HashMap<LogId, Running>>,
    /// Whether it takes no more conversations.
    stopping: watch::Sender<bool>,
}

/// A conversation that this worker has claimed.
struct Running {
    claim: Claim,
    /// When a request was sent that the store has confirmed the claim in.
    confirmed: Instant,
    /// `None` while it is prepared.
    conversation: Option<Conversation>,
}

/// How many are claimed at once, so that the others find some, too.
const BATCH: usize = 16;

/// How often a worker asks for conversations that are due.
const POLL: Duration = Duration::from_millis(50);

/// How long after its last confirmation a claim counts: less than a lease, because calls take a moment to abort.
const GUARD: Duration = Duration::from_secs(24);

/// The longest pause while the store cannot be reached.
const LONGEST: Duration = Duration::from_secs(2);

/// How long a worker that was stopped lets steps end, before it aborts calls.
pub const DRAIN: Duration = Duration::from_secs(25);

/// The pauses before a conversation is tried again whose turn failed, from the first to the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(600));

impl Worker {
    /// A worker for the conversations of `runtime`, whose store does not renew claims by itself.
    ///
    /// # Errors
    /// [`Error::NoQueue`] when its store is none.
    pub fn new(runtime: Runtime, teams: Arc<dyn StoredTeams>, options: WorkerOptions) -> Result<Arc<Self>> {
        let queue = runtime.queue()?;
        let (running, stopping) = (Mutex::default(), watch::Sender::new(false));
        Ok(Arc::new(Self { runtime, queue, teams, options, running, stopping }))
    }

    fn running(&self) -> MutexGuard<'_, HashMap<LogId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Runs what is due until `stop` resolves. Then it claims nothing more, lets steps end, for at most [`DRAIN`], and releases all:
    /// other workers continue them at once.
    pub async fn run(self: &Arc<Self>, stop: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        let _keeper = self.keep_claims();
        let (mut next_poll, mut pause) = (Instant::now(), POLL);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = tasks.join_next() => {}
                () = sleep_until(next_poll), if tasks.len() < self.options.at_once => {
                    let room = self.options.at_once - tasks.len();
                    let asked = Instant::now();
                    match self.queue.claim_due(room.min(BATCH), &self.options.offers).await {
                        Ok(claims) => {
                            pause = if claims.len() == BATCH { Duration::ZERO } else { POLL };
                            claims.into_iter().for_each(|claim| {
                                tasks.spawn(Arc::clone(self).run_claim(claim, asked));
                            });
                        }
                        Err(error) => {
                            warn!(%error, "no conversation can be claimed");
                            pause = (pause * 2).clamp(POLL, LONGEST);
                        }
                    }
                    next_poll = Instant::now() + jittered(pause);
                }
            }
        }
        self.drain(tasks).await;
    }

    /// Lets steps end, then aborts what is in flight.
    async fn drain(self: &Arc<Self>, mut tasks: JoinSet<()>) {
        self.stopping.send_replace(true);
        self.cancel_all(false);
        let deadline = Instant::now() + DRAIN;
        loop {
            tokio::select! {
                ended = tasks.join_next() => if ended.is_none() { return },
                () = sleep_until(deadline) => break,
            }
        }
        self.cancel_all(true);
        // What does not even end then is lost at the end of its lease.
        let _ = timeout(Duration::from_secs(5), async { while tasks.join_next().await.is_some() {} }).await;
    }

    fn cancel_all(&self, now: bool) {
        for conversation in self.running().values().filter_map(|running| running.conversation.as_ref()) {
            match now {
                true => conversation.cancellation().now(),
                false => conversation.cancellation().after_step(),
            }
        }
    }

    /// Renews all claims, and aborts what runs under those that could not be renewed for long, until the result is dropped.
    fn keep_claims(self: &Arc<Self>) -> AbortOnDrop {
        let (beats, guards) = (Arc::clone(self), Arc::clone(self));
        let heartbeat = async move {
            let mut ticks = tokio::time::interval(LEASE / 3);
            loop {
                ticks.tick().await;
                beats.heartbeat().await;
            }
        };
        let guard = async move {
            let mut ticks = tokio::time::interval(Duration::from_secs(1));
            loop {
                ticks.tick().await;
                guards.abort_unconfirmed();
            }
        };
        AbortOnDrop([tokio::spawn(heartbeat).abort_handle(), tokio::spawn(guard).abort_handle()])
    }

    /// Aborts calls before leases end by which other workers may begin the same ones.
    fn abort_unconfirmed(&self) {
        for running in self.running().values() {
            let Some(conversation) = &running.conversation else { continue };
            if running.confirmed.elapsed() > GUARD && !conversation.cancellation().is_requested() {
                warn!(conversation = %running.claim.id, "its lease could not be renewed: calls are aborted");
                conversation.cancellation().now();
            }
        }
    }

    /// Renews all claims. What runs under one that is lost is aborted: another worker has the conversation.
    async fn heartbeat(&self) {
        let WorkerOptions { at_once, offers, address } = &self.options;
        let info = WorkerInfo { offers: offers.clone(), at_once: *at_once as u64, address: address.clone() };
        if let Ok(Err(error)) = timeout(LEASE / 3, self.queue.announce(&info)).await {
            warn!(%error, "the other processes cannot see this worker");
        }
        let claims: Vec<Claim> = self.running().values().map(|running| running.claim.clone()).collect();
        if claims.is_empty() {
            return;
        }
        let sent = Instant::now();
        let held = match timeout(LEASE / 3, self.queue.heartbeat(&claims)).await {
            Ok(Ok(held)) => held,
            // Calls are checked against the lease.
            Ok(Err(error)) => return warn!(%error, "leases are not renewed"),
            Err(_) => return warn!("leases are not renewed: the store does not answer"),
        };
        for heartbeat in &held {
            let mut running = self.running();
            let running =
                running.get_mut(&heartbeat.claim.id).filter(|running| running.claim == heartbeat.claim);
            running.into_iter().for_each(|running| running.confirmed = sent);
        }
        let lost = claims.iter().filter(|claim| !held.iter().any(|heartbeat| heartbeat.claim == **claim));
        for claim in lost {
            let running = self.running();
            if let Some(Running { conversation: Some(conversation), .. }) =
                running.get(&claim.id).filter(|running| running.claim == *claim)
            {
                warn!(conversation = %claim.id, "the claim was lost");
                conversation.cancellation().now();
            }
        }
    }

    /// Runs a conversation that was claimed until it is at rest, and releases it.
    async fn run_claim(self: Arc<Self>, claim: Claim, confirmed: Instant) {
        let id = claim.id.clone();
        self.running().insert(id.clone(), Running { claim: claim.clone(), confirmed, conversation: None });
        let rest = self.run_to_rest(&claim).await;
        let released = match rest {
            Ok((_, rest)) | Err(rest) => rest.release(&self.queue, claim.clone()).await,
        };
        if let Err(error) = released {
            warn!(conversation = %id, %error, "a conversation is not released: its lease expires");
        }
        let mut running = self.running();
        if running.get(&id).is_some_and(|running| running.claim == claim) {
            running.remove(&id);
        }
    }

    /// Runs the conversation `id` alone, until it is at rest, or `stop` resolves. Does nothing if another process runs it.
    ///
    /// # Errors
    /// When it cannot be claimed, prepared or run.
    pub async fn run_only(self: &Arc<Self>, id: &LogId, stop: impl Future<Output = ()>) -> Result<Status> {
        let confirmed = Instant::now();
        let claim = self.queue.store().claim(id).await?;
        self.running().insert(id.clone(), Running { claim: claim.clone(), confirmed, conversation: None });
        let _keeper = self.keep_claims();
        let mut work = std::pin::pin!(self.run_to_rest(&claim));
        let mut stop = std::pin::pin!(stop);
        let mut is_stopped = false;
        let rest = loop {
            tokio::select! {
                rest = &mut work => break rest,
                () = &mut stop, if !is_stopped => {
                    is_stopped = true;
                    self.stopping.send_replace(true);
                    self.cancel_all(false);
                }
            }
        };
        let (status, rest) = match rest {
            Ok((status, rest)) => (Ok(status), rest),
            Err(rest @ Rest::Done(_)) => (Ok(Status::Cancelled), rest),
            Err(Rest::Failed { error, due }) => (Err(error.clone()), Rest::Failed { error, due }),
            Err(Rest::Lost(error)) => (Err(error.clone()), Rest::Lost(error)),
        };
        rest.release(&self.queue, claim.clone()).await?;
        status
    }

    async fn run_to_rest(&self, claim: &Claim) -> std::result::Result<(Status, Rest), Rest> {
        let id = &claim.id;
        let prepared = self.teams.prepare(&self.runtime, id).await.map_err(|why| Rest::Failed {
            error: Error::Unprepared { id: id.clone(), why },
            due: Due::After(RETRY.0),
        })?;
        let opened = self.runtime.open_claimed(claim, &prepared, OpenOptions::default()).await;
        let conversation = opened.map_err(|error| Rest::of_error(error, RETRY.0))?;
        let before = conversation.events().await;
        if is_stopped(&before) {
            return Err(Rest::Done(Due::Never));
        }
        if let Some(running) = self.running().get_mut(id) {
            running.conversation = Some(conversation.clone());
        }
        if self.is_stopping() {
            conversation.cancellation().after_step();
        }
        let status = conversation.run().await;
        let events = conversation.events().await;
        match status {
            Ok(status) => {
                let due = self.due((id, before.len()), &events, &status).await;
                info!(conversation = %id, "a conversation is at rest");
                Ok((status, Rest::Done(due)))
            }
            Err(error) => {
                warn!(conversation = %id, %error, "a conversation has failed");
                Err(Rest::of_error(error, retry_after(&events)))
            }
        }
    }

    /// When a worker must look at it again, after it ran from the event `from` on.
    async fn due(&self, (id, from): (&LogId, usize), events: &[Arc<Event>], status: &Status) -> Due {
        match status {
            // By a person; or else by this worker.
            Status::Cancelled
                if is_stopped(events) || is_cancelled(events.get(from..).unwrap_or_default()) =>
            {
                Due::Never
            }
            Status::Cancelled => Due::Now,
            Status::Waiting(_) => {
                let questions = self.runtime.open_questions(id).await.unwrap_or_default();
                let until = questions.iter().filter_map(polylogue_core::OpenQuestion::until).min();
                until.map_or(Due::Never, Due::At)
            }
            _ => Due::Never,
        }
    }
}

/// Ends tasks.
struct AbortOnDrop([tokio::task::AbortHandle; 2]);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

/// How a conversation is released.
enum Rest {
    Done(Due),
    /// It is tried again.
    Failed {
        error: Error,
        due: Due,
    },
    /// Another worker has it, or the store lacks what it acknowledged.
    Lost(Error),
}

impl Rest {
    fn of_error(error: Error, retry: Duration) -> Self {
        match &error {
            Error::Run(polylogue_core::Error::Store(StoreError::Fenced { .. })) => Self::Lost(error),
            _ => Self::Failed { error, due: Due::After(retry) },
        }
    }

    async fn release(self, queue: &AnyQueue, claim: Claim) -> std::result::Result<(), StoreError> {
        match self {
            Self::Done(due) => queue.release_until(claim, due).await,
            Self::Failed { error, due } => queue.release_failed(claim, due, &error.to_string()).await,
            Self::Lost(_) => Ok(()),
        }
    }
}

/// Whether a person has paused or cancelled it, and nothing continued it since: running it would.
fn is_stopped(events: &[Arc<Event>]) -> bool {
    let last = events.iter().rev().find_map(|event| match event.body {
        Body::Paused | Body::Cancelled { .. } => Some(true),
        Body::Resumed | Body::TurnStarted { .. } | Body::Reopened { .. } => Some(false),
        Body::Sent(_) | Body::InputProvided { .. } => Some(false),
        _ => None,
    });
    last == Some(true)
}

fn is_cancelled(events: &[Arc<Event>]) -> bool {
    events.iter().any(|event| matches!(event.body, Body::Cancelled { .. }))
}

impl Runtime {
    /// Whether a person has paused or cancelled the conversation `id`: workers leave it alone until it is resumed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn is_stopped(&self, id: &LogId) -> Result<bool> {
        let events: Vec<Arc<Event>> = self.store().read(id, 0).await?.into_iter().map(Arc::new).collect();
        Ok(is_stopped(&events))
    }
}

/// The pause before a conversation is tried again: it doubles with every failure since the last reply.
fn retry_after(events: &[Arc<Event>]) -> Duration {
    let since = events.iter().rev().take_while(|event| !matches!(event.body, Body::ModelReplied(_)));
    let failures = since.filter(|event| matches!(event.body, Body::Failed { .. })).count();
    let doubled = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
    RETRY.0.saturating_mul(1 << doubled).min(RETRY.1)
}

/// Up to half as long again, so that workers do not ask in step.
fn jittered(pause: Duration) -> Duration {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    pause + pause.mul_f64(f64::from(nanos.subsec_nanos() % 1000) / 2000.0)
}
