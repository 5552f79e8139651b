//! Logs without a store: their events are only in their own buffer.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Claim, InboxMessage, ListQuery, Meta, Page, RecoveredEvents, Store};
use crate::{BlobId, Event, LogId, StoreError};

/// The store of a log that is gone when it is dropped. The log's buffer has all events, so there are never more to
/// read.
#[derive(Default)]
pub(super) struct InMemory {
    blobs: Mutex<BTreeMap<BlobId, Arc<[u8]>>>,
}

impl InMemory {
    fn blobs(&self) -> MutexGuard<'_, BTreeMap<BlobId, Arc<[u8]>>> {
        self.blobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn claim() -> Claim {
        Claim::new(LogId::in_memory(), 0)
    }
}

fn not_found<T>(id: &LogId) -> Result<T, StoreError> {
    Err(StoreError::NotFound { id: id.clone() })
}

impl Store for InMemory {
    async fn create(&self, id: &LogId, _: &Meta) -> Result<Claim, StoreError> {
        not_found(id)
    }
    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        not_found(id)
    }
    async fn holder(&self, id: &LogId) -> Result<Option<String>, StoreError> {
        not_found(id)
    }
    async fn append(&self, _: &Claim, _: &[Arc<Event>]) -> Result<(), StoreError> {
        Ok(())
    }
    async fn release(&self, _: Claim) -> Result<(), StoreError> {
        Ok(())
    }
    async fn read_range(&self, _: &LogId, _: Range<u64>) -> Result<Vec<Event>, StoreError> {
        Ok(Vec::new())
    }
    async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        not_found(id)
    }
    async fn meta(&self, _: &LogId) -> Result<Meta, StoreError> {
        Ok(Meta::default())
    }
    async fn list(&self, _: &ListQuery) -> Result<Page, StoreError> {
        Ok(Page::default())
    }
    async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        not_found(id)
    }
    async fn renew(&self, _: &Claim) -> Result<(), StoreError> {
        Ok(())
    }
    async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        not_found(id)
    }
    async fn post(&self, id: &LogId, _: &InboxMessage) -> Result<u64, StoreError> {
        not_found(id)
    }
    async fn inbox(&self, _: &LogId, _: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        Ok(Vec::new())
    }
    // Nothing but the run of this log uses the store, and it reserves no keys.
    async fn reserve_key(&self, _: &str, request: &str) -> Result<String, StoreError> {
        Ok(request.to_owned())
    }
    async fn store_blob(&self, _: &LogId, blob: &BlobId, bytes: &[u8]) -> Result<bool, StoreError> {
        self.blobs().entry(blob.clone()).or_insert_with(|| bytes.into());
        Ok(true)
    }
    async fn stored_blob(&self, _: &LogId, blob: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
        Ok(self.blobs().get(blob).cloned())
    }
    async fn repair(&self, _: &LogId) -> Result<u64, StoreError> {
        Ok(0)
    }
}
