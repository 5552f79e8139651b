//! Rate limits and slots of model servers, which all processes with the same database share.
//!
//! Their commits are not synced: what a crash of the database loses is permissions of the last moment.

mod inner;
mod rates;
mod slots;

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{
    LearnedRates, LimitScope, LimitsFuture, RateDemand, RateGrant, SharedLimits, Slot, StoreError,
};
use tokio::runtime::Handle;

use self::inner::Inner;
use self::slots::Undelivered;
use crate::address::Address;
use crate::thread::Thread;

/// Rate limits and slots in Postgres: a [`SharedLimits`]. Statements run on a thread of its own.
#[derive(derive_more::Debug)]
#[debug("PostgresLimits {{ address: {:?}, .. }}", self.inner.database.address())]
pub struct PostgresLimits {
    thread: Thread,
    inner: Arc<Inner>,
}

impl PostgresLimits {
    /// Opens the limits in the database at `address`, which is connected to on first use.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn open(address: Address) -> Result<Self, StoreError> {
        let thread = Thread::start("polylogue-limits", &address)?;
        let inner = Arc::new(Inner::new(address));
        thread.handle.spawn(Inner::renew_slots(Arc::downgrade(&inner)));
        Ok(Self { thread, inner })
    }

    /// Runs an operation on the thread of the limits.
    fn run<T, F>(&self, operation: impl FnOnce(Arc<Inner>) -> F) -> LimitsFuture<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        Box::pin(self.thread.run(operation(Arc::clone(&self.inner))))
    }
}

impl SharedLimits for PostgresLimits {
    fn draw<'a>(&'a self, scope: &'a LimitScope, demand: RateDemand) -> LimitsFuture<'a, RateGrant> {
        let scope = scope.clone();
        self.run(|inner| async move { inner.draw(&scope, demand).await })
    }

    fn learn<'a>(&'a self, scope: &'a LimitScope, rates: LearnedRates) -> LimitsFuture<'a, ()> {
        let scope = scope.clone();
        self.run(|inner| async move { inner.learn(&scope, rates).await })
    }

    fn block<'a>(&'a self, scope: &'a LimitScope, wait: Duration) -> LimitsFuture<'a, ()> {
        let scope = scope.clone();
        self.run(|inner| async move { inner.block(&scope, wait).await })
    }

    fn blocked<'a>(&'a self, scope: &'a LimitScope) -> LimitsFuture<'a, Duration> {
        let scope = scope.clone();
        self.run(|inner| async move { inner.blocked(&scope).await })
    }

    fn take_slot<'a>(&'a self, scope: &'a LimitScope, slots: u32) -> LimitsFuture<'a, Option<Slot>> {
        let scope = scope.clone();
        let taken = self.run(|inner| async move {
            let slot = inner.take_slot(&scope, slots).await?;
            Ok(Undelivered { inner, slot, handle: Handle::current() })
        });
        // One whose caller has given up is freed.
        Box::pin(async move { taken.await.map(Undelivered::deliver) })
    }

    fn free(&self, slot: Slot) {
        let inner = Arc::clone(&self.inner);
        // If this is dropped before, its lease expires.
        self.thread.handle.spawn(async move { inner.free(&slot).await });
    }
}
