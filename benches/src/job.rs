//! The measurements and their results, passed between the two processes as JSON.

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;

/// Any error: a benchmark can only report it.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// The result of what can fail.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// The argument that makes this program serve teams.
pub(crate) const HOST: &str = "host";

/// Number of repetitions of every measurement, all of a table in turn. The minimum is reported: disturbances only add
/// to it.
pub(crate) const RUNS: usize = 5;

/// Number of deltas of a streamed reply.
pub(crate) const PIECES: usize = 2_000;

/// A measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The base address of the endpoint, without `/chat/completions`.
    pub(crate) base_url: String,
    /// The work.
    pub(crate) what: What,
}

/// The work to measure.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum What {
    /// Nothing, to measure the process itself.
    Nothing,
    /// Chats of two agents one after the other, each with a number of model calls.
    Calls { by: By, chats: u64, calls: u64 },
    /// Chats by one API, one after the other.
    Api { dialect: Dialect, chats: u64, calls: u64, stream: bool },
    /// Chats of a single streamed reply, one after the other.
    Pieces { by: By, chats: u64, watched: bool },
    /// Chats at the same time, each with a number of model calls.
    Crowd { by: By, chats: u64, calls: u64 },
    /// One scripted chat in SQLite by the runtime, without a server.
    Library,
    /// One chat with a number of messages, without an endpoint: its model is a function.
    Messages { count: u64 },
    /// Groups of four at the same time, each with a number of rounds, without an endpoint; `picked` if a model selects
    /// each speaker.
    Groups { groups: u64, rounds: u64, picked: bool },
}

/// The implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum By {
    /// The bare loop.
    Bare,
    /// Polylogue with its log in memory.
    Memory,
    /// Polylogue with its log in SQLite.
    Sqlite,
}

impl By {
    pub(crate) const ALL: [Self; 3] = [Self::Bare, Self::Memory, Self::Sqlite];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare loop",
            Self::Memory => "Polylogue, log in memory",
            Self::Sqlite => "Polylogue, log in SQLite",
        }
    }
}

/// The cost of a measurement, without process start and a first call to warm up.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// CPU time of all threads, in microseconds.
    pub(crate) cpu_us: f64,
    /// Wall-clock time, in microseconds.
    pub(crate) wall_us: f64,
    /// The peak memory of the process, in KiB; `None` where the system does not report it.
    pub(crate) peak_kib: Option<u64>,
}
