//! Large results of tool calls, stored whole next to the log.

use std::sync::Arc;

use super::blobs::Blobs;
use super::result_account::NotStored;
use super::{Body, Event, Store as _};
use crate::{BlobId, Log, StoreError, StoredResult};

/// The large results that a conversation stores whole, as tools use them.
///
/// ```
/// # async fn example(cx: &polylogue_core::ToolCx<'_>) -> Result<(), Box<dyn std::error::Error>> {
/// use polylogue_core::ToolResult;
/// let text = "one line\n".repeat(100_000);
/// let stored = cx.results.store(&text).await?;
/// // Once the result is logged, the text can be read in any process.
/// let outcome = ToolResult::done(text).shortened(4_000, stored);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, derive_more::Debug)]
#[debug("StoredResults")]
pub struct StoredResults<'a>(Option<&'a Log>);

/// A stored result, read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredText {
    /// The text of the result.
    pub text: Arc<str>,
    /// The source of the content if it is from outside.
    pub outside: Option<Arc<str>>,
}

impl<'a> StoredResults<'a> {
    /// Creates results outside of a conversation: none can be stored.
    pub const fn none() -> Self {
        Self(None)
    }

    pub(crate) const fn of(log: &'a Log) -> Self {
        Self(Some(log))
    }

    /// Returns the blobs of the conversation.
    pub const fn blobs(&self) -> Blobs<'a> {
        Blobs(self.0)
    }

    /// Stores `text`. It is durable when this returns, and readable when the log has a result that refers to it.
    ///
    /// # Errors
    /// [`NotStored`]: the result is to be truncated instead.
    pub async fn store(&self, text: &str) -> Result<StoredResult, NotStored> {
        let log = self.0.ok_or(NotStored::Unsupported)?;
        let stored = StoredResult::of(text);
        if stored.bytes > StoredResult::MAX_BYTES {
            return Err(NotStored::TooLarge);
        }
        log.look(|events| log.results.reserve(events, &stored)).await?;
        match log.store.store_blob(&log.id, &stored.id, text.as_bytes()).await {
            Ok(true) => Ok(stored),
            failed => {
                log.results.release(&stored.id);
                Err(failed.err().map_or(NotStored::Unsupported, NotStored::Store))
            }
        }
    }

    /// Reads the result `id`; `None` unless a result in the log refers to it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read(&self, id: &BlobId) -> Result<Option<StoredText>, StoreError> {
        let Some(log) = self.0 else { return Ok(None) };
        let Some(outside) = log.look(|events| source_of(events, id)).await else { return Ok(None) };
        let Some(bytes) = log.store.stored_blob(&log.id, id).await? else { return Ok(None) };
        let text = std::str::from_utf8(&bytes).map_err(|error| StoreError::Io {
            place: format!("the stored result {id} of `{}`", log.id),
            why: error.to_string(),
        })?;
        Ok(Some(StoredText { text: text.into(), outside }))
    }
}

/// Where the result `id` is from, if an event refers to it.
fn source_of(events: &[Arc<Event>], id: &BlobId) -> Option<Option<Arc<str>>> {
    events.iter().rev().find_map(|event| match &event.body {
        Body::ToolReturned { result: outcome, .. } => {
            let is_it = outcome.stored.as_ref().is_some_and(|stored| stored.id == *id);
            is_it.then(|| outcome.outside.clone())
        }
        _ => None,
    })
}
