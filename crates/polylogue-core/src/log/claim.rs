//! Claims on logs.

use std::time::Duration;

use crate::LogId;

/// How long a claim lasts without renewal, before another process can [take it over](super::Store::take_over).
pub const LEASE: Duration = Duration::from_secs(30);

/// The right to append to a log. Only one claim is valid at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The log.
    pub id: LogId,
    /// The fencing token: larger than that of earlier claims.
    pub fence: u64,
}
