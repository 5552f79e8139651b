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
        self.wait(&key).map_or(Ok(()), Err)?;
        let now = Instant::now();
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if full_at.len() >= KEYS {
            full_at.retain(|_, at| *at > now);
        }
        let at = full_at.entry(key).or_insert(now);
        *at = (*at).max(now) + self.interval;
        Ok(())
    }

    /// How long until one of `key` can be taken; `None` if it can be now.
    fn wait(&self, key: &K) -> Option<Duration> {
        let now = Instant::now();
        let full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let until_full = full_at.get(key).map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let wait = (until_full + self.interval).saturating_sub(self.interval.saturating_mul(self.burst));
        Some(wait).filter(|wait| !wait.is_zero())
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
}
