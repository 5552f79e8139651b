//! Large results of tool calls, stored whole next to the log.

use std::fmt;
use std::sync::Arc;

use super::result_account::{NotStored, referred};
use super::{AnyStore, Body, Event, Store as _};
use crate::{Log, LogId, ResultId, StoreError, StoredResult};

/// The large results that a conversation stores whole, as tools use them.
///
/// ```
/// # async fn example(cx: &polylogue_core::ToolCx<'_>) -> Result<(), Box<dyn std::error::Error>> {
/// use polylogue_core::Outcome;
/// let text = "one line\n".repeat(100_000);
/// let stored = cx.results.store(&text).await?;
/// // Once the outcome is logged, the text can be read in any process.
/// let outcome = Outcome::done(text).shortened(4_000, stored);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Results<'a>(Option<&'a Log>);

/// A stored result, read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredText {
    /// Its text.
    pub text: Arc<str>,
    /// The source of the content if it is from outside.
    pub outside: Option<Arc<str>>,
}

impl<'a> Results<'a> {
    /// Results outside of a conversation: none can be stored.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    pub(crate) const fn of(log: &'a Log) -> Self {
        Self(Some(log))
    }

    /// Stores `text`. It is durable when this returns, and readable when the log has an outcome that refers to it.
    ///
    /// # Errors
    /// [`NotStored`]: the result is to be truncated instead.
    pub async fn store(&self, text: &str) -> Result<StoredResult, NotStored> {
        let log = self.0.ok_or(NotStored::Unsupported)?;
        let stored = StoredResult::of(text);
        if stored.bytes > StoredResult::MAX_BYTES {
            return Err(NotStored::TooLarge);
        }
        let logged = log.look(referred).await;
        log.results.reserve(logged, &stored)?;
        match log.store.store_result(&log.id, &stored.id, text).await {
            Ok(true) => Ok(stored),
            failed => {
                log.results.release(&stored.id);
                Err(failed.err().map_or(NotStored::Unsupported, NotStored::Store))
            }
        }
    }

    /// Reads the result `id`; `None` unless an outcome in the log refers to it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read(&self, id: &ResultId) -> Result<Option<StoredText>, StoreError> {
        let Some(log) = self.0 else { return Ok(None) };
        let Some(outside) = log.look(|events| source_of(events, id)).await else { return Ok(None) };
        let text = log.store.stored_result(&log.id, id).await?;
        Ok(text.map(|text| StoredText { text, outside }))
    }
}

impl fmt::Debug for Results<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Results")
    }
}

/// Where the result `id` is from, if an event refers to it.
fn source_of(events: &[Arc<Event>], id: &ResultId) -> Option<Option<Arc<str>>> {
    events.iter().rev().find_map(|event| match &event.body {
        Body::ToolReturned { outcome, .. } => {
            let is_it = outcome.stored.as_ref().is_some_and(|stored| stored.id == *id);
            is_it.then(|| outcome.outside.clone())
        }
        _ => None,
    })
}

impl AnyStore {
    /// Copies the results to which `events` refer from the log `from` to the log `to`, for a fork. Results that are lost stay lost.
    ///
    /// # Errors
    /// When one of the logs does not exist, or the store fails.
    pub async fn copy_results(
        &self,
        events: &[Arc<Event>],
        from: &LogId,
        (to_store, to): (&Self, &LogId),
    ) -> Result<(), StoreError> {
        for id in referred(events).into_keys() {
            if let Some(text) = self.stored_result(from, &id).await? {
                to_store.store_result(to, &id, &text).await?;
            }
        }
        Ok(())
    }
}
