//! Claims that are renewed for as long as the program is well: by a task among those that run conversations, so that a program
//! that is stopped or hangs renews none of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use polylogue_core::{
    AnyQueue, AnyStore, Claim, Due, DynQueue, LEASE, LogId, Meta, QueueWrapper, Store as _, StoreError,
    StoreWrapper,
};
use tokio::task::AbortHandle;

/// A store whose claims are renewed until they are released.
pub(crate) struct LeaseRenewal {
    store: Arc<AnyStore>,
    held: HeldClaims,
    /// Renews what is held, from the first claim on.
    renews: Mutex<Option<AbortHandle>>,
}

type HeldClaims = Arc<Mutex<BTreeMap<u64, Claim>>>;

impl LeaseRenewal {
    pub(crate) fn of(store: AnyStore) -> AnyStore {
        AnyStore::new(Self { store: Arc::new(store), held: HeldClaims::default(), renews: Mutex::default() })
    }

    fn queue(&self) -> Result<&dyn DynQueue, StoreError> {
        self.store.as_queue().ok_or_else(AnyQueue::not_a_queue)
    }

    fn hold(&self, claim: Claim) -> Claim {
        locked(&self.held).insert(claim.fence, claim.clone());
        locked(&self.renews).get_or_insert_with(|| {
            tokio::spawn(renew(Arc::downgrade(&self.store), Arc::clone(&self.held))).abort_handle()
        });
        claim
    }
}

impl Drop for LeaseRenewal {
    fn drop(&mut self) {
        if let Some(task) = locked(&self.renews).take() {
            task.abort();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does not keep the store: it is closed when the program is done with it.
async fn renew(store: Weak<AnyStore>, held: HeldClaims) {
    loop {
        tokio::time::sleep(LEASE / 3).await;
        let Some(store) = store.upgrade() else { return };
        let claims: Vec<Claim> = locked(&held).values().cloned().collect();
        for claim in claims {
            // One that is lost is noticed by the next append, which says so.
            let _ = store.renew(&claim).await;
        }
    }
}

impl StoreWrapper for LeaseRenewal {
    fn inner(&self) -> &AnyStore {
        &self.store
    }
    fn as_queue(&self) -> Option<&dyn DynQueue> {
        self.store.as_queue().map(|_| self as &dyn DynQueue)
    }
    async fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        self.store.create(id, meta).await.map(|claim| self.hold(claim))
    }
    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        self.store.claim(id).await.map(|claim| self.hold(claim))
    }
    async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        self.store.take_over(id).await.map(|claim| self.hold(claim))
    }
    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        locked(&self.held).remove(&claim.fence);
        self.store.release(claim).await
    }
}

/// Claims of workers are not renewed here: workers send heartbeats for all of theirs.
impl QueueWrapper for LeaseRenewal {
    async fn release_until(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        locked(&self.held).remove(&claim.fence);
        self.queue()?.release_until(claim, due).await
    }
    async fn release_at_rest(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        locked(&self.held).remove(&claim.fence);
        self.queue()?.release_at_rest(claim, due).await
    }
    async fn release_failed(&self, claim: Claim, due: Due, why: &str) -> Result<(), StoreError> {
        locked(&self.held).remove(&claim.fence);
        self.queue()?.release_failed(claim, due, why).await
    }
    async fn release_to_others(&self, claim: Claim, why: &str) -> Result<(), StoreError> {
        locked(&self.held).remove(&claim.fence);
        self.queue()?.release_to_others(claim, why).await
    }
}
