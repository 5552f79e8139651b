//! The clocks of a store: for what is due, and for leases.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{KEY_RESERVATION, Timestamp};
use rustix::time::{ClockId, clock_gettime};

use crate::head::now_ms;

type Milliseconds = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Two clocks: that of the system, which people set and which may jump, and one for leases, which does not.
#[derive(Clone, derive_more::Debug)]
#[debug("Clock")]
pub(crate) struct Clock {
    now: Milliseconds,
    steady: Milliseconds,
}

impl Clock {
    /// Another one than that of the system. For tests.
    pub(crate) fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(move || clock().0), ..Self::default() }
    }

    /// Another one for leases. For tests.
    pub(crate) fn with_steady(self, steady: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { steady: Arc::new(move || milliseconds(steady())), ..self }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        (self.now)()
    }

    /// Milliseconds since any time that is the same for all processes of this machine, until it is started again.
    pub(crate) fn steady(&self) -> u64 {
        (self.steady)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self { now: Arc::new(now_ms), steady: Arc::new(|| milliseconds(uptime())) }
    }
}

/// Returns the time since this machine was started, with that in which it was suspended: leases end meanwhile, and
/// `std::time::Instant` does not show that on Linux. It does not jump when the clock is set.
pub fn uptime() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// Until when a key is reserved that is reserved at `now`.
pub(crate) fn reserved_until(now: u64) -> u64 {
    now.saturating_add(milliseconds(KEY_RESERVATION))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
