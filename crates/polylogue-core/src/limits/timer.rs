//! What waits for a time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

/// Waits for a time, by the clock of an async runtime. The kernel has none.
///
/// ```
/// # use std::time::Duration;
/// # use polylogue_core::{Limits, Log, Timer};
/// // Such as `Timer::new(tokio::time::sleep)`.
/// let timer = Timer::new(|time: Duration| async move { std::thread::sleep(time) });
/// let log = Log::in_memory().limits(Limits { time_ms: Some(60_000), ..Limits::default() }).timer(timer);
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("Timer")]
pub struct Timer(Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>);

impl Timer {
    /// Creates a timer whose futures are ready after the given time.
    pub fn new<F>(sleep: impl Fn(Duration) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(move |time| Box::pin(sleep(time))))
    }

    /// Waits for `time`.
    pub fn wait(&self, time: Duration) -> BoxFuture<'static, ()> {
        (self.0)(time)
    }
}
