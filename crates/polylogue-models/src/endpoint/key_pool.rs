//! Several keys of one endpoint, used in turn.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use polylogue_http::Transport;

use crate::failure::Failure;
use crate::retry::RetryAdvice;

/// A pool of keys, each with its transport. Requests use them in turn; a key without credit is no longer used.
pub(super) struct KeyPool {
    ways: Vec<PooledKey>,
    next: AtomicUsize,
}

struct PooledKey {
    transport: Transport,
    is_spent: AtomicBool,
}

impl KeyPool {
    /// A pool of at least one transport.
    pub(super) fn new(transports: Vec<Transport>) -> Self {
        let way = |transport| PooledKey { transport, is_spent: AtomicBool::new(false) };
        Self { ways: transports.into_iter().map(way).collect(), next: AtomicUsize::new(0) }
    }

    /// The next transport and its index; `None` if no key has credit left.
    pub(super) fn next(&self) -> Option<(usize, &Transport)> {
        let begin = self.next.fetch_add(1, Ordering::Relaxed);
        let order = (0..self.ways.len()).map(|nth| begin.wrapping_add(nth) % self.ways.len());
        let mut left = order.filter_map(|nth| Some((nth, self.ways.get(nth)?)));
        left.find(|(_, way)| !way.is_spent.load(Ordering::Relaxed)).map(|(nth, way)| (nth, &way.transport))
    }

    /// Stops using a key, and returns whether another one is left. An only key stays in use: its account may be
    /// topped up.
    fn spend(&self, nth: usize) -> bool {
        if self.ways.len() < 2 {
            return false;
        }
        if let Some(way) = self.ways.get(nth) {
            way.is_spent.store(true, Ordering::Relaxed);
        }
        self.ways.iter().any(|way| !way.is_spent.load(Ordering::Relaxed))
    }

    /// The failure of a call with the key `nth`; retried with another key if this one has no credit.
    pub(super) fn but_for(&self, nth: usize, failure: Failure) -> Failure {
        match failure.again {
            RetryAdvice::Spent if self.spend(nth) => Failure { again: RetryAdvice::Now, ..failure },
            _ => failure,
        }
    }

    /// The number of keys.
    pub(super) fn len(&self) -> usize {
        self.ways.len()
    }

    /// Any transport: all have the same address.
    pub(super) fn any(&self) -> Option<&Transport> {
        self.ways.first().map(|way| &way.transport)
    }
}
