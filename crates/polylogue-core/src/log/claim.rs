//! Claims on logs.

use std::time::Duration;

use crate::LogId;

/// Duration of a claim without renewal, before another process can [take it over](super::Store::take_over).
pub const LEASE: Duration = Duration::from_secs(30);

/// The right to append to a log. Only one claim is valid at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The log.
    pub id: LogId,
    /// The fencing token: larger than that of earlier claims of the log. No claim of another log of the store has the same.
    pub fence: u64,
    /// The way in which it was found; `None` for a claim by its id.
    pub found: Option<FoundDue>,
}

/// The number of a lease: each lease that a queue grants or renews has a higher one than all before it.
///
/// By these numbers a worker tells that leases have ended: those up to the last one of [`LEASE`] ago, by its own clock. The clock of a
/// store alone does not tell, because it may jump while another worker relies on its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseNumber(pub u64);

impl LeaseNumber {
    /// Lower than that of every lease.
    pub const NONE: Self = Self(0);

    /// Higher than that of every lease.
    pub const ALL: Self = Self(u64::MAX);
}

/// How a worker found a log that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundDue {
    /// For how long it had been due, by the clock of the store.
    pub waited: Duration,
    /// Whether it was taken over from a process whose lease had expired.
    pub is_takeover: bool,
}

impl Claim {
    /// Creates a claim of the log `id`, by its id.
    pub const fn new(id: LogId, fence: u64) -> Self {
        Self { id, fence, found: None }
    }

    /// Sets how long the log had been due, or had been until it was taken over from another process.
    #[must_use]
    pub fn found_after(self, waited: Duration, is_takeover: bool) -> Self {
        Self { found: Some(FoundDue { waited, is_takeover }), ..self }
    }
}
