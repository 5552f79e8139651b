//! The time of events, and the running time of a conversation.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// A clock: returns the time of day.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The running time of a conversation, over this process and earlier ones.
pub(super) struct Stopwatch {
    /// In earlier processes.
    ran_ms: u64,
    since: Since,
}

enum Since {
    /// Since the log was opened.
    Opened(Instant),
    /// Since the first reading of a custom clock.
    First(OnceLock<Timestamp>),
}

impl Stopwatch {
    /// Of a log that is opened now, whose conversation has run for `ran_ms` milliseconds.
    pub(super) fn opened(ran_ms: u64) -> Self {
        Self { ran_ms, since: Since::Opened(Instant::now()) }
    }

    /// The same with a custom clock: starts at the first time that is read.
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
