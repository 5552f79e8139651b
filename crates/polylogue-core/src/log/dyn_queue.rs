//! The methods of queues, for queues of any type.

use std::future::Future;
use std::pin::Pin;

use super::claim::{Claim, LeaseNumber};
use super::due::{Due, Heartbeat, ParkedLog};
use super::features::Features;
use super::overview::{QueueOverview, WorkerInfo};
use crate::{LogId, StoreError};

pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A [`Queue`](super::Queue) of any type: what [`Store::as_queue`](super::Store::as_queue) returns. Every queue is one.
pub trait DynQueue: Send + Sync {
    /// [`Queue::claim_due`](super::Queue::claim_due).
    fn claim_due<'a>(
        &'a self,
        room: usize,
        offers: &'a Features,
        except: &'a [LogId],
        ended: LeaseNumber,
    ) -> Boxed<'a, Vec<Claim>>;
    /// [`Queue::last_lease`](super::Queue::last_lease).
    fn last_lease(&self) -> Boxed<'_, LeaseNumber>;
    /// [`Queue::release_until`](super::Queue::release_until).
    fn release_until(&self, claim: Claim, due: Due) -> Boxed<'_, ()>;
    /// [`Queue::release_at_rest`](super::Queue::release_at_rest).
    fn release_at_rest(&self, claim: Claim, due: Due) -> Boxed<'_, ()>;
    /// [`Queue::release_failed`](super::Queue::release_failed).
    fn release_failed<'a>(&'a self, claim: Claim, due: Due, why: &'a str) -> Boxed<'a, ()>;
    /// [`Queue::release_to_others`](super::Queue::release_to_others).
    fn release_to_others<'a>(&'a self, claim: Claim, why: &'a str) -> Boxed<'a, ()>;
    /// [`Queue::schedule`](super::Queue::schedule).
    fn schedule<'a>(&'a self, id: &'a LogId, due: Due, needs: Option<&'a Features>) -> Boxed<'a, ()>;
    /// [`Queue::set_needs`](super::Queue::set_needs).
    fn set_needs<'a>(&'a self, id: &'a LogId, needs: &'a Features) -> Boxed<'a, ()>;
    /// [`Queue::needs`](super::Queue::needs).
    fn needs<'a>(&'a self, id: &'a LogId) -> Boxed<'a, Features>;
    /// [`Queue::is_queued`](super::Queue::is_queued).
    fn is_queued<'a>(&'a self, id: &'a LogId) -> Boxed<'a, bool>;
    /// [`Queue::continue_if_lost`](super::Queue::continue_if_lost).
    fn continue_if_lost<'a>(&'a self, claim: &'a Claim) -> Boxed<'a, ()>;
    /// [`Queue::heartbeat`](super::Queue::heartbeat).
    fn heartbeat<'a>(&'a self, claims: &'a [Claim]) -> Boxed<'a, Vec<Heartbeat>>;
    /// [`Queue::parked`](super::Queue::parked).
    fn parked(&self) -> Boxed<'_, Vec<ParkedLog>>;
    /// [`Queue::announce`](super::Queue::announce).
    fn announce<'a>(&'a self, worker: Option<&'a WorkerInfo>) -> Boxed<'a, ()>;
    /// [`Queue::overview`](super::Queue::overview).
    fn overview(&self, most: usize) -> Boxed<'_, QueueOverview>;
}
