//! How busy the machine and the database are, as Linux counts it. Elsewhere these are unknown.

use std::fs;
use std::path::Path;

/// Processor time in ticks: of all processors, and what of it they were busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticks {
    busy: u64,
    all: u64,
}

/// Ticks of a second in `/proc`: the same on all architectures that Rust's standard library supports on Linux.
const TICKS: f64 = 100.0;

impl Ticks {
    /// Since the machine started.
    pub(super) fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// `cpu user nice system idle iowait irq softirq steal ...`
    fn of(stat: &str) -> Option<Self> {
        let mut fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(str::parse::<u64>);
        let mut take = || fields.next()?.ok();
        let (user, nice, system, idle, waiting) = (take()?, take()?, take()?, take()?, take()?);
        let busy = user + nice + system + take()? + take()? + take()?;
        Some(Self { busy, all: busy + idle + waiting })
    }

    /// The busy share of the time since `earlier`.
    #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
    pub(super) fn busy_since(self, earlier: Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all).max(1);
        self.busy.saturating_sub(earlier.busy) as f64 / all as f64
    }
}

/// The processor time of the database server whose data are in this folder, with all its processes, in seconds.
#[expect(clippy::cast_precision_loss, reason = "counts of ticks")]
pub(super) fn database_seconds(data: &Path) -> Option<f64> {
    let file = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let server: u64 = file.lines().next()?.trim().parse().ok()?;
    let mut ticks = 0;
    for process in fs::read_dir("/proc").ok()?.flatten() {
        // A process may end before its file is read; its server counts it then.
        let Some(times) = fs::read_to_string(process.path().join("stat")).ok().and_then(|stat| times(&stat))
        else {
            continue;
        };
        if times.id == server {
            ticks += times.own + times.of_ended;
        } else if times.parent == server {
            ticks += times.own;
        }
    }
    Some(ticks as f64 / TICKS)
}

/// Of a process: its own ticks, and those of its children that have ended.
#[derive(Debug, PartialEq, Eq)]
struct Times {
    id: u64,
    parent: u64,
    own: u64,
    of_ended: u64,
}

/// `ID (name) state parent ...`; a name may contain anything.
fn times(stat: &str) -> Option<Times> {
    let id = stat.split_once(' ')?.0.parse().ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
    let (own, of_ended) = (number(11)? + number(12)?, number(13)? + number(14)?);
    Some(Times { id, parent: number(1)?, own, of_ended })
}

/// The mean number of processes that wanted a processor in the last minute.
pub(super) fn load() -> Option<String> {
    Some(fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_share_is_what_is_neither_idle_nor_waiting() {
        let before = Ticks::of("cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 ...\n").unwrap();
        let after = Ticks::of("cpu  20 5 15 120 10 3 4 3 0 0\ncpu0 ...\n").unwrap();
        assert_eq!(after.busy_since(before), 0.5);
        assert_eq!(Ticks::of("intr 1 2 3"), None);
    }

    #[test]
    fn times_are_read_behind_a_name_with_spaces_and_brackets() {
        let stat = "12 (a) R 9 (b) S 7 12 12 0 -1 4194304 100 0 0 0 30 12 5 6 20 0 1 0 77 1 1";
        assert_eq!(times(stat), Some(Times { id: 12, parent: 7, own: 42, of_ended: 11 }));
        assert_eq!(times("12 (a) S"), None);
    }
}
