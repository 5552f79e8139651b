//! Clients that wait for chat completions, and what their requests have begun, so that a client that tries again joins its run.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polylogue_core::LogId;
use tokio::time::Instant;

/// For how long a repeated request joins the run of the first.
const JOINS: Duration = Duration::from_mins(10);
/// The most requests that are remembered.
const MOST: usize = 1000;

/// A run, and where the response to a request begins in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) id: LogId,
    /// The first event.
    pub(crate) from: u64,
}

/// Requests and the responses that clients wait for.
#[derive(Default)]
pub(crate) struct Attendance {
    /// How many wait for each conversation.
    waiting: Mutex<HashMap<LogId, usize>>,
    /// By digests of token and request.
    begun: Mutex<VecDeque<(blake3::Hash, Instant, Begun)>>,
}

impl Attendance {
    pub(crate) fn waiting(&self) -> MutexGuard<'_, HashMap<LogId, usize>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self) -> MutexGuard<'_, VecDeque<(blake3::Hash, Instant, Begun)>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a request has begun.
    pub(crate) fn note(&self, request: blake3::Hash, run: &Begun) {
        let mut begun = self.begun();
        begun.retain(|(_, at, _)| at.elapsed() < JOINS);
        if begun.len() >= MOST {
            begun.pop_front();
        }
        begun.push_back((request, Instant::now(), run.clone()));
    }

    /// What the last equal request has begun.
    pub(crate) fn find(&self, request: &blake3::Hash) -> Option<Begun> {
        let begun = self.begun();
        let found = begun.iter().rev().find(|(of, at, _)| of == request && at.elapsed() < JOINS);
        found.map(|(_, _, run)| run.clone())
    }
}
