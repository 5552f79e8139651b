//! Rates: token buckets by key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many keys are remembered before those that are full again are forgotten.
const KEYS: usize = 4096;

/// A rate for each key: so many at once, and one more after each interval.
#[derive(Debug)]
pub(crate) struct Rates<K> {
    burst: u32,
    interval: Duration,
    /// When each key is full again.
    full_at: Mutex<HashMap<K, Instant>>,
}

impl<K: Eq + Hash> Rates<K> {
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        Self { burst: burst.max(1), interval, full_at: Mutex::default() }
    }

    /// Takes one of `key`.
    ///
    /// # Errors
    /// How long until there is one again.
    pub(crate) fn take(&self, key: K) -> Result<(), Duration> {
        let now = Instant::now();
        // Held until it is taken: many that come at once must not take the same one.
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let until_full = full_at.get(&key).map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let wait = (until_full + self.interval).saturating_sub(self.interval.saturating_mul(self.burst));
        if !wait.is_zero() {
            return Err(wait);
        }
        if full_at.len() >= KEYS {
            full_at.retain(|_, at| *at > now);
        }
        full_at.insert(key, now + until_full + self.interval);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_followed_by_the_rate() {
        let rates = Rates::new(3, Duration::from_millis(50));
        for _ in 0..3 {
            assert_eq!(rates.take("a"), Ok(()));
        }
        assert_eq!(rates.take("a"), Err(Duration::from_millis(50)));
        assert_eq!(rates.take("b"), Ok(()), "keys have rates of their own");
        tokio::time::advance(Duration::from_millis(50)).await;
        assert_eq!(rates.take("a"), Ok(()));
        assert!(rates.take("a").is_err());
        tokio::time::advance(Duration::from_secs(9)).await;
        for _ in 0..3 {
            assert_eq!(rates.take("a"), Ok(()), "it is full again, and no more than that");
        }
        assert!(rates.take("a").is_err());
    }

    #[test]
    fn many_at_once_take_no_more_than_the_burst() {
        let rates = Rates::new(5, Duration::from_secs(3600));
        let taken = std::thread::scope(|scope| {
            let take = || (0..10).filter(|_| rates.take("a").is_ok()).count();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
        });
        assert_eq!(taken, 5);
    }
}
