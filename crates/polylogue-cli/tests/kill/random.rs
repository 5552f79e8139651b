//! Chance that can be had again.

use std::time::Duration;

/// Choices that follow from a seed.
pub(crate) struct Random(polylogue_test::random::Random);

impl Random {
    /// From the seed of `POLYLOGUE_TEST_SEED`, or 1; prints it.
    pub(crate) fn of_environment() -> Self {
        let seed = std::env::var("POLYLOGUE_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        println!("POLYLOGUE_TEST_SEED={seed}");
        Self(polylogue_test::random::Random::new(seed))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
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
