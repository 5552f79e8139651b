//! Logs in memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::{
    AnyStore, Claim, Event, InboxMessage, ListQuery, Listing, LogId, Meta, Page, RecoveredEvents, ResultId,
    Store, StoreError, Summary,
};

use crate::head::{lease_from_now, now_ms};
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
    logs: Mutex<HashMap<LogId, Log>>,
}

#[derive(Debug)]
struct Log {
    meta: Meta,
    events: Vec<Arc<Event>>,
    inbox: Vec<InboxMessage>,
    results: HashMap<ResultId, Arc<str>>,
    summary: Summary,
    /// The fence of the valid claim, and when its lease expires.
    writer: Option<(u64, u64)>,
}

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn logs(&self) -> MutexGuard<'_, HashMap<LogId, Log>> {
        // No code of others runs under the lock, so that a panic leaves no log half changed.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn free(&self, id: &LogId) -> Result<(), StoreError> {
        match self.writer {
            None => Ok(()),
            Some(_) => Err(StoreError::Busy { id: id.clone(), holder: claims::this_process() }),
        }
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
        let fence = claims::next_fence();
        match self.logs().entry(id.clone()) {
            Entry::Occupied(_) => Err(StoreError::Exists { id: id.clone() }),
            Entry::Vacant(place) => {
                place.insert(Log {
                    meta: meta.clone(),
                    events: Vec::new(),
                    inbox: Vec::new(),
                    results: HashMap::new(),
                    summary: Summary::default(),
                    writer: Some((fence, lease_from_now())),
                });
                Ok(Claim { id: id.clone(), fence })
            }
        }
    }

    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        let mut logs = self.logs();
        let log = logs.get_mut(id).ok_or_else(|| not_found(id))?;
        log.free(id)?;
        let fence = claims::next_fence();
        log.writer = Some((fence, lease_from_now()));
        Ok(Claim { id: id.clone(), fence })
    }

    async fn holder(&self, id: &LogId) -> Result<Option<String>, StoreError> {
        let (logs, holder) = (self.logs(), claims::this_process());
        Ok(logs.get(id).ok_or_else(|| not_found(id))?.writer.map(|_| holder))
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let mut logs = self.logs();
        let log = logs.get_mut(&claim.id).ok_or_else(|| not_found(&claim.id))?;
        if log.writer.is_none_or(|(fence, _)| fence != claim.fence) {
            return Err(StoreError::Fenced { id: claim.id.clone() });
        }
        batch::follows(&claim.id, log.events.len() as u64, batch)?;
        log.writer = Some((claim.fence, lease_from_now()));
        let has_team = !log.meta.team.is_null();
        batch.iter().for_each(|event| log.summary.add(event, has_team));
        log.events.extend_from_slice(batch);
        Ok(())
    }

    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        if let Some(log) = self.logs().get_mut(&claim.id)
            && log.writer.is_some_and(|(fence, _)| fence == claim.fence)
        {
            log.writer = None;
        }
        Ok(())
    }

    async fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let shared = match self.logs().get(id) {
            Some(log) => log.events.get(from..).unwrap_or_default().to_vec(),
            None => return Err(not_found(id)),
        };
        // Cloned after the lock is released.
        Ok(shared.iter().map(|event| Event::clone(event)).collect())
    }

    async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        Ok(RecoveredEvents { events: self.read(id, 0).await?, damage: None })
    }

    async fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        self.logs().get(id).map(|log| log.meta.clone()).ok_or_else(|| not_found(id))
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
        };
        let mut listings: Vec<_> = self.logs().iter().map(listing).collect();
        batch::newest_first(&mut listings);
        Page::of(query, listings.into_iter().map(Ok))
    }

    async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        let mut logs = self.logs();
        logs.get(id).ok_or_else(|| not_found(id))?.free(id)?;
        logs.remove(id);
        Ok(())
    }

    async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        let mut logs = self.logs();
        let log = logs.get_mut(&claim.id).ok_or_else(|| not_found(&claim.id))?;
        match log.writer {
            Some((fence, _)) if fence == claim.fence => log.writer = Some((fence, lease_from_now())),
            _ => return Err(StoreError::Fenced { id: claim.id.clone() }),
        }
        Ok(())
    }

    async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        let mut logs = self.logs();
        let log = logs.get_mut(id).ok_or_else(|| not_found(id))?;
        if log.writer.is_some_and(|(_, lease_ms)| lease_ms > now_ms()) {
            log.free(id)?;
        }
        let fence = claims::next_fence();
        log.writer = Some((fence, lease_from_now()));
        Ok(Claim { id: id.clone(), fence })
    }

    async fn post(&self, id: &LogId, message: &InboxMessage) -> Result<u64, StoreError> {
        let mut logs = self.logs();
        let inbox = &mut logs.get_mut(id).ok_or_else(|| not_found(id))?.inbox;
        let at = inbox.iter().position(|earlier| earlier.key == message.key).unwrap_or_else(|| {
            inbox.push(message.clone());
            inbox.len() - 1
        });
        Ok(at as u64 + 1)
    }

    async fn inbox(&self, id: &LogId, after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        let logs = self.logs();
        let inbox = &logs.get(id).ok_or_else(|| not_found(id))?.inbox;
        Ok((1..).zip(inbox.iter().cloned()).filter(|(number, _)| *number > after).collect())
    }

    async fn store_result(&self, id: &LogId, result: &ResultId, text: &str) -> Result<bool, StoreError> {
        let mut logs = self.logs();
        let log = logs.get_mut(id).ok_or_else(|| not_found(id))?;
        log.results.entry(result.clone()).or_insert_with(|| text.into());
        Ok(true)
    }

    async fn stored_result(&self, id: &LogId, result: &ResultId) -> Result<Option<Arc<str>>, StoreError> {
        let logs = self.logs();
        Ok(logs.get(id).ok_or_else(|| not_found(id))?.results.get(result).cloned())
    }

    async fn repair(&self, id: &LogId) -> Result<u64, StoreError> {
        self.read(id, 0).await.map(|events| events.len() as u64)
    }
}
