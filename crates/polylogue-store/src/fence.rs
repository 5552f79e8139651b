//! Fencing tokens, which distinguish claims.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

static LAST: AtomicU64 = AtomicU64::new(0);

/// A number higher than all earlier ones of this process, and of earlier processes as far as the clock is right:
/// microseconds since 1970. So a claim of an earlier process or store is never mistaken for one of this store.
pub(crate) fn next() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
    let advance = |last: u64| now.max(last.saturating_add(1));
    let last = LAST.update(Ordering::Relaxed, Ordering::Relaxed, advance);
    advance(last)
}

#[cfg(test)]
mod tests {
    #[test]
    fn fence_numbers_only_increase() {
        let numbers: Vec<_> = (0..1000).map(|_| super::next()).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b));
    }
}
