//! Which leases have ended by the clock of this worker.

use std::collections::VecDeque;
use std::time::Duration;

use polylogue_core::{LEASE, LeaseNumber};

/// The last leases that there were, and when that was known: those of a lease ago have ended since, whatever the clock of the store says.
#[derive(Debug, Default)]
pub(super) struct SeenLeases(VecDeque<(Duration, LeaseNumber)>);

impl SeenLeases {
    /// The store has said, at `now` or before, that this lease was the last one.
    pub(super) fn note(&mut self, last: LeaseNumber, now: Duration) {
        if self.0.back().is_some_and(|(_, seen)| last < *seen) {
            // A copy of the store that lacks what was written last, such as a standby: its numbers are given again.
            self.0.clear();
        }
        self.forget_until(now);
        self.0.push_back((now, last));
    }

    /// The last of those that have ended at `now`.
    pub(super) fn ended(&mut self, now: Duration) -> LeaseNumber {
        self.forget_until(now);
        let first = self.0.front().filter(|(seen, _)| is_over(*seen, now));
        first.map_or(LeaseNumber::NONE, |(_, last)| *last)
    }

    /// Forgets all but the latest of those that have ended.
    fn forget_until(&mut self, now: Duration) {
        while self.0.get(1).is_some_and(|(seen, _)| is_over(*seen, now)) {
            self.0.pop_front();
        }
    }
}

fn is_over(seen: Duration, now: Duration) -> bool {
    now.saturating_sub(seen) >= LEASE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn leases_end_a_lease_after_they_were_seen() {
        let mut seen = SeenLeases::default();
        assert_eq!(seen.ended(at(1000)), LeaseNumber::NONE, "nothing was seen");
        for (second, last) in [(0, 5), (10, 5), (20, 8), (29, 9)] {
            seen.note(LeaseNumber(last), at(second));
        }
        let ended = [(29, 0), (30, 5), (49, 5), (50, 8), (58, 8), (59, 9), (1000, 9)];
        for (second, last) in ended {
            assert_eq!(seen.ended(at(second)), LeaseNumber(last), "after {second} s");
        }
    }

    #[test]
    fn numbers_that_are_given_again_say_nothing() {
        let mut seen = SeenLeases::default();
        seen.note(LeaseNumber(7), at(0));
        seen.note(LeaseNumber(6), at(40));
        assert_eq!(seen.ended(at(69)), LeaseNumber::NONE);
        assert_eq!(seen.ended(at(70)), LeaseNumber(6));
    }
}
