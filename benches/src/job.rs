//! What is measured, and what comes of it: told between the two processes as JSON.

use serde::{Deserialize, Serialize};

/// How many pieces a streamed reply has.
pub(crate) const PIECES: usize = 2_000;

/// A measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Where the endpoint is, without `/chat/completions`.
    pub(crate) base_url: String,
    /// What is done.
    pub(crate) what: What,
}

/// What is done.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum What {
    /// Nothing, to know what a process costs by itself.
    Nothing,
    /// So many chats of two agents one after the other, each of so many model calls.
    Calls { by: By, chats: u64, calls: u64 },
    /// So many chats of a single streamed reply, one after the other.
    Pieces { by: By, chats: u64, watched: bool },
    /// So many chats at the same time, each of so many model calls.
    Crowd { by: By, chats: u64, calls: u64 },
    /// One chat of so many messages, without an endpoint: its model is a function.
    Messages { count: u64 },
    /// So many groups of four at the same time, each of so many rounds, without an endpoint; `picked` if a model chooses
    /// each speaker.
    Groups { groups: u64, rounds: u64, picked: bool },
}

/// Who does it.
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

/// What a measurement cost, the start of its process and a first call to warm up left out.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// CPU time of all threads, in microseconds.
    pub(crate) cpu_us: f64,
    /// Time that passed, in microseconds.
    pub(crate) wall_us: f64,
    /// The most memory the process ever had, in KiB; `None` where the system does not tell.
    pub(crate) peak_kib: Option<u64>,
}
