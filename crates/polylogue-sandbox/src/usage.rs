//! The current usage of a program.

use std::collections::HashMap;

/// The processes that a process started.
#[derive(Default)]
pub(crate) struct Descendants {
    /// Bytes of memory.
    pub(crate) bytes: u64,
    /// Their number, each thread counted.
    pub(crate) threads: u64,
    pub(crate) processes: Vec<i32>,
}

/// The processes that `root` started; none where `/proc` is not available.
pub(crate) fn descendants(root: i32) -> Descendants {
    let mut found: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(process) = pid.and_then(process) {
            found.entry(process.parent).or_default().push(process);
        }
    }
    let mut ours = Descendants::default();
    for process in below(root, found) {
        ours.processes.push(process.pid);
        ours.bytes = ours.bytes.saturating_add(process.bytes).saturating_add(page_tables(process.pid));
        ours.threads += process.threads;
    }
    ours
}

/// The processes below `root`, from all by their parents. Each is taken once: they are read one after the other, and ids are used
/// again meanwhile, so that two can have each other as parents.
fn below(root: i32, mut found: HashMap<i32, Vec<Process>>) -> impl Iterator<Item = Process> {
    let mut open = found.remove(&root).unwrap_or_default();
    std::iter::from_fn(move || {
        let next = open.pop()?;
        open.extend(found.remove(&next.pid).unwrap_or_default());
        Some(next)
    })
}

/// Bytes of the page tables of a process, which can be large even if it uses little memory.
fn page_tables(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("VmPTE:"));
    let kib = field.and_then(|field| field.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or_default().saturating_mul(1024)
}

struct Process {
    pid: i32,
    parent: i32,
    threads: u64,
    bytes: u64,
}

/// Of `/proc/PID/stat`: fields 4, 20 and 24, counted from 1; the second is a name in parentheses that may hold anything.
fn process(pid: i32) -> Option<Process> {
    /// Bytes of a page on most machines; on the others too little is counted, never too much.
    const PAGE: u64 = 4096;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let field = |nth: usize| rest.split(' ').nth(nth - 3);
    let parent = field(4)?.parse().ok()?;
    let threads = field(20)?.parse().ok()?;
    let pages: u64 = field(24)?.parse().ok()?;
    Some(Process { pid, parent, threads, bytes: pages.saturating_mul(PAGE) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_once_even_in_a_circle() {
        let pids = |root: i32, all: &[(i32, i32)]| -> Vec<i32> {
            let mut found: HashMap<i32, Vec<Process>> = HashMap::new();
            for (pid, parent) in all.iter().copied() {
                found.entry(parent).or_default().push(Process { pid, parent, threads: 1, bytes: 1 });
            }
            let mut pids: Vec<i32> = below(root, found).take(10).map(|process| process.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(1, &[(2, 1), (3, 2), (4, 2), (5, 9)]), [2, 3, 4]);
        assert_eq!(pids(5, &[(7, 5), (5, 7)]), [5, 7]);
    }
}
