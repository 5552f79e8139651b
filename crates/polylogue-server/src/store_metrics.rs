//! How long the store takes, by operation, and what happens to claims: a slow disk or database is seen before conversations are. A worker
//! and a server have the same.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polylogue_core::{
    AnyQueue, AnyStore, Claim, DynQueue, Event, Features, Heartbeat, InboxMessage, LeaseNumber, ListQuery,
    LogId, Meta, Page, Queue, QueueWrapper, Store, StoreError, StoreWrapper,
};
use polylogue_runtime::worker::LeaseCheck;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    op: &'static str,
}

/// Counts of what happened at all stores since the process started. Clones share it.
#[derive(Clone, derive_more::Debug)]
#[debug("StoreMetrics {{ .. }}")]
pub struct StoreMetrics {
    seconds: Family<Operation, Histogram, fn() -> Histogram>,
    claims: Counter,
    takeovers: Counter,
    waited: Histogram,
    lost: Counter,
    refused: Counter,
    slack: Family<Slack, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Slack {
    at: &'static str,
}

/// Of the 30 seconds of a lease: a claim that has 6 left is confirmed before a call begins, and one that has 3 is given up.
fn slacks() -> Histogram {
    Histogram::new([0.0, 1.0, 3.0, 6.0, 10.0, 15.0, 18.0, 20.0, 25.0, 30.0])
}

/// From 0.1 ms to 3.3 s: a store on a local disk appends in less than a millisecond.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 2.0, 16))
}

/// From 1 ms to 17 min: a conversation may wait for a worker.
fn waits() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 21))
}

impl Default for StoreMetrics {
    /// Nothing is counted yet.
    fn default() -> Self {
        Self {
            seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            claims: Counter::default(),
            takeovers: Counter::default(),
            waited: waits(),
            lost: Counter::default(),
            refused: Counter::default(),
            slack: Family::new_with_constructor(slacks as fn() -> Histogram),
        }
    }
}

impl StoreMetrics {
    /// Counts how much of a lease was left.
    pub(crate) fn count_lease(&self, at: LeaseCheck, left: Duration) {
        let at = match at {
            LeaseCheck::Heartbeat => "heartbeat",
            LeaseCheck::Call => "call",
        };
        self.slack.get_or_create(&Slack { at }).observe(left.as_secs_f64());
    }

    /// Wraps `store`: its operations are timed and counted.
    pub fn metered(&self, store: AnyStore) -> AnyStore {
        AnyStore::new(MeteredStore { inner: store, metrics: self.clone() })
    }

    /// Adds them to `registry`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Time that an operation of the store took, failed ones too";
        registry.register_with_unit("store", help, Unit::Seconds, self.seconds.clone());
        let help = "Conversations that this process has claimed because they were due";
        registry.register("claims", help, self.claims.clone());
        let help = "Conversations that this process has taken over from one whose lease had expired";
        registry.register("claims_taken_over", help, self.takeovers.clone());
        let help =
            "Time from when a conversation became due, such as by an answer, until this process claimed it";
        registry.register_with_unit("claim_wait", help, Unit::Seconds, self.waited.clone());
        let help =
            "Claims that this process has lost: their leases had expired, or another process had taken them";
        registry.register("claims_lost", help, self.lost.clone());
        let help = "Appends that were refused, because the claim was lost";
        registry.register("appends_refused", help, self.refused.clone());
        let help = "How much of a lease was left when a worker sent heartbeats, and when a call began";
        registry.register_with_unit("lease_slack", help, Unit::Seconds, self.slack.clone());
    }

    async fn of<T>(&self, op: &'static str, operation: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let result = operation.await;
        self.seconds.get_or_create(&Operation { op }).observe(start.elapsed().as_secs_f64());
        result
    }

    fn count(&self, claims: &[Claim]) {
        for found in claims.iter().filter_map(|claim| claim.found) {
            self.claims.inc();
            self.takeovers.inc_by(u64::from(found.is_takeover));
            self.waited.observe(found.waited.as_secs_f64());
        }
    }
}

/// A store whose operations are timed and counted.
struct MeteredStore {
    inner: AnyStore,
    metrics: StoreMetrics,
}

impl MeteredStore {
    fn queue(&self) -> Result<AnyQueue, StoreError> {
        self.inner.queue().ok_or_else(AnyQueue::not_a_queue)
    }
}

impl StoreWrapper for MeteredStore {
    fn inner(&self) -> &AnyStore {
        &self.inner
    }

    fn as_queue(&self) -> Option<&dyn DynQueue> {
        Store::as_queue(&self.inner).map(|_| self as &dyn DynQueue)
    }

    async fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        self.metrics.of("create", self.inner.create(id, meta)).await
    }

    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        self.metrics.of("claim", self.inner.claim(id)).await
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let appended = self.metrics.of("append", self.inner.append(claim, batch)).await;
        if matches!(appended, Err(StoreError::Fenced { .. })) {
            self.metrics.refused.inc();
        }
        appended
    }

    async fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        self.metrics.of("read", self.inner.read(id, from)).await
    }

    async fn read_range(&self, id: &LogId, range: Range<u64>) -> Result<Vec<Event>, StoreError> {
        self.metrics.of("read", self.inner.read_range(id, range)).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        self.metrics.of("list", self.inner.list(query)).await
    }

    async fn reserve_key(&self, key: &str, request: &str) -> Result<String, StoreError> {
        self.metrics.of("reserve_key", self.inner.reserve_key(key, request)).await
    }

    async fn post(&self, id: &LogId, message: &InboxMessage) -> Result<u64, StoreError> {
        self.metrics.of("post", self.inner.post(id, message)).await
    }
}

impl QueueWrapper for MeteredStore {
    async fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
        ended: LeaseNumber,
    ) -> Result<Vec<Claim>, StoreError> {
        let queue = self.queue()?;
        let claimed = Queue::claim_due(&queue, room, offers, except, ended);
        let claims = self.metrics.of("claim_due", claimed).await?;
        self.metrics.count(&claims);
        Ok(claims)
    }

    async fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        let queue = self.queue()?;
        let valid = self.metrics.of("heartbeat", Queue::heartbeat(&queue, claims)).await?;
        self.metrics.lost.inc_by(claims.len().saturating_sub(valid.len()) as u64);
        Ok(valid)
    }
}
