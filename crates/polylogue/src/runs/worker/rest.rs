//! Until when a conversation rests.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{Body, Due, Error, Event, OpenQuestion, Result, Status, StoreError, Timestamp};

/// Until when a conversation that a worker has run rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// It is well: until then, or until an inbox message comes.
    Until(Due),
    /// It could not be run. It is tried again at `due`; after several times in a row without an event it is parked.
    Failed {
        /// When it is tried again.
        due: Due,
        /// Why it failed.
        why: String,
    },
    /// Its claim was lost: nothing is released.
    Lost,
}

/// The first and the longest pause after a failure.
pub const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(15));

/// The pause after so many failures in a row: doubles each time.
#[must_use]
pub fn backoff(failures: usize) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    BACKOFF.0.saturating_mul(factor).min(BACKOFF.1)
}

impl Rest {
    /// After a run of the log that has `events` ended with `status`.
    ///
    /// A conversation that is closed rests until an inbox message comes, one that waits for people until the first of its
    /// questions has its default answer, and one that a [drained](super::Claimed::is_draining) worker stopped is due at once.
    /// After a failed turn it is due after a pause that grows with the failures since the last reply of a model.
    #[must_use]
    pub fn after(status: &Result<Status>, events: &[Arc<Event>], is_draining: bool) -> Self {
        match status {
            Ok(Status::Closed { .. }) => Self::Until(Due::Never),
            Ok(Status::Waiting(_)) => {
                let until: Option<Timestamp> =
                    OpenQuestion::of(events).iter().filter_map(OpenQuestion::until).min();
                Self::Until(until.map_or(Due::Never, Due::At))
            }
            Ok(Status::Cancelled) if is_draining && !was_cancelled(events) => Self::Until(Due::Now),
            Ok(Status::Cancelled) => Self::Until(Due::Never),
            Err(error) if failures(events) > 0 && !is_of_store(error) => {
                Self::Until(Due::After(backoff(failures(events))))
            }
            Err(error) => Self::failed(error),
        }
    }

    /// A conversation that could not be opened, or failed without an event that says so.
    #[must_use]
    pub fn failed(error: &Error) -> Self {
        match error {
            Error::Store(StoreError::Fenced { .. } | StoreError::Replaced { .. }) => Self::Lost,
            Error::Within { error, .. } => Self::failed(error),
            error => Self::Failed { due: Due::After(BACKOFF.0), why: error.to_string() },
        }
    }
}

fn is_of_store(error: &Error) -> bool {
    match error {
        Error::Store(_) => true,
        Error::Within { error, .. } => is_of_store(error),
        _ => false,
    }
}

/// Whether an instruction has cancelled it after everything else.
fn was_cancelled(events: &[Arc<Event>]) -> bool {
    let is_cancelled = |event: &Arc<Event>| matches!(event.body, Body::Cancelled { .. });
    let last = events.iter().rposition(is_cancelled);
    last.is_some_and(|at| !events.iter().skip(at).any(|event| matches!(event.body, Body::TurnStarted { .. })))
}

/// Failed turns since the last reply of a model.
fn failures(events: &[Arc<Event>]) -> usize {
    let since = events.iter().rev().take_while(|event| !matches!(event.body, Body::ModelReplied(_)));
    since.filter(|event| matches!(event.body, Body::Failed { .. })).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let seconds: Vec<u64> = [0, 1, 2, 3, 8, 9, 100, usize::MAX].map(|n| backoff(n).as_secs()).to_vec();
        assert_eq!(seconds, [5, 5, 10, 20, 640, 900, 900, 900]);
    }
}
