//! Chance that can be had again.

use std::time::Duration;

/// Numbers that look random and follow from a seed (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    /// From the seed of `POLYLOGUE_TEST_SEED`, or 1; prints it.
    pub(crate) fn of_environment() -> Self {
        let seed = std::env::var("POLYLOGUE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        println!("POLYLOGUE_TEST_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(crate) fn time_below(&mut self, limit: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(limit.as_micros()).unwrap()))
    }
}

/// What a process is killed after, and how long after.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// It was started: it opens its store, reads its log, or resumes.
    Start(Duration),
    /// It has sent so many requests: it waits for the reply or reads it.
    Request(usize, Duration),
    /// So many replies went out to it: it reads the last, writes it down, or continues.
    Reply(usize, Duration),
}

impl Moment {
    /// One in four soon after the start; the others move the conversation on, however slow the machine is.
    pub(crate) fn draw(random: &mut Random) -> Self {
        /// From the start of a process to somewhat after its first request.
        const STARTING: Duration = Duration::from_millis(60);
        /// From a request to somewhat after the next.
        const TURN: Duration = Duration::from_millis(30);
        /// From a quick reply to somewhat after the next request.
        const WRITING: Duration = Duration::from_millis(7);
        let nth = 1 + usize::try_from(random.below(4)).unwrap();
        match random.below(4) {
            0 => Self::Start(random.time_below(STARTING)),
            1 => Self::Request(nth, random.time_below(TURN)),
            _ => Self::Reply(nth, random.time_below(WRITING)),
        }
    }
}
