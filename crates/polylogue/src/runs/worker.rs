//! Workers: processes that run the conversations of a queue.
//!
//! A [`Worker`] claims conversations that are due, up to [`concurrency`](Worker::concurrency) of them, has each run until it waits, ends or
//! is stopped, and releases it until something must be done again ([`Release`]). It sends heartbeats for all its claims in one
//! operation. A conversation whose claim is lost is dropped at once: nothing more is appended to its log. Those of other
//! workers are taken over when their leases have ended by the clock of the store and by its own: at the earliest a [`LEASE`] after it has begun.
//!
//! It does no IO of its own and needs no particular async runtime: the queue, the clock and what runs a conversation are given.
//! Conversations are opened in its [`WorkerStore`], which lets a model or tool call begin only under a claim that was confirmed
//! recently.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use polylogue::kernel::data::LogId;
//! use polylogue::kernel::limits::Timer;
//! use polylogue::kernel::log::{AnyQueue, AnyStore, Due, Meta, Queue, Store};
//! use polylogue::runs::worker::{Claimed, Release, Worker, WorkerStore, WorkerTime};
//! use polylogue::{Assistant, Chat, Log, models, sequential};
//! use polylogue_store::Memory;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let queue = AnyQueue::new(Memory::new()).ok_or("no queue")?;
//! // A new conversation, ready for workers.
//! let claim = queue.create(&LogId::new("greeting")?, &Meta::default()).await?;
//! queue.release_until(claim, Due::Now).await?;
//!
//! let begun = Instant::now();
//! let time = WorkerTime::new(move || begun.elapsed(), Timer::new(tokio::time::sleep));
//! let store = WorkerStore::new(queue, time);
//! let worker = Worker::new(store.clone());
//! let drain = worker.drain();
//! let model = models::scripted(r#"[{"Ann": "Hello."}]"#)?;
//! let chat = Chat::builder("solo").participant(Assistant::new("Ann", &model)?).policy(sequential()).build()?;
//! let (store, chat, drain) = (&store, &chat, &drain);
//! worker
//!     .run(|claimed: Claimed| async move {
//!         let mut log = match Log::open_claimed(store.store(), claimed.claim.clone()).await {
//!             Ok(log) => log.cancelled_by(claimed.stop.clone()),
//!             Err(error) => return Release::failed(&error),
//!         };
//!         let earlier = log.events().await.len();
//!         let status = chat.run_in(&mut log, "Greet me.").await.map(|run| run.status);
//!         drain.request();
//!         let events = log.events().await;
//!         Release::after(&status, &events, earlier, claimed.is_draining())
//!     })
//!     .await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod drain;
mod leases;
mod pace;
mod release;
mod slots;
mod store;
mod time;
mod unsuited;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, join3, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use polylogue_core::{
    Cancellation, Claim, Due, Features, LEASE, LeaseNumber, LogId, Queue as _, StoreError, WorkerInfo,
};
use tokio::sync::OwnedSemaphorePermit;

pub use self::drain::Drain;
pub use self::pace::Pace;
pub use self::release::{BACKOFF, PERMANENT_TRIES, Release, backoff, is_refused, is_stopped};
use self::slots::Taken;
pub use self::slots::WorkerSlots;
pub use self::store::{HEARTBEAT_INTERVAL, LeaseCheck, MAX_CONFIRMATION_AGE, Woken, WorkerStore};
pub use self::time::WorkerTime;
use self::unsuited::Unsuited;

/// Runs the conversations of a queue. See the [module](self).
#[derive(Debug, Clone)]
#[must_use]
pub struct Worker {
    store: WorkerStore,
    offers: Features,
    concurrency: usize,
    slots: Option<WorkerSlots>,
    address: Option<String>,
    pace: Pace,
    drain_timeout: Duration,
    drain: Drain,
    observe: Observe,
    running: Arc<Mutex<BTreeMap<u64, Cancellation>>>,
    unsuited: Arc<Mutex<Unsuited>>,
}

/// An event of a worker.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// The worker has claimed a conversation.
    Claimed(LogId),
    /// The worker has released a conversation, which is due again at that time.
    Released(LogId, Due),
    /// It could not run one, which is tried again at that time unless it is parked; with [`Due::Never`] it is.
    Failed(LogId, Due, String),
    /// The worker cannot run a conversation, for that reason, and leaves it to others.
    LeftToOthers(LogId, String),
    /// Another worker has a conversation now, or may have it: what ran here was dropped.
    Lost(LogId),
    /// An operation of the store failed; it is tried again. After [`StoreError::Newer`] the worker ends.
    StoreFailed(StoreError),
}

#[derive(Clone, derive_more::Debug)]
#[debug("Observe")]
struct Observe(Arc<dyn Fn(&WorkerEvent) + Send + Sync>);

/// A conversation that a worker has claimed.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The claim. The worker releases it.
    pub claim: Claim,
    /// The cancellation of the run when the worker is drained: pass it to `Log::cancelled_by`.
    pub stop: Cancellation,
    /// Notifies the run of inbox messages.
    pub woken: Woken,
    drain: Drain,
}

impl Claimed {
    /// Returns whether the worker is drained: a run that it stops continues on another worker.
    pub fn is_draining(&self) -> bool {
        self.drain.is_requested()
    }
}

/// What a worker waits for.
enum Step {
    Found(Result<Found, StoreError>),
    Ended,
    Draining,
}

/// Conversations that were claimed, each with its slot, and for how many there was room.
struct Found {
    claims: Vec<(Claim, Taken)>,
    room: usize,
}

type Finding<'a> = BoxFuture<'a, Result<Found, StoreError>>;

impl Worker {
    /// Default number of conversations that a worker runs at once.
    pub const DEFAULT_CONCURRENCY: usize = 200;

    /// Default time for which a drained worker lets turns end, before it aborts them.
    pub const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

    /// Number of conversations that a worker claims in one operation, so that the others find some, too.
    pub const CLAIM_BATCH: usize = 16;

    /// How long aborted turns may take to end. What has not ended by then is dropped, and lost at the end of its lease.
    const GRACE: Duration = Duration::from_secs(5);

    /// Creates a worker that offers nothing, with the defaults.
    pub fn new(store: WorkerStore) -> Self {
        Self {
            store,
            offers: Features::none(),
            concurrency: Self::DEFAULT_CONCURRENCY,
            slots: None,
            address: None,
            pace: Pace::default(),
            drain_timeout: Self::DEFAULT_DRAIN_TIMEOUT,
            drain: Drain::default(),
            observe: Observe(Arc::new(|_| {})),
            running: Arc::default(),
            unsuited: Arc::default(),
        }
    }

    /// Sets what the worker offers: it claims conversations that need nothing else. Default: nothing.
    pub fn offers(self, offers: Features) -> Self {
        Self { offers, ..self }
    }

    /// Sets the number of conversations that the worker runs at once; 0 means 1. Default:
    /// [`DEFAULT_CONCURRENCY`](Self::DEFAULT_CONCURRENCY).
    pub fn concurrency(self, conversations: usize) -> Self {
        Self { concurrency: conversations.max(1), ..self }
    }

    /// Sets the slots that the worker shares with others of its process: it claims a conversation only when one is free. Default:
    /// it shares none, and runs [`concurrency`](Self::concurrency) conversations.
    pub fn slots(self, slots: WorkerSlots) -> Self {
        Self { slots: Some(slots), ..self }
    }

    /// Sets the address at which others reach the process over HTTP, as [`overview`](polylogue_core::Queue::overview) shows it.
    /// Default: nowhere.
    pub fn address(self, address: Option<String>) -> Self {
        Self { address, ..self }
    }

    /// Sets how often the worker asks for conversations that are due.
    pub fn pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Sets the time for which a drained worker lets turns end. Default: [`DEFAULT_DRAIN_TIMEOUT`](Self::DEFAULT_DRAIN_TIMEOUT).
    pub fn drain_timeout(self, timeout: Duration) -> Self {
        Self { drain_timeout: timeout, ..self }
    }

    /// Sets a callback for the events of the worker.
    pub fn observe(self, observe: impl Fn(&WorkerEvent) + Send + Sync + 'static) -> Self {
        Self { observe: Observe(Arc::new(observe)), ..self }
    }

    /// Returns the handle that drains the worker: it claims nothing more, lets turns end, and releases everything for others.
    pub fn drain(&self) -> Drain {
        self.drain.clone()
    }

    /// Returns the number of conversations that are running now.
    pub fn running(&self) -> usize {
        self.stops().len()
    }

    /// Claims conversations and runs them by `run`, until it is drained. Errors of the store do not end it, except [`StoreError::Newer`]: a process of a
    /// later version has changed the store, and taken away all claims, so this worker drops what it runs, and ends.
    ///
    /// `run` opens the conversation of its claim in the [store](WorkerStore::store) of this worker, and runs it. The claim is released
    /// here, also if its log is dropped. When the claim is lost, the future of `run` is dropped.
    pub async fn run<R, F>(&self, run: R)
    where
        R: Fn(Claimed) -> F + Sync,
        F: Future<Output = Release> + Send,
    {
        self.keep_until(self.work(&run)).await;
    }

    /// Runs like [`run`](Self::run) for one claim that the caller has from this worker's store, until it is released.
    pub async fn run_claimed<R, F>(&self, claim: Claim, run: R)
    where
        R: Fn(Claimed) -> F + Sync,
        F: Future<Output = Release> + Send,
    {
        self.keep_until(self.one((claim, None), &run)).await;
    }

    /// Keeps its claims until `work` has ended, or a drain has taken too long.
    async fn keep_until(&self, work: impl Future<Output = ()>) {
        let keep = pin!(join3(self.heartbeats(), self.store.watch(), self.store.watch_leases()));
        let drained = pin!(self.stop_when_drained());
        match select(pin!(work), select(keep, drained)).await {
            Either::Left(_) | Either::Right(_) => {}
        }
        // Others need not wait until it is silent for long to know that it has ended.
        let farewell = self.store.announce(None);
        match select(pin!(farewell), self.store.time().sleep(LEASE / 15)).await {
            Either::Left((Err(error), _)) => self.tell(&WorkerEvent::StoreFailed(error)),
            Either::Left((Ok(()), _)) | Either::Right(_) => {}
        }
    }

    async fn work<R, F>(&self, run: &R)
    where
        R: Fn(Claimed) -> F + Sync,
        F: Future<Output = Release> + Send,
    {
        let (mut pace, mut runs) = (self.pace.clone(), FuturesUnordered::new());
        let mut finding: Option<Finding<'_>> = None;
        let mut drained = pin!(self.drain.wait().fuse());
        loop {
            let is_draining = self.drain.is_requested();
            let room = self.concurrency.saturating_sub(runs.len()).min(Self::CLAIM_BATCH);
            if is_draining && finding.is_none() && runs.is_empty() {
                return;
            }
            if finding.is_none() && room > 0 && !is_draining {
                finding = Some(self.find(pace.next(), room).boxed());
            }
            match next_step(&mut finding, &mut runs, drained.as_mut()).await {
                Step::Found(Ok(Found { claims, room })) => {
                    pace.found(claims.len(), room);
                    claims.into_iter().for_each(|claimed| runs.push(self.one(claimed, run)));
                }
                Step::Found(Err(error)) => {
                    pace.found(0, room);
                    self.store_failed(error);
                }
                Step::Ended | Step::Draining => {}
            }
        }
    }

    /// Claims what is due after a pause, when there is a slot for it; nothing if the worker is drained meanwhile.
    async fn find(&self, pause: Duration, room: usize) -> Result<Found, StoreError> {
        let time = self.store.time();
        let ready = pin!(async {
            let mut next = Some(pause);
            while let Some(pause) = next {
                time.sleep(pause).await;
                next = self.unsuited().pause(time.now());
            }
            match &self.slots {
                Some(slots) => slots.take(room).await,
                None => None,
            }
        });
        let Either::Left((mut taken, _)) = select(ready, pin!(self.drain.wait())).await else {
            return Ok(Found { claims: Vec::new(), room });
        };
        let room = taken.as_ref().map_or(room, OwnedSemaphorePermit::num_permits);
        let except = self.unsuited().at(time.now());
        let claims = self.store.claim_due(room, &self.offers, &except, LeaseNumber::ALL).await?;
        let mut slot = || taken.as_mut().and_then(|taken| taken.split(1));
        Ok(Found { claims: claims.into_iter().map(|claim| (claim, slot())).collect(), room })
    }

    /// Runs one conversation and releases it, and then its slot.
    async fn one<R, F>(&self, (claim, _slot): (Claim, Taken), run: &R)
    where
        R: Fn(Claimed) -> F + Sync,
        F: Future<Output = Release> + Send,
    {
        self.tell(&WorkerEvent::Claimed(claim.id.clone()));
        let release = if self.drain.is_requested() {
            Some(Release::Until(Due::Now))
        } else {
            self.attend(&claim, run).await
        };
        self.stops().remove(&claim.fence);
        let Some(release) = release else {
            self.store.forget(&claim);
            return self.tell(&WorkerEvent::Lost(claim.id));
        };
        self.release(claim, release).await;
    }

    /// Has it run. `None` if its claim was lost.
    async fn attend<R, F>(&self, claim: &Claim, run: &R) -> Option<Release>
    where
        R: Fn(Claimed) -> F + Sync,
        F: Future<Output = Release> + Send,
    {
        let (lost, woken) = self.store.begin(claim)?;
        let (stop, drain) = (Cancellation::default(), self.drain.clone());
        self.stops().insert(claim.fence, stop.clone());
        let run = AssertUnwindSafe(run(Claimed { claim: claim.clone(), stop, woken, drain })).catch_unwind();
        // A loss is noticed first.
        match select(pin!(lost.wait()), Box::pin(run)).await {
            Either::Left(_) => None,
            Either::Right((Ok(Release::Lost), _)) => None,
            Either::Right((Ok(release), _)) => Some(release),
            Either::Right((Err(_), _)) => Some(Release::Failed {
                due: Due::After(BACKOFF.0),
                why: "its run panicked: this is a bug".into(),
            }),
        }
    }

    async fn release(&self, claim: Claim, release: Release) {
        let (id, has_progress) = (claim.id.clone(), self.store.has_progress(&claim));
        if !matches!(release, Release::ForOthers { .. }) {
            self.unsuited().forget(&id);
        }
        let (released, event) = match release {
            // Nothing happened and nothing would: not at once again.
            Release::Until(Due::Now) if !has_progress && !self.drain.is_requested() => {
                let due = Due::After(BACKOFF.0);
                (self.store.release_until(claim, due).await, WorkerEvent::Released(id, due))
            }
            Release::Until(due) => {
                (self.store.release_until(claim, due).await, WorkerEvent::Released(id, due))
            }
            Release::Failed { due, why } => {
                (self.store.release_failed(claim, due, &why).await, WorkerEvent::Failed(id, due, why))
            }
            Release::ForOthers { why } => {
                self.unsuited().note(&id, self.store.time().now());
                (self.store.release_to_others(claim, &why).await, WorkerEvent::LeftToOthers(id, why))
            }
            Release::Lost => (Ok(()), WorkerEvent::Lost(id)),
        };
        match released {
            Ok(()) => self.tell(&event),
            // It is due again when its lease has expired.
            Err(error) => self.store_failed(error),
        }
    }

    /// Sends heartbeats for all claims, and says that this worker is well.
    async fn heartbeats(&self) {
        let (offers, at_once) = (self.offers.clone(), self.concurrency as u64);
        let info = WorkerInfo { offers, at_once, address: self.address.clone() };
        loop {
            let is_well = self.in_time(self.store.heartbeat_all()).await;
            self.in_time(self.store.announce(Some(&info))).await;
            // One that fails is harmless if the next ones do not.
            let pause = if is_well { HEARTBEAT_INTERVAL } else { LEASE / 30 };
            self.store.time().sleep(pause).await;
        }
    }

    /// Whether an operation of the store succeeds before the next heartbeat is due: one that hangs delays no other.
    async fn in_time(&self, operation: impl Future<Output = Result<(), StoreError>>) -> bool {
        match select(pin!(operation), self.store.time().sleep(HEARTBEAT_INTERVAL)).await {
            Either::Left((Ok(()), _)) => return true,
            Either::Left((Err(error), _)) => self.store_failed(error),
            Either::Right(_) => {
                let why = format!("no answer for {} seconds", HEARTBEAT_INTERVAL.as_secs());
                self.tell(&WorkerEvent::StoreFailed(StoreError::Unreachable {
                    place: "the store".into(),
                    why,
                }));
            }
        }
        false
    }

    /// Lets turns end when the worker is drained, and aborts them after its timeout. Returns when that did not help.
    async fn stop_when_drained(&self) {
        self.drain.wait().await;
        self.stops().values().for_each(Cancellation::cancel_after_step);
        self.store.time().sleep(self.drain_timeout).await;
        self.stops().values().for_each(Cancellation::cancel_now);
        self.store.time().sleep(Self::GRACE).await;
    }

    fn stops(&self) -> MutexGuard<'_, BTreeMap<u64, Cancellation>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsuited(&self) -> MutexGuard<'_, Unsuited> {
        self.unsuited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation of the store has failed. With tables of a later format none can succeed any more.
    fn store_failed(&self, error: StoreError) {
        if matches!(error, StoreError::Newer { .. }) {
            self.store.lose_all();
            self.drain.request();
        }
        self.tell(&WorkerEvent::StoreFailed(error));
    }

    fn tell(&self, event: &WorkerEvent) {
        (self.observe.0)(event);
    }
}

/// Waits until conversations were found, a run ended, or the worker is drained.
async fn next_step<'a, F: Future<Output = ()>>(
    finding: &mut Option<Finding<'a>>,
    runs: &mut FuturesUnordered<F>,
    mut drained: Pin<&mut (impl futures_util::future::FusedFuture<Output = ()> + ?Sized)>,
) -> Step {
    poll_fn(|cx| {
        if let Some(found) = finding.as_mut()
            && let Poll::Ready(result) = found.poll_unpin(cx)
        {
            *finding = None;
            return Poll::Ready(Step::Found(result));
        }
        if let Poll::Ready(Some(())) = runs.poll_next_unpin(cx) {
            return Poll::Ready(Step::Ended);
        }
        if !drained.is_terminated() && drained.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Step::Draining);
        }
        Poll::Pending
    })
    .await
}
