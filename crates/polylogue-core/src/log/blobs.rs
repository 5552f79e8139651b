//! Blobs that a conversation stores next to its log.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::result_account::{NotStored, referred};
use super::{AnyStore, Body, Event, Store as _};
use crate::{BlobId, FileTree, Log, LogId, StoreError, StoredFiles};

/// The blobs of a conversation, as tools that keep files use them.
#[derive(Clone, Copy, derive_more::Debug)]
#[debug("Blobs")]
pub struct Blobs<'a>(pub(super) Option<&'a Log>);

impl Blobs<'_> {
    /// Stores `bytes`. They are durable when this returns.
    ///
    /// # Errors
    /// [`NotStored`], also outside of a conversation.
    pub async fn store(&self, bytes: &[u8]) -> Result<BlobId, NotStored> {
        let log = self.0.ok_or(NotStored::Unsupported)?;
        let id = BlobId::of(bytes);
        match log.store.store_blob(&log.id, &id, bytes).await? {
            true => Ok(id),
            false => Err(NotStored::Unsupported),
        }
    }

    /// Reads a blob of this conversation; `None` if it has none with this id.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn read(&self, id: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
        match self.0 {
            Some(log) => log.store.stored_blob(&log.id, id).await,
            None => Ok(None),
        }
    }

    /// Returns the files of the work directory after the last finished call that kept them.
    pub async fn last_files(&self) -> Option<StoredFiles> {
        self.0?.look(StoredFiles::last_of).await
    }
}

impl StoredFiles {
    /// Returns the files after the last finished call in `events` that kept them.
    pub fn last_of(events: &[Arc<Event>]) -> Option<Self> {
        events.iter().rev().find_map(|event| files_in(&event.body).cloned())
    }
}

fn files_in(body: &Body) -> Option<&StoredFiles> {
    match body {
        Body::ToolReturned { result: outcome, .. } => outcome.files.as_ref(),
        _ => None,
    }
}

impl AnyStore {
    /// Copies the blobs to which `events` refer from the log `from` to the log `to`, for a fork: large results, and files. Blobs that are
    /// lost stay lost.
    ///
    /// # Errors
    /// When one of the logs does not exist, or the store fails.
    pub async fn copy_blobs(
        &self,
        events: &[Arc<Event>],
        from: &LogId,
        (to_store, to): (&Self, &LogId),
    ) -> Result<(), StoreError> {
        let mut blobs: BTreeSet<BlobId> = referred(events).into_keys().collect();
        let trees: BTreeSet<&BlobId> =
            events.iter().filter_map(|event| files_in(&event.body)).map(|files| &files.tree).collect();
        for tree in trees {
            let bytes = self.stored_blob(from, tree).await?;
            let tree_of = bytes.and_then(|bytes| FileTree::from_bytes(&bytes).ok());
            blobs.extend(tree_of.iter().flat_map(FileTree::pieces).cloned());
            blobs.insert(tree.clone());
        }
        for id in blobs {
            if let Some(bytes) = self.stored_blob(from, &id).await? {
                to_store.store_blob(to, &id, &bytes).await?;
            }
        }
        Ok(())
    }
}
