//! The store of a worker: knows when each of its claims was confirmed last.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polylogue_core::{
    AnyQueue, AnyStore, Claim, Due, Event, Features, Heartbeat, LEASE, LeaseNumber, LogId, Meta, Queue,
    QueueWrapper, Store as _, StoreError, StoreWrapper,
};
use tokio::sync::watch;

use super::leases::SeenLeases;
use super::time::WorkerTime;

/// Interval between heartbeats of a worker.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum age of the last confirmation of a claim when a model or tool call begins. The claim of an older one is confirmed first.
pub const MAX_CONFIRMATION_AGE: Duration = Duration::from_secs(24);

/// How old it can be before what runs under it is dropped: before another worker can have it.
const GIVE_UP: Duration = Duration::from_secs(27);

const _: () =
    assert!(GIVE_UP.as_secs() < LEASE.as_secs() && MAX_CONFIRMATION_AGE.as_secs() < GIVE_UP.as_secs());

/// A queue whose claims are confirmed before effects begin. Cloning shares it.
///
/// A claim is confirmed by each append, renewal and heartbeat of it, and counts as confirmed when that was *sent*: from then on the
/// lease lasts. One that a heartbeat does not return, or that was not confirmed for too long, is lost: it appends nothing more.
///
/// Logs of others are taken over when their leases have ended by the clock of the store, which may jump, and by that of this worker: it must
/// have [seen](Queue::last_lease) them a lease ago.
#[derive(Debug, Clone)]
pub struct WorkerStore(Arc<Inner>);

/// The occasion on which the time left of a lease is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseCheck {
    /// Before a heartbeat, of the claim that was confirmed longest ago.
    Heartbeat,
    /// Before a model or tool call begins, of its claim: below 6 seconds it is confirmed first.
    Call,
}

/// Receives the time left of leases.
#[derive(Clone, derive_more::Debug)]
#[debug("LeaseObserver")]
struct LeaseObserver(Arc<dyn Fn(LeaseCheck, Duration) + Send + Sync>);

#[derive(Debug)]
struct Inner {
    queue: AnyQueue,
    time: WorkerTime,
    observe: LeaseObserver,
    held: Mutex<BTreeMap<u64, HeldClaim>>,
    leases: Mutex<SeenLeases>,
}

#[derive(Debug)]
struct HeldClaim {
    claim: Claim,
    confirmed: Duration,
    /// Whether an event was appended.
    has_progress: bool,
    /// Whether a worker runs it, and releases it.
    is_run: bool,
    lost: watch::Sender<bool>,
    woken: watch::Sender<u64>,
}

/// Notifies of inbox messages of a claimed log, as heartbeats report them. Cloning makes one that has seen the same.
#[derive(Debug, Clone)]
pub struct Woken(watch::Receiver<u64>);

impl Woken {
    /// Waits until an inbox message may have come.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The claim is gone, and its run ends by that.
            std::future::pending().await
        }
    }
}

/// Tells whether a claim was lost.
pub(super) struct LostSignal(watch::Receiver<bool>);

impl LostSignal {
    pub(super) async fn wait(mut self) {
        if self.0.wait_for(|lost| *lost).await.is_err() {
            std::future::pending().await
        }
    }
}

impl WorkerStore {
    /// Wraps `queue`.
    pub fn new(queue: AnyQueue, time: WorkerTime) -> Self {
        Self::observed(queue, time, LeaseObserver(Arc::new(|_, _| {})))
    }

    fn observed(queue: AnyQueue, time: WorkerTime, observe: LeaseObserver) -> Self {
        Self(Arc::new(Inner { queue, time, observe, held: Mutex::default(), leases: Mutex::default() }))
    }

    /// Calls `observe` with the time left of a lease, before every heartbeat and call: it shows how late heartbeats are, and how
    /// little was left of a claim when a call began. For a store that has claimed nothing yet.
    #[must_use]
    pub fn observe_leases(self, observe: impl Fn(LeaseCheck, Duration) + Send + Sync + 'static) -> Self {
        let Inner { queue, time, .. } = &*self.0;
        Self::observed(queue.clone(), time.clone(), LeaseObserver(Arc::new(observe)))
    }

    /// Reports the time left of a lease that was `confirmed` at this time.
    fn report_lease(&self, at: LeaseCheck, confirmed: Duration) {
        let age = self.time().now().saturating_sub(confirmed);
        (self.0.observe.0)(at, LEASE.saturating_sub(age));
    }

    /// Returns the store in which conversations are opened.
    pub fn store(&self) -> AnyStore {
        AnyStore::new(self.clone())
    }

    /// Returns the claims that are held.
    pub fn claims(&self) -> Vec<Claim> {
        self.held().values().filter(|held| !*held.lost.borrow()).map(|held| held.claim.clone()).collect()
    }

    pub(super) fn time(&self) -> &WorkerTime {
        &self.0.time
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<u64, HeldClaim>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leases(&self) -> MutexGuard<'_, SeenLeases> {
        self.0.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, claim: &Claim, sent: Duration) {
        let held = HeldClaim {
            claim: claim.clone(),
            confirmed: sent,
            has_progress: false,
            is_run: false,
            lost: watch::Sender::new(false),
            woken: watch::Sender::new(0),
        };
        self.held().insert(claim.fence, held);
    }

    /// A claim is no longer looked after.
    pub(super) fn forget(&self, claim: &Claim) {
        self.held().remove(&claim.fence);
    }

    /// A worker runs what was claimed: tells whether the claim was lost, and of messages.
    pub(super) fn begin(&self, claim: &Claim) -> Option<(LostSignal, Woken)> {
        let mut held = self.held();
        let held = held.get_mut(&claim.fence)?;
        held.is_run = true;
        Some((LostSignal(held.lost.subscribe()), Woken(held.woken.subscribe())))
    }

    pub(super) fn has_progress(&self, claim: &Claim) -> bool {
        self.held().get(&claim.fence).is_some_and(|held| held.has_progress)
    }

    /// The claim was valid when something was sent.
    fn confirmed(&self, claim: &Claim, sent: Duration) {
        if let Some(held) = self.held().get_mut(&claim.fence) {
            held.confirmed = held.confirmed.max(sent);
        }
    }

    fn lose(&self, claim: &Claim) {
        if let Some(held) = self.held().get(&claim.fence) {
            held.lost.send_replace(true);
        }
    }

    /// All claims were lost.
    pub(super) fn lose_all(&self) {
        for held in self.held().values() {
            held.lost.send_replace(true);
        }
    }

    /// When the claim was confirmed. Fails if it was lost: also when it is not held any more, and what ran under it has not ended yet.
    fn check(&self, claim: &Claim) -> Result<Duration, StoreError> {
        let held = self.held();
        let valid = held.get(&claim.fence).filter(|held| !*held.lost.borrow());
        valid.map(|held| held.confirmed).ok_or_else(|| StoreError::Fenced { id: claim.id.clone() })
    }

    /// Notes what an operation under a claim says about it.
    fn noted<T>(
        &self,
        claim: &Claim,
        sent: Duration,
        result: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match &result {
            Ok(_) => self.confirmed(claim, sent),
            Err(StoreError::Fenced { .. } | StoreError::Replaced { .. }) => self.lose(claim),
            Err(_) => {}
        }
        result
    }

    /// Sends a heartbeat for claims, and notes those that were lost.
    async fn renew_all(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        let sent = self.time().now();
        let valid = Queue::heartbeat(&self.0.queue, claims).await?;
        let mut held = self.held();
        for claim in claims {
            let heartbeat = valid.iter().find(|heartbeat| heartbeat.claim == *claim);
            match (held.get_mut(&claim.fence), heartbeat) {
                (Some(held), Some(heartbeat)) => {
                    held.confirmed = held.confirmed.max(sent);
                    if heartbeat.is_woken {
                        held.woken.send_modify(|count| *count += 1);
                    }
                }
                (Some(held), None) => drop(held.lost.send_replace(true)),
                (None, _) => {}
            }
        }
        Ok(valid)
    }

    pub(super) async fn heartbeat_all(&self) -> Result<(), StoreError> {
        let claims = self.claims();
        if claims.is_empty() {
            return Ok(());
        }
        let first = claims.iter().filter_map(|claim| self.check(claim).ok()).min();
        first.into_iter().for_each(|confirmed| self.report_lease(LeaseCheck::Heartbeat, confirmed));
        self.renew_all(&claims).await.map(drop)
    }

    /// Looks repeatedly which lease is the last one: so often that a log whose worker is killed is claimed within a second after its lease.
    /// Never returns.
    pub(super) async fn watch_leases(&self) {
        loop {
            // Without an answer others' logs are taken over later. That the store cannot be reached is said by heartbeats.
            if let Ok(last) = Queue::last_lease(&self.0.queue).await {
                let now = self.time().now();
                self.leases().note(last, now);
            }
            self.time().sleep(LEASE / 40).await;
        }
    }

    /// Gives up claims that were not confirmed for long. Never returns.
    pub(super) async fn watch(&self) {
        loop {
            self.time().sleep(LEASE / 60).await;
            let now = self.time().now();
            for held in self.held().values().filter(|held| now.saturating_sub(held.confirmed) >= GIVE_UP) {
                held.lost.send_replace(true);
            }
        }
    }
}

impl StoreWrapper for WorkerStore {
    fn inner(&self) -> &AnyStore {
        self.0.queue.store()
    }
    fn as_queue(&self) -> Option<&dyn polylogue_core::DynQueue> {
        Some(self)
    }
    async fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        let sent = self.time().now();
        self.inner().create(id, meta).await.inspect(|claim| self.hold(claim, sent))
    }
    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        let sent = self.time().now();
        self.inner().claim(id).await.inspect(|claim| self.hold(claim, sent))
    }
    async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        let sent = self.time().now();
        self.inner().take_over(id).await.inspect(|claim| self.hold(claim, sent))
    }
    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        self.check(claim)?;
        let sent = self.time().now();
        let appended = self.inner().append(claim, batch).await;
        self.noted(claim, sent, appended)?;
        if let Some(held) = self.held().get_mut(&claim.fence) {
            held.has_progress = true;
        }
        Ok(())
    }
    async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        self.check(claim)?;
        let sent = self.time().now();
        let renewed = self.inner().renew(claim).await;
        self.noted(claim, sent, renewed)
    }
    async fn confirm(&self, claim: &Claim) -> Result<(), StoreError> {
        self.report_lease(LeaseCheck::Call, self.check(claim)?);
        loop {
            if self.time().now().saturating_sub(self.check(claim)?) < MAX_CONFIRMATION_AGE {
                return Ok(());
            }
            // Asked again if the answer took so long that it says nothing about now.
            self.renew_all(std::slice::from_ref(claim)).await?;
        }
    }
    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        if self.held().get(&claim.fence).is_some_and(|held| held.is_run) {
            // A log that is dropped: until when it rests is said by the worker, and must not be overtaken by this.
            return Ok(());
        }
        self.forget(&claim);
        self.inner().release(claim).await
    }
}

impl QueueWrapper for WorkerStore {
    async fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
        ended: LeaseNumber,
    ) -> Result<Vec<Claim>, StoreError> {
        let sent = self.time().now();
        let ended = ended.min(self.leases().ended(sent));
        let claims = Queue::claim_due(&self.0.queue, room, offers, except, ended).await?;
        claims.iter().for_each(|claim| self.hold(claim, sent));
        Ok(claims)
    }
    async fn release_until(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        self.forget(&claim);
        Queue::release_until(&self.0.queue, claim, due).await
    }
    async fn release_at_rest(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        if self.held().get(&claim.fence).is_some_and(|held| held.is_run) {
            // As a release: the worker says until when it rests.
            return Ok(());
        }
        self.forget(&claim);
        Queue::release_at_rest(&self.0.queue, claim, due).await
    }
    async fn release_failed(&self, claim: Claim, due: Due, why: &str) -> Result<(), StoreError> {
        self.forget(&claim);
        Queue::release_failed(&self.0.queue, claim, due, why).await
    }
    async fn release_to_others(&self, claim: Claim, why: &str) -> Result<(), StoreError> {
        self.forget(&claim);
        Queue::release_to_others(&self.0.queue, claim, why).await
    }
    async fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        self.renew_all(claims).await
    }
}
