//! Slots for conversations, which several workers of a process share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A limit on the conversations that several workers of one process run at the same time, all together, such as those of several
/// tenants: each conversation takes a slot. Cloning shares them.
///
/// Workers get slots in the order in which they ask: a worker with many conversations leaves some to the others.
#[derive(Debug, Clone)]
pub struct WorkerSlots(Arc<Semaphore>);

/// Slots that were taken, until they are dropped. `None` where none are needed.
pub(super) type Taken = Option<OwnedSemaphorePermit>;

impl WorkerSlots {
    /// Creates `count` slots; 0 means 1.
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Waits for a slot, and takes all that are free then, up to `most`.
    pub(super) async fn take(&self, most: usize) -> Taken {
        // They are never closed.
        let mut taken = Arc::clone(&self.0).acquire_owned().await.ok()?;
        let more = self.0.available_permits().min(most.saturating_sub(1));
        let more = Arc::clone(&self.0).try_acquire_many_owned(u32::try_from(more).unwrap_or(u32::MAX));
        // Another worker may have been faster.
        if let Ok(more) = more {
            taken.merge(more);
        }
        Some(taken)
    }
}
