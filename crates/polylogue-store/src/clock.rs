//! The clock of a store, for leases and for what is due.

use std::fmt;
use std::sync::Arc;

use polylogue_core::Timestamp;

use crate::head::now_ms;

/// The time in milliseconds since 1970.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// Another one than that of the system. For tests.
    pub(crate) fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || clock().0))
    }

    pub(crate) fn now(&self) -> u64 {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self(Arc::new(now_ms))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
