//! The conversations that a worker cannot run, and leaves to others for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use polylogue_core::LogId;

use super::release::{BACKOFF, backoff};

/// How many are remembered: each question for due conversations names them.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Unsuited {
    left: BTreeMap<LogId, Left>,
    /// Until when nothing is claimed, because one of more than can be remembered was left to others.
    full_until: Duration,
}

/// How often one was left to others in a row, and until when this worker does not claim it.
#[derive(Debug, Clone, Copy)]
struct Left {
    times: usize,
    until: Duration,
}

impl Unsuited {
    /// One cannot be run now: it is tried again after a pause that doubles each time.
    pub(super) fn note(&mut self, id: &LogId, now: Duration) {
        let times = self.left.get(id).map_or(0, |left| left.times) + 1;
        self.left.insert(id.clone(), Left { times, until: now + backoff(times) });
        if self.left.len() > MOST {
            // The one that is tried again first. It would be claimed again at once.
            let first = self.left.iter().min_by_key(|(_, left)| left.until).map(|(id, _)| id.clone());
            self.left.retain(|id, _| Some(id) != first.as_ref());
            self.full_until = now + BACKOFF.0;
        }
    }

    /// For how long nothing is claimed at `now`.
    pub(super) fn pause(&self, now: Duration) -> Option<Duration> {
        self.full_until.checked_sub(now).filter(|pause| !pause.is_zero())
    }

    /// One could be run.
    pub(super) fn forget(&mut self, id: &LogId) {
        self.left.remove(id);
    }

    /// Those that are not claimed at `now`. Forgets those that others have run long since.
    pub(super) fn at(&mut self, now: Duration) -> Vec<LogId> {
        self.left.retain(|_, left| now < left.until + BACKOFF.1);
        self.left.iter().filter(|(_, left)| now < left.until).map(|(id, _)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> LogId {
        LogId::new(&format!("log-{number}")).unwrap()
    }

    #[test]
    fn one_is_left_alone_for_longer_each_time() {
        let (mut unsuited, mut now) = (Unsuited::default(), Duration::ZERO);
        for seconds in [5, 10, 20, 40] {
            unsuited.note(&id(1), now);
            assert_eq!(unsuited.at(now + Duration::from_millis(seconds * 1000 - 1)), [id(1)]);
            now += Duration::from_secs(seconds);
            assert_eq!(unsuited.at(now), []);
        }
        assert_eq!(unsuited.pause(now), None);
        unsuited.forget(&id(1));
        unsuited.note(&id(1), now);
        assert_eq!(unsuited.at(now + BACKOFF.0), []);
    }

    #[test]
    fn the_number_of_those_that_are_remembered_is_bounded() {
        let mut unsuited = Unsuited::default();
        for number in 0..MOST * 2 {
            unsuited.note(&id(number), Duration::from_millis(number as u64));
        }
        let last = Duration::from_millis(MOST as u64 * 2 - 1);
        assert_eq!(unsuited.pause(last), Some(BACKOFF.0), "others are forgotten");
        assert_eq!(unsuited.pause(last + BACKOFF.0), None);
        let left = unsuited.at(Duration::from_secs(2));
        assert_eq!((left.len(), left.contains(&id(MOST)), left.contains(&id(MOST - 1))), (MOST, true, false));
        assert_eq!(unsuited.at(Duration::from_hours(1)), []);
        assert!(unsuited.left.is_empty());
    }
}
