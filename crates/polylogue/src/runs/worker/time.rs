//! The clock of a worker.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use polylogue_core::Timer;

/// A monotonic clock, and a timer. A worker uses them for nothing but its own pauses and the age of claims and leases: when something is due
/// is decided by the clock of the store.
#[derive(Clone, derive_more::Debug)]
#[debug("WorkerTime")]
pub struct WorkerTime {
    now: Arc<dyn Fn() -> Duration + Send + Sync>,
    timer: Timer,
}

impl WorkerTime {
    /// Creates a clock. `now` returns the time since any moment in the past; it must not go backwards.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static, timer: Timer) -> Self {
        Self { now: Arc::new(now), timer }
    }

    /// Returns the time since that moment.
    pub fn now(&self) -> Duration {
        (self.now)()
    }

    /// Waits for `time`.
    pub fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.timer.wait(time)
    }
}
