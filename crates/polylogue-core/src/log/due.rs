//! When workers must look at a log, and what becomes of their claims.

use std::time::Duration;

use super::claim::Claim;
use super::clock::Timestamp;
use crate::LogId;

/// Maximum number of claims of a log without an append or a release before it is parked: it may be what kills its workers.
pub const MAX_TRIES: u32 = 5;

/// The time at which a worker must look at a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Only when a message or an answer comes.
    Never,
    /// Now.
    Now,
    /// After this much time, by the clock of the store.
    After(Duration),
    /// At this time, by the clock of the process that says so: what is left of it passes by the clock of the store.
    At(Timestamp),
}

impl Due {
    /// Returns the due time, given the time `now`; `None` if it is never.
    pub fn time(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Never => None,
            Self::Now => Some(now),
            Self::After(time) => {
                let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                Some(Timestamp(now.0.saturating_add(ms)))
            }
            Self::At(time) => Some(time),
        }
    }
}

/// A claim that is still valid, as [`Queue::heartbeat`](super::Queue::heartbeat) returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The claim.
    pub claim: Claim,
    /// Whether the inbox has messages that the log does not have, or the log was scheduled since it was claimed.
    pub is_woken: bool,
}

/// A log that no worker claims any more, because it failed repeatedly, or permanently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedLog {
    /// The id of the log.
    pub id: LogId,
    /// The worker that claimed it last, as [`StoreError::Busy`](crate::StoreError::Busy) names it.
    pub holder: String,
    /// How often it was claimed without progress; at least 1.
    pub tries: u32,
    /// Why the last try failed; `None` if its worker died.
    pub why: Option<String>,
}
