//! Logs in memory.

mod due_index;
mod logs;
mod queue;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::{
    AnyStore, BlobId, Claim, DynQueue, Event, InboxMessage, LeaseNumber, ListQuery, Listing, LogId, Meta,
    Page, RecoveredEvents, Store, StoreError, Timestamp,
};

use self::logs::{GrantedLease, Log, Logs, ReservedKey};
use crate::clock::{Clock, reserved_until};
use crate::head::lease_from;
use crate::{batch, claims};

/// A store in memory, gone when it is dropped.
///
/// Events are shared with the caller, so that a log costs one pointer per event.
///
/// ```
/// use polylogue_core::{LogId, Meta, Store};
/// use polylogue_store::Memory;
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = Memory::new();
/// let claim = store.create(&LogId::new("draft")?, &Meta::default()).await?;
/// assert!(store.read(&claim.id, 0).await?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Memory {
    logs: Mutex<Logs>,
    clock: Clock,
    /// How many leases were granted or renewed.
    leases: AtomicU64,
}

impl Memory {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty store with a clock of its own, for leases and for what is due. For tests.
    pub fn with_clock(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { clock: Clock::new(clock), ..Self::default() }
    }

    fn now(&self) -> u64 {
        self.clock.now()
    }

    /// A lease that begins now.
    fn lease(&self) -> GrantedLease {
        let earlier = self.leases.fetch_add(1, Ordering::Relaxed);
        GrantedLease { until: lease_from(self.now()), number: LeaseNumber(earlier + 1) }
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        // No code of others runs under the lock, so that a panic leaves no log half changed.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(id: &LogId) -> StoreError {
    StoreError::NotFound { id: id.clone() }
}

impl From<Memory> for AnyStore {
    fn from(store: Memory) -> Self {
        Self::new(store)
    }
}

impl Store for Memory {
    async fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        let (fence, mut logs) = (claims::next_fence(), self.logs());
        if logs.by_id.contains_key(id) {
            return Err(StoreError::Exists { id: id.clone() });
        }
        let log = Log { meta: meta.clone(), writer: Some((fence, self.lease())), ..Log::default() };
        logs.by_id.insert(id.clone(), log);
        Ok(Claim::new(id.clone(), fence))
    }

    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        let mut logs = self.logs();
        logs.by_id.get(id).ok_or_else(|| not_found(id))?.free(id)?;
        let (fence, lease) = (claims::next_fence(), self.lease());
        logs.requeue(id, |log| log.writer = Some((fence, lease)));
        Ok(Claim::new(id.clone(), fence))
    }

    async fn holder(&self, id: &LogId) -> Result<Option<String>, StoreError> {
        let (logs, holder) = (self.logs(), claims::this_process());
        Ok(logs.by_id.get(id).ok_or_else(|| not_found(id))?.writer.map(|_| holder))
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let mut logs = self.logs();
        let log = logs.by_id.get_mut(&claim.id).ok_or_else(|| not_found(&claim.id))?;
        if !log.is_claimed_by(claim) {
            return Err(StoreError::Fenced { id: claim.id.clone() });
        }
        batch::follows(&claim.id, log.events.len() as u64, batch)?;
        let has_team = !log.meta.team.is_null();
        batch.iter().for_each(|event| log.summary.add(event, has_team));
        log.events.extend_from_slice(batch);
        log.queued.progressed();
        let lease = self.lease();
        logs.requeue(&claim.id, |log| {
            log.writer = Some((claim.fence, lease));
            batch.iter().filter_map(|event| event.inbox).for_each(|number| log.take_message(number));
        });
        Ok(())
    }

    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        let now = self.now();
        self.logs().end_claim(&claim, None, now);
        Ok(())
    }

    async fn read_range(&self, id: &LogId, range: Range<u64>) -> Result<Vec<Event>, StoreError> {
        let at = |seq: u64| usize::try_from(seq).unwrap_or(usize::MAX);
        let shared = match self.logs().by_id.get(id) {
            Some(log) => {
                let range = at(range.start)..at(range.end).min(log.events.len());
                log.events.get(range).unwrap_or_default().to_vec()
            }
            None => return Err(not_found(id)),
        };
        // Cloned after the lock is released.
        Ok(shared.iter().map(|event| Event::clone(event)).collect())
    }

    async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        Ok(RecoveredEvents { events: self.read(id, 0).await?, damage: None })
    }

    async fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        self.logs().by_id.get(id).map(|log| log.meta.clone()).ok_or_else(|| not_found(id))
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let listing = |(id, log): (&LogId, &Log)| Listing {
            id: id.clone(),
            title: log.meta.title.clone(),
            created: log.meta.created,
            has_team: !log.meta.team.is_null(),
            parent: log.meta.parent.clone(),
            summary: log.summary.clone(),
            is_damaged: false,
            is_archived: false,
        };
        let mut listings: Vec<_> =
            self.logs().by_id.iter().filter(|(id, _)| query.matches_id(id)).map(listing).collect();
        batch::newest_first(&mut listings);
        Page::of(query, listings.into_iter().map(Ok))
    }

    async fn count(&self) -> Result<u64, StoreError> {
        Ok(self.logs().by_id.len() as u64)
    }

    async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        let mut logs = self.logs();
        logs.by_id.get(id).ok_or_else(|| not_found(id))?.free(id)?;
        logs.remove(id);
        Ok(())
    }

    async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        let mut logs = self.logs();
        let log = logs.by_id.get(&claim.id).ok_or_else(|| not_found(&claim.id))?;
        if !log.is_claimed_by(claim) {
            return Err(StoreError::Fenced { id: claim.id.clone() });
        }
        let lease = self.lease();
        logs.requeue(&claim.id, |log| log.writer = Some((claim.fence, lease)));
        Ok(())
    }

    async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        let mut logs = self.logs();
        let log = logs.by_id.get(id).ok_or_else(|| not_found(id))?;
        if log.is_held(self.now()) {
            log.free(id)?;
        }
        let (fence, lease) = (claims::next_fence(), self.lease());
        logs.requeue(id, |log| log.writer = Some((fence, lease)));
        Ok(Claim::new(id.clone(), fence))
    }

    async fn post(&self, id: &LogId, message: &InboxMessage) -> Result<u64, StoreError> {
        let (now, mut logs) = (self.now(), self.logs());
        let inbox = &mut logs.by_id.get_mut(id).ok_or_else(|| not_found(id))?.inbox;
        if let Some(at) = inbox.iter().position(|earlier| earlier.key == message.key) {
            return Ok(at as u64 + 1);
        }
        inbox.push(message.clone());
        let number = inbox.len() as u64;
        if message.instruction.wakes() {
            logs.wake(id, number, now);
        }
        Ok(number)
    }

    async fn inbox(&self, id: &LogId, after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        let logs = self.logs();
        let inbox = &logs.by_id.get(id).ok_or_else(|| not_found(id))?.inbox;
        Ok((1..).zip(inbox.iter().cloned()).filter(|(number, _)| *number > after).collect())
    }

    async fn reserve_key(&self, key: &str, request: &str) -> Result<String, StoreError> {
        let (now, mut logs) = (self.now(), self.logs());
        logs.reserved_keys.retain(|_, reserved| reserved.until > now);
        let new = || ReservedKey { request: request.to_owned(), until: reserved_until(now) };
        Ok(logs.reserved_keys.entry(key.to_owned()).or_insert_with(new).request.clone())
    }

    async fn store_blob(&self, id: &LogId, blob: &BlobId, bytes: &[u8]) -> Result<bool, StoreError> {
        let mut logs = self.logs();
        let log = logs.by_id.get_mut(id).ok_or_else(|| not_found(id))?;
        log.blobs.entry(blob.clone()).or_insert_with(|| bytes.into());
        Ok(true)
    }

    async fn stored_blob(&self, id: &LogId, blob: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
        let logs = self.logs();
        Ok(logs.by_id.get(id).ok_or_else(|| not_found(id))?.blobs.get(blob).cloned())
    }

    async fn repair(&self, id: &LogId) -> Result<u64, StoreError> {
        self.read(id, 0).await.map(|events| events.len() as u64)
    }

    fn as_queue(&self) -> Option<&dyn DynQueue> {
        Some(self)
    }
}
