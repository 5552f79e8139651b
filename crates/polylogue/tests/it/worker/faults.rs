//! What happens to a simulated world from outside, made from its seed, and how it is broken.

use std::fmt;

/// Choices that follow from a seed.
#[derive(Debug, Clone)]
pub(crate) struct Random(polylogue_test::random::Random);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678);
        Self(polylogue_test::random::Random::new(seed))
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0.below(most)
    }

    pub(crate) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// What happens at a moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// The process of a worker is killed; another one starts soon after.
    Kill(usize),
    /// It stands still for so many milliseconds.
    Freeze(usize, u64),
    /// The clock of the database jumps by so many milliseconds.
    Jump(i64),
    /// A message is posted to a log.
    Post(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(worker) => write!(f, "worker {worker} | is killed"),
            Self::Freeze(worker, ms) => write!(f, "worker {worker} | stands still for {ms} ms"),
            Self::Jump(ms) => write!(f, "database | its clock jumps by {ms} ms"),
            Self::Post(log) => write!(f, "a person | posts a message to log-{log}"),
        }
    }
}

impl Fault {
    /// It, with less of it; `None` if there is none.
    pub(crate) fn smaller(&self) -> Option<Self> {
        match self {
            Self::Freeze(worker, ms) if *ms > 2_000 => Some(Self::Freeze(*worker, ms / 2)),
            Self::Jump(ms) if ms.abs() > 1_000 => Some(Self::Jump(ms / 2)),
            Self::Kill(_) | Self::Freeze(..) | Self::Jump(_) | Self::Post(_) => None,
        }
    }
}

/// Faults, each after so many milliseconds, in order.
pub(crate) type Script = Vec<(u64, Fault)>;

/// Until when faults happen, in milliseconds.
pub(crate) const STORMY: u64 = 150_000;

pub(crate) fn script(seed: u64, workers: usize, logs: usize) -> Script {
    let mut random = Random::new(seed);
    if seed % 4 == 3 {
        return jumps(&mut random, workers);
    }
    // Half of the worlds are quiet enough for long runs.
    let more = if random.one_in(2) { 8 } else { 37 };
    let mut script: Script = (0..4 + random.below(more))
        .map(|_| {
            let at = random.below(STORMY);
            let worker = random.below(workers as u64) as usize;
            let fault = match random.below(10) {
                0..=2 => Fault::Kill(worker),
                3..=5 => Fault::Freeze(worker, 1_000 + random.below(90_000)),
                6 => Fault::Jump(random.below(120_001) as i64 - 60_000),
                _ => Fault::Post(random.below(logs as u64) as usize),
            };
            (at, fault)
        })
        .collect();
    script.sort_by_key(|(at, _)| *at);
    script
}

/// Repeatedly, a worker stands still, for less than a lease, while the clock of the database jumps forward and back: leases seem to be
/// over that are not.
fn jumps(random: &mut Random, workers: usize) -> Script {
    let mut script = Script::new();
    for round in 0..STORMY / ROUND {
        let at = round * ROUND + random.below(2_000);
        let by = 30_000 + random.below(30_001) as i64;
        let frozen = Fault::Freeze(random.below(workers as u64) as usize, 8_000 + random.below(14_000));
        script.push((at, frozen));
        script.push((at + random.below(1_500), Fault::Jump(by)));
        script.push((at + 12_000, Fault::Jump(-by)));
    }
    script
}

/// How often, in milliseconds.
const ROUND: u64 = 15_000;

/// How a copy of the protocol is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It is not.
    Not,
    /// Appends do not check the fence.
    AppendWithoutFence,
    /// A log is read before its claim is granted.
    ReadBeforeClaim,
    /// A release forgets messages that came meanwhile.
    ReleaseForgetsMessages,
    /// Posting to a held log does not tell that it must be looked at again.
    PostForgetsTheHolder,
    /// Effects begin whatever the age of the claim.
    NoGuard,
    /// A message is deleted from the inbox before its event is appended.
    MessageDeletedBeforeAppend,
    /// The log does not say which messages it has.
    MessagesNotRemembered,
    /// An append does not clear the count of tries.
    TriesNeverCleared,
    /// Leases are counted by the clock of the worker.
    WorkersClock,
    /// Leases are counted by the clock of the database alone.
    DatabasesClock,
}
