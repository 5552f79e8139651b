//! How much a program uses at the moment.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
