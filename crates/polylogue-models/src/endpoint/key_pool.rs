//! Several keys of one endpoint, used in turn.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use polylogue_http::Transport;

use crate::failure::Failure;
use crate::retry::RetryAdvice;

/// A pool of keys, each with its transport. Requests use them in turn; a key without credit is no longer used.
pub(super) struct KeyPool {
    pool: Vec<PooledKey>,
    next: AtomicUsize,
}

struct PooledKey {
    transport: Transport,
    is_spent: AtomicBool,
}

impl KeyPool {
    /// A pool of at least one transport.
    pub(super) fn new(transports: Vec<Transport>) -> Self {
        let keyed = |transport| PooledKey { transport, is_spent: AtomicBool::new(false) };
        Self { pool: transports.into_iter().map(keyed).collect(), next: AtomicUsize::new(0) }
    }

    /// The transport of the key `bound` if it has credit left, because a conversation is bound to that; or else the
    /// next one. With its index; `None` if no key has credit left.
    pub(super) fn next(&self, bound: Option<usize>) -> Option<(usize, &Transport)> {
        let is_left = |keyed: &&PooledKey| !keyed.is_spent.load(Ordering::Relaxed);
        let bound = bound.and_then(|nth| Some((nth, self.pool.get(nth).filter(is_left)?)));
        if let Some((nth, keyed)) = bound {
            return Some((nth, &keyed.transport));
        }
        let begin = self.next.fetch_add(1, Ordering::Relaxed);
        let order = (0..self.pool.len()).map(|nth| begin.wrapping_add(nth) % self.pool.len());
        let mut left = order.filter_map(|nth| Some((nth, self.pool.get(nth)?)));
        left.find(|(_, keyed)| !keyed.is_spent.load(Ordering::Relaxed))
            .map(|(nth, keyed)| (nth, &keyed.transport))
    }

    /// Stops using a key, and returns whether another one is left. An only key stays in use: its account may be
    /// topped up.
    fn spend(&self, nth: usize) -> bool {
        if self.pool.len() < 2 {
            return false;
        }
        if let Some(keyed) = self.pool.get(nth) {
            keyed.is_spent.store(true, Ordering::Relaxed);
        }
        self.pool.iter().any(|keyed| !keyed.is_spent.load(Ordering::Relaxed))
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
        self.pool.len()
    }

    /// Any transport: all have the same address.
    pub(super) fn any(&self) -> Option<&Transport> {
        self.pool.first().map(|keyed| &keyed.transport)
    }
}
