//! Measures what this process consumes.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::job::Cost;

/// Measures from its creation.
pub(crate) struct Meter {
    cpu_us: f64,
    begun: Instant,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { cpu_us: cpu_us(), begun: Instant::now() }
    }

    /// The consumption since the start; memory since the process started.
    pub(crate) fn stop(&self) -> Cost {
        let wall_us = self.begun.elapsed().as_secs_f64() * 1e6;
        Cost { cpu_us: cpu_us() - self.cpu_us, wall_us, peak_kib: peak_kib() }
    }
}

/// CPU time of all threads of this process, from the kernel's own account in nanoseconds: `/proc/self/stat` and
/// `getrusage` may round to ticks.
#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 ns, which is 104 days")]
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// The high-water mark of resident memory, which only Linux reports this way.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_cpu_and_waiting_does_not() {
        let meter = Meter::start();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let waited = meter.stop();
        assert!(waited.wall_us >= 50_000.0 && waited.cpu_us < waited.wall_us, "{waited:?}");
        let meter = Meter::start();
        let mut sum = 0_u64;
        while meter.stop().cpu_us < 10_000.0 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(meter.stop().wall_us >= 9_000.0);
    }
}
