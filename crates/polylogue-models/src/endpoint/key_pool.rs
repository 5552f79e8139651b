//! Several keys of one endpoint, used in turn.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use polylogue_http::Transport;

use crate::failure::{Failure, RetryAdvice};

/// One way to the endpoint for each of its keys. Whoever asks takes the next; a key without credit is left out from then on.
pub(super) struct KeyPool {
    ways: Vec<PooledKey>,
    next: AtomicUsize,
}

struct PooledKey {
    transport: Transport,
    is_spent: AtomicBool,
}

impl KeyPool {
    /// These, of which there is at least one.
    pub(super) fn new(transports: Vec<Transport>) -> Self {
        let way = |transport| PooledKey { transport, is_spent: AtomicBool::new(false) };
        Self { ways: transports.into_iter().map(way).collect(), next: AtomicUsize::new(0) }
    }

    /// The next way, and its number; none when all keys are spent.
    pub(super) fn next(&self) -> Option<(usize, &Transport)> {
        let begin = self.next.fetch_add(1, Ordering::Relaxed);
        let order = (0..self.ways.len()).map(|nth| begin.wrapping_add(nth) % self.ways.len());
        let mut left = order.filter_map(|nth| Some((nth, self.ways.get(nth)?)));
        left.find(|(_, way)| !way.is_spent.load(Ordering::Relaxed)).map(|(nth, way)| (nth, &way.transport))
    }

    /// Leaves a key out from now on, and says whether another is left. An only key is never left out: its account may be
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

    /// The failure of a call with the key `nth`, after which another may do better if this one has no credit.
    pub(super) fn but_for(&self, nth: usize, failure: Failure) -> Failure {
        match failure.again {
            RetryAdvice::Spent if self.spend(nth) => Failure { again: RetryAdvice::Now, ..failure },
            _ => failure,
        }
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.ways.len()
    }

    /// Any of them: all go to the same place.
    pub(super) fn any(&self) -> Option<&Transport> {
        self.ways.first().map(|way| &way.transport)
    }
}
