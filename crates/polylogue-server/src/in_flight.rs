//! Requests that are under way, by what only one at a time may do: those with the same idempotency key, those that continue one history.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

/// Requests that are under way: a second one with the same key waits for the first.
#[derive(Default)]
pub(crate) struct InFlight(Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl InFlight {
    /// Waits until no other request has this key.
    pub(crate) async fn enter(&self, key: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, lock| lock.strong_count() > 0);
            let known = all.get(key).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let lock = Arc::default();
                all.insert(key.to_owned(), Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }
}
