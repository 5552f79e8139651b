//! What of this machine models in the process use.

use candle_core::utils::get_num_threads;

/// The resources of this machine for models in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// The threads that compute: `RAYON_NUM_THREADS`, or one for each processor.
    pub threads: usize,
    /// The bytes of memory that the system reports as available now. `None` where it does not report any.
    pub available: Option<u64>,
}

impl Machine {
    /// Reads what this machine has now.
    pub fn now() -> Self {
        Self { threads: get_num_threads(), available: available() }
    }
}

fn available() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}
