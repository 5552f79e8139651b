//! The time of events, and for how long a conversation has run.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::Timestamp;

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// For how long a conversation has run, in this process and in those before.
pub(super) struct Stopwatch {
    /// In those before.
    ran_ms: u64,
    since: Since,
}

enum Since {
    /// The log was opened.
    Opened(Instant),
    /// The clock was read first, which is not the system's.
    First(OnceLock<Timestamp>),
}

impl Stopwatch {
    /// Of a log that is opened now, whose conversation has run for `ran_ms` milliseconds.
    pub(super) fn opened(ran_ms: u64) -> Self {
        Self { ran_ms, since: Since::Opened(Instant::now()) }
    }

    /// The same by a clock that is not the system's: it runs from the first time that is read.
    pub(super) const fn by_another_clock(&self) -> Self {
        Self { ran_ms: self.ran_ms, since: Since::First(OnceLock::new()) }
    }

    /// The running time at `now`, in milliseconds.
    pub(super) fn at(&self, now: Timestamp) -> u64 {
        self.ran_ms.saturating_add(match &self.since {
            Since::Opened(opened) => u64::try_from(opened.elapsed().as_millis()).unwrap_or(u64::MAX),
            Since::First(first) => now.0.saturating_sub(first.get_or_init(|| now).0),
        })
    }
}

/// The system's clock.
pub(super) fn system_time() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
