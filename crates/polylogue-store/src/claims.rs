//! What claims on logs have in every store: fencing tokens, the name of the holder, and the release of lost claims.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use polylogue_core::Claim;

/// The last fencing token.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A number higher than all earlier ones of this process, and of earlier processes as far as the clock is right:
/// microseconds since 1970. So a claim of an earlier process or store is never mistaken for one of this store.
pub(crate) fn next_fence() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
    let advance = |last: u64| now.max(last.saturating_add(1));
    let last = LAST.update(Ordering::Relaxed, Ordering::Relaxed, advance);
    advance(last)
}

/// Returns this process as `process 4711 on atlas`.
///
/// The machine is named because process numbers mean nothing across containers that share a folder.
pub fn this_process() -> String {
    let machine = fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| fs::read_to_string("/etc/hostname"))
        .unwrap_or_else(|_| std::env::var("HOSTNAME").unwrap_or_default());
    let pid = std::process::id();
    match machine.trim() {
        "" => format!("process {pid}"),
        machine => format!("process {pid} on {machine}"),
    }
}

/// Returns the holder of a claim with the rest of its lease.
pub fn with_lease(holder: &str, lease_s: Option<u64>) -> String {
    let holder = if holder.is_empty() { "another process" } else { holder };
    match lease_s {
        Some(seconds) => format!("{holder}, whose lease expires in {seconds} s"),
        None => format!("{holder}, whose lease has expired"),
    }
}

type Release = Box<dyn FnOnce(&Claim) + Send>;

/// A claim that is released if the caller does not receive it, because its future was dropped.
#[derive(derive_more::Debug)]
#[debug("ClaimGuard {{ claim: {claim:?}, .. }}")]
pub struct ClaimGuard {
    claim: Claim,
    release: Option<Release>,
}

impl ClaimGuard {
    /// Creates a guard, which calls `release` unless the claim is accepted.
    pub fn new(claim: Claim, release: impl FnOnce(&Claim) + Send + 'static) -> Self {
        Self { claim, release: Some(Box::new(release)) }
    }

    /// Notes that the caller has received the claim.
    #[must_use]
    pub fn accept(mut self) -> Claim {
        self.release = None;
        self.claim.clone()
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release(&self.claim);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fence_numbers_only_increase() {
        let numbers: Vec<_> = (0..1000).map(|_| super::next_fence()).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b));
    }
}
