//! How often a worker asks for conversations that are due.

use std::time::Duration;

/// The pauses between two queries for conversations that are due: short after something was found, and longer with each empty
/// answer. Each is shortened at random by up to a half, so that workers do not ask in step.
#[derive(Debug, Clone)]
pub struct Pace {
    shortest: Duration,
    longest: Duration,
    now: Duration,
    /// Whether the last answer filled all the room there was: there may be more.
    is_more: bool,
    random: u64,
}

impl Default for Pace {
    /// From 50 to 250 milliseconds.
    fn default() -> Self {
        Self::new(Duration::from_millis(50), Duration::from_millis(250), 0)
    }
}

impl Pace {
    /// Creates the default pace, with pauses that differ from those of processes with other numbers.
    pub fn of_process(number: u32) -> Self {
        Self { random: u64::from(number) * 2 + 1, ..Self::default() }
    }

    /// Creates a pace with pauses from `shortest` to `longest`. `seed` makes those of one worker differ from those of others.
    pub fn new(shortest: Duration, longest: Duration, seed: u64) -> Self {
        let random = seed.wrapping_mul(2).wrapping_add(1);
        Self { shortest, longest, now: shortest, is_more: true, random }
    }

    /// The next pause.
    pub(super) fn next(&mut self) -> Duration {
        if self.is_more {
            return Duration::ZERO;
        }
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let thousandths = u32::try_from((mixed ^ (mixed >> 27)) >> 40 & 511).unwrap_or_default() + 512;
        self.now * thousandths / 1024
    }

    /// `count` conversations were found, with room for `room`.
    pub(super) fn found(&mut self, count: usize, room: usize) {
        self.is_more = count > 0 && count >= room;
        self.now = if count > 0 { self.shortest } else { (self.now * 3 / 2).min(self.longest) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_nothing_is_found_and_differ_by_seed() {
        let pauses = |seed| {
            let mut pace = Pace::new(Duration::from_millis(50), Duration::from_millis(500), seed);
            assert_eq!(pace.next(), Duration::ZERO, "the first question comes at once");
            let next = |_| {
                pace.found(0, 8);
                pace.next()
            };
            (0..20).map(next).collect::<Vec<_>>()
        };
        let (one, other) = (pauses(1), pauses(2));
        assert_ne!(one, other);
        for pause in one.iter().chain(&other) {
            assert!((Duration::from_millis(25)..=Duration::from_millis(500)).contains(pause), "{pause:?}");
        }
        assert!(one.last() > one.first());
    }

    #[test]
    fn a_full_answer_is_followed_by_a_question_at_once_and_a_short_one_by_a_short_pause() {
        let mut pace = Pace::default();
        for _ in 0..20 {
            pace.found(0, 8);
        }
        pace.found(3, 8);
        assert!(pace.next() <= Duration::from_millis(50));
        pace.found(8, 8);
        assert_eq!(pace.next(), Duration::ZERO);
    }
}
