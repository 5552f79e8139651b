//! The lease of a claim, for renewing it.

use super::claim::Claim;
use super::store::{AnyStore, Store};
use crate::{Result, StoreError};

/// The claim of a [`Log`](crate::Log), for renewing it during a run: appending renews it too, but a turn may take
/// longer than [`LEASE`](crate::LEASE). A run whose lease has expired continues until another process takes it over.
#[derive(Debug, Clone)]
pub struct Lease {
    store: AnyStore,
    claim: Claim,
}

impl Lease {
    pub(super) const fn new(store: AnyStore, claim: Claim) -> Self {
        Self { store, claim }
    }

    /// Renews the lease.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when another process has taken over the log, [`StoreError::Replaced`] when the log was
    /// removed: later events are lost.
    pub async fn renew(&self) -> Result<(), StoreError> {
        self.store.renew(&self.claim).await
    }
}
