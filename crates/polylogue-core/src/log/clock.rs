//! The time of events, and the running time of a conversation.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 00:00 UTC.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Returns the time of day, by the system's clock.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock: returns the time of day.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The running time of a conversation, over this process and earlier ones.
pub(super) struct Stopwatch {
    /// In earlier processes.
    ran_ms: u64,
    since: Since,
    pauses: Mutex<Pauses>,
}

/// Pauses of a conversation, in milliseconds since it was opened.
#[derive(Debug, Clone, Copy, Default)]
struct Pauses {
    /// When the current one began.
    since: Option<u64>,
    /// The sum of those before.
    sum: u64,
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
        Self { ran_ms, since: Since::Opened(Instant::now()), pauses: Mutex::default() }
    }

    /// The same with a custom clock: starts at the first time that is read.
    pub(super) fn by_another_clock(&self) -> Self {
        Self { ran_ms: self.ran_ms, since: Since::First(OnceLock::new()), pauses: Mutex::default() }
    }

    /// The running time at `now`, in milliseconds.
    pub(super) fn at(&self, now: Timestamp) -> u64 {
        let pauses = *self.pauses();
        let ran = pauses.since.unwrap_or_else(|| self.since_opened(now)).saturating_sub(pauses.sum);
        self.ran_ms.saturating_add(ran)
    }

    /// Leaves out the time since the running time was `ran_ms`.
    pub(super) fn skip_to(&self, ran_ms: u64, now: Timestamp) {
        let idle = self.at(now).saturating_sub(ran_ms);
        let mut pauses = self.pauses();
        pauses.sum = pauses.sum.saturating_add(idle);
    }

    /// Stops at `now`, until [`start`](Self::start).
    pub(super) fn stop(&self, now: Timestamp) {
        let since = self.since_opened(now);
        self.pauses().since.get_or_insert(since);
    }

    /// Continues at `now`.
    pub(super) fn start(&self, now: Timestamp) {
        let opened = self.since_opened(now);
        let mut pauses = self.pauses();
        if let Some(since) = pauses.since.take() {
            pauses.sum = pauses.sum.saturating_add(opened.saturating_sub(since));
        }
    }

    fn since_opened(&self, now: Timestamp) -> u64 {
        match &self.since {
            Since::Opened(opened) => u64::try_from(opened.elapsed().as_millis()).unwrap_or(u64::MAX),
            Since::First(first) => now.0.saturating_sub(first.get_or_init(|| now).0),
        }
    }

    fn pauses(&self) -> MutexGuard<'_, Pauses> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
