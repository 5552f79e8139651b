//! What large results a conversation has stored: the account of their limits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Body, Event};
use crate::{BlobId, StoreError, StoredResult};

/// The reason why a result is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotStored {
    /// It is larger than [`StoredResult::MAX_BYTES`].
    #[error("results of more than {} MiB are not stored", StoredResult::MAX_BYTES >> 20)]
    TooLarge,
    /// The conversation has as many results as it may store, or as large ones.
    #[error(
        "a conversation stores {} results and {} MiB at most",
        StoredResult::MAX_COUNT,
        StoredResult::MAX_TOTAL_BYTES >> 20
    )]
    Full,
    /// The store cannot store results, or the tool runs outside of a conversation.
    #[error("the store of this conversation cannot store results")]
    Unsupported,
    /// The store failed.
    #[error("{0}")]
    Store(StoreError),
}

impl From<StoreError> for NotStored {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What this process has stored, so that calls at the same time do not exceed the limits together.
#[derive(Debug, Default)]
pub(super) struct ResultAccount(Mutex<Results>);

/// Results by id, with their sizes.
#[derive(Debug, Default)]
struct Results {
    all: BTreeMap<BlobId, u64>,
    /// How many events of the log are counted.
    known: usize,
}

impl ResultAccount {
    fn results(&self) -> MutexGuard<'_, Results> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves space for `stored` next to the results of the log `events`.
    pub(super) fn reserve(&self, events: &[Arc<Event>], stored: &StoredResult) -> Result<(), NotStored> {
        let Results { all, known } = &mut *self.results();
        all.extend(referred(events.get(*known..).unwrap_or_default()));
        *known = events.len();
        let total = all.values().fold(stored.bytes, |sum, bytes| sum.saturating_add(*bytes));
        if all.contains_key(&stored.id) {
            return Ok(());
        }
        if all.len() >= StoredResult::MAX_COUNT || total > StoredResult::MAX_TOTAL_BYTES {
            return Err(NotStored::Full);
        }
        all.insert(stored.id.clone(), stored.bytes);
        Ok(())
    }

    /// Releases what was reserved for a result that could not be stored, unless the log refers to it: that is counted again.
    pub(super) fn release(&self, id: &BlobId) {
        let mut results = self.results();
        results.all.remove(id);
        results.known = 0;
    }
}

/// The results to which `events` refer, and their sizes.
pub(super) fn referred(events: &[Arc<Event>]) -> BTreeMap<BlobId, u64> {
    let stored = events.iter().flat_map(|event| stored_in(&event.body));
    stored.map(|stored| (stored.id.clone(), stored.bytes)).collect()
}

/// Results that are stored next to a log: those to which an event refers.
fn stored_in(body: &Body) -> Option<&StoredResult> {
    match body {
        Body::ToolReturned { result: outcome, .. } => outcome.stored.as_ref(),
        _ => None,
    }
}
