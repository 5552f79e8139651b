//! Queues: logs that wait for workers, and when each must be looked at.

use std::future::Future;

use super::claim::Claim;
use super::due::{Due, Heartbeat, ParkedLog};
use super::dyn_queue::{Boxed, DynQueue};
use super::features::Features;
use super::overview::{QueueOverview, QueuedLog, WorkerInfo};
use super::store::{AnyStore, Store, StoreWrapper};
use crate::{LogId, StoreError};

/// A [`Store`] that knows which logs a worker must look at, and when.
///
/// A log has one due time at most, so that claim, lease, takeover, timer, retry and wake-up are one mechanism:
///
/// | state | due | leaves by |
/// |---|---|---|
/// | idle: no worker must look at it | never | [`schedule`](Self::schedule), an inbox message |
/// | timed | in the future | time, an inbox message |
/// | ready | now or past | [`claim_due`](Self::claim_due) |
/// | held | at the end of its lease | a release, the end of the lease |
/// | parked, after [`MAX_TRIES`](super::MAX_TRIES) tries without progress | never | [`schedule`](Self::schedule), an inbox message |
///
/// A new log is idle when its creator [releases](Store::release) it, and ready when its creator
/// [releases it until now](Self::release_until).
///
/// [`Store::post`] wakes a log: it is ready at once, and one that is held is ready again when it is released. Times are those of the
/// store's clock, not of workers.
///
/// A log that a process claims by its id, with [`Store::claim`], is not due until that claim is released or its lease expires. Releasing
/// it with [`Store::release`] leaves its due time as it was.
///
/// `polylogue_test::queue` has conformance tests for every queue.
pub trait Queue: Store {
    /// Claims logs that are due and need nothing but what the worker `offers`: those that have waited longest first, up to `room`;
    /// none if none is due. Logs of workers whose leases have expired are due. One that was claimed
    /// [`MAX_TRIES`](super::MAX_TRIES) times without an append or a release is parked instead.
    ///
    /// Read the log after this, not before.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn claim_due(
        &self,
        room: usize,
        offers: &Features,
    ) -> impl Future<Output = Result<Vec<Claim>, StoreError>> + Send;

    /// Releases a claim, and has the log looked at again at `due`, or at once if an inbox message came since it was claimed. Clears the
    /// count of its tries. A claim that was lost is left alone.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn release_until(&self, claim: Claim, due: Due) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// As [`release_until`](Self::release_until) for a log that could not be run, because of `why`: its tries still count, and after
    /// [`MAX_TRIES`](super::MAX_TRIES) of them without an append it is parked, whatever `due` is.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn release_failed(
        &self,
        claim: Claim,
        due: Due,
        why: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Has a log looked at at `due`, by workers that have what it `needs`; without a value, it needs what it needed before, at first
    /// nothing. One that is held stays so; unless `due` is [`Due::Never`], it is ready again when it is released. One that is parked
    /// is parked no more.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when the store cannot be written.
    fn schedule(
        &self,
        id: &LogId,
        due: Due,
        needs: Option<&Features>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Renews the leases of claims in one operation. Returns those that are still valid, in their order: what the others ran must
    /// stop, and append nothing.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn heartbeat(&self, claims: &[Claim]) -> impl Future<Output = Result<Vec<Heartbeat>, StoreError>> + Send;

    /// The parked logs, by their ids.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn parked(&self) -> impl Future<Output = Result<Vec<ParkedLog>, StoreError>> + Send;

    /// Says that this process is a worker, and is well. Workers repeat it as often as their heartbeats. Default: does nothing.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn announce(&self, worker: &WorkerInfo) -> impl Future<Output = Result<(), StoreError>> + Send {
        let _ = worker;
        async { Ok(()) }
    }

    /// Which workers there are, and which logs are not idle. Default: the parked ones.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn overview(&self) -> impl Future<Output = Result<QueueOverview, StoreError>> + Send {
        async {
            let logs = self.parked().await?.into_iter().map(QueuedLog::from).collect();
            Ok(QueueOverview { workers: Vec::new(), logs })
        }
    }
}

impl<Q: Queue> DynQueue for Q {
    fn claim_due<'a>(&'a self, room: usize, offers: &'a Features) -> Boxed<'a, Vec<Claim>> {
        Box::pin(Queue::claim_due(self, room, offers))
    }
    fn release_until(&self, claim: Claim, due: Due) -> Boxed<'_, ()> {
        Box::pin(Queue::release_until(self, claim, due))
    }
    fn release_failed<'a>(&'a self, claim: Claim, due: Due, why: &'a str) -> Boxed<'a, ()> {
        Box::pin(Queue::release_failed(self, claim, due, why))
    }
    fn schedule<'a>(&'a self, id: &'a LogId, due: Due, needs: Option<&'a Features>) -> Boxed<'a, ()> {
        Box::pin(Queue::schedule(self, id, due, needs))
    }
    fn heartbeat<'a>(&'a self, claims: &'a [Claim]) -> Boxed<'a, Vec<Heartbeat>> {
        Box::pin(Queue::heartbeat(self, claims))
    }
    fn parked(&self) -> Boxed<'_, Vec<ParkedLog>> {
        Box::pin(Queue::parked(self))
    }
    fn announce<'a>(&'a self, worker: &'a WorkerInfo) -> Boxed<'a, ()> {
        Box::pin(Queue::announce(self, worker))
    }
    fn overview(&self) -> Boxed<'_, QueueOverview> {
        Box::pin(Queue::overview(self))
    }
}

/// Any store that is a [`Queue`]. Cloning shares it.
#[derive(Debug, Clone)]
pub struct AnyQueue(AnyStore);

impl AnyStore {
    /// This store as a queue; `None` if it is none: workers cannot use it.
    #[must_use]
    pub fn queue(&self) -> Option<AnyQueue> {
        Store::as_queue(self).map(|_| AnyQueue(self.clone()))
    }
}

impl AnyQueue {
    /// Wraps `queue`, if it returns itself as a queue.
    pub fn new(queue: impl Queue) -> Option<Self> {
        AnyStore::new(queue).queue()
    }

    /// The store that it is.
    #[must_use]
    pub const fn store(&self) -> &AnyStore {
        &self.0
    }

    /// The error for a store that is no queue.
    #[must_use]
    pub fn none() -> StoreError {
        StoreError::Unsuitable {
            place: "the store".into(),
            why: "workers cannot ask it which conversations are due".into(),
            hint: "keep the conversations in an SQLite database or in Postgres".into(),
        }
    }

    fn queue(&self) -> Result<&dyn DynQueue, StoreError> {
        Store::as_queue(&self.0).ok_or_else(Self::none)
    }
}

impl StoreWrapper for AnyQueue {
    fn inner(&self) -> &AnyStore {
        &self.0
    }
}

impl Queue for AnyQueue {
    async fn claim_due(&self, room: usize, offers: &Features) -> Result<Vec<Claim>, StoreError> {
        self.queue()?.claim_due(room, offers).await
    }
    async fn release_until(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        self.queue()?.release_until(claim, due).await
    }
    async fn release_failed(&self, claim: Claim, due: Due, why: &str) -> Result<(), StoreError> {
        self.queue()?.release_failed(claim, due, why).await
    }
    async fn schedule(&self, id: &LogId, due: Due, needs: Option<&Features>) -> Result<(), StoreError> {
        self.queue()?.schedule(id, due, needs).await
    }
    async fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        self.queue()?.heartbeat(claims).await
    }
    async fn parked(&self) -> Result<Vec<ParkedLog>, StoreError> {
        self.queue()?.parked().await
    }
    async fn announce(&self, worker: &WorkerInfo) -> Result<(), StoreError> {
        self.queue()?.announce(worker).await
    }
    async fn overview(&self) -> Result<QueueOverview, StoreError> {
        self.queue()?.overview().await
    }
}
