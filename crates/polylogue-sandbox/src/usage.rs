//! How much a program uses at the moment.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{How, Sandbox};

/// How often the work directory is looked at.
const WATCH_DISK: Duration = Duration::from_millis(250);
/// How many entries of a directory are looked at: a program that makes more is taken to have filled the disk.
const MAX_ENTRIES: usize = 200_000;

/// Bytes on disk of all files in `dir`, links not followed; as much as can be when there are too many to count.
pub(crate) fn disk(dir: &Path) -> u64 {
    let (mut bytes, mut entries) = (0_u64, 0_usize);
    let mut open: VecDeque<PathBuf> = VecDeque::from([dir.to_owned()]);
    while let Some(dir) = open.pop_front() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MAX_ENTRIES {
                return u64::MAX;
            }
            // Of the entry itself: a link is not followed.
            let Ok(about) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(about.blocks() * 512);
            if about.is_dir() {
                open.push_back(entry.path());
            }
        }
    }
    bytes
}

/// Looks from time to time how much the work directory takes.
pub(crate) struct WatchDisk<'a> {
    sandbox: &'a Sandbox,
    since: Instant,
}

impl<'a> WatchDisk<'a> {
    pub(crate) fn new(sandbox: &'a Sandbox) -> Self {
        Self { sandbox, since: Instant::now() }
    }

    pub(crate) fn look(&mut self) -> Option<How> {
        self.look_besides(|| 0)
    }

    /// Adds what is not to be found in the directory.
    pub(crate) fn look_besides(&mut self, more: impl FnOnce() -> u64) -> Option<How> {
        if self.since.elapsed() < WATCH_DISK {
            return None;
        }
        let bytes = disk(self.sandbox.work()).saturating_add(more());
        self.since = Instant::now();
        (bytes > self.sandbox.limits().disk_bytes).then_some(How::TooMuchDisk)
    }
}

/// Bytes of memory and number of threads of all that the process `root` started. Zero where the system does not tell.
pub(crate) fn descendants(root: i32) -> (u64, u64) {
    let mut found: Vec<Process> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        found.extend(pid.and_then(process));
    }
    let mut ours = vec![root];
    let (mut bytes, mut threads) = (0_u64, 0_u64);
    while let Some(parent) = ours.pop() {
        for process in found.iter().filter(|process| process.parent == parent) {
            ours.push(process.pid);
            bytes = bytes.saturating_add(process.bytes);
            threads += process.threads;
        }
    }
    (bytes, threads)
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
