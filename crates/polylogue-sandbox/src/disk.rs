//! How much a work directory takes, as seen from outside while a program does with it what it likes.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{How, Sandbox};

/// How often the work directory is looked at.
const WATCH: Duration = Duration::from_millis(250);
/// How many entries of a directory are looked at, and how deep: a program that makes more is taken to have filled the disk.
const MAX_ENTRIES: usize = 200_000;
const MAX_DEPTH: usize = 200;

/// Looks from time to time how much the work directory takes.
pub(crate) struct WatchDisk<'a> {
    sandbox: &'a Sandbox,
    since: Instant,
    pause: Duration,
}

impl<'a> WatchDisk<'a> {
    pub(crate) fn new(sandbox: &'a Sandbox) -> Self {
        Self { sandbox, since: Instant::now(), pause: WATCH }
    }

    /// Whether it takes too much, together with the files that have no name any more but that one of the processes `who`
    /// still has open.
    pub(crate) fn look(&mut self, who: impl FnOnce() -> Vec<i32>) -> Option<How> {
        if self.since.elapsed() < self.pause {
            return None;
        }
        let begun = Instant::now();
        let bytes = named(self.sandbox.work(), MAX_ENTRIES).saturating_add(nameless(&who()));
        self.since = Instant::now();
        // Where there is much to look at, looking does not take all the time.
        self.pause = WATCH.max(begun.elapsed() * 5);
        (bytes > self.sandbox.limits().disk_bytes).then_some(How::TooMuchDisk)
    }
}

/// Bytes on disk of all files in `dir`; as much as can be when there are too many to count.
fn named(dir: &Path, max_entries: usize) -> u64 {
    let mut count = Count { bytes: 0, entries_left: max_entries };
    match open(dir, 0) {
        Ok(dir) if count.directory(&dir, 0).is_none() => u64::MAX,
        _ => count.bytes,
    }
}

struct Count {
    bytes: u64,
    entries_left: usize,
}

impl Count {
    /// Counts what is in `dir`, which is held open: whatever is put in its place meanwhile, nothing outside is looked at.
    /// None when it is too much.
    fn directory(&mut self, dir: &File, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let hidden = Hidden::show(dir);
        for entry in std::fs::read_dir(held(dir)).into_iter().flatten().flatten() {
            self.entries_left = self.entries_left.checked_sub(1)?;
            // Of the entry itself: a link is not followed.
            let Ok(about) = entry.metadata() else { continue };
            self.bytes = self.bytes.saturating_add(about.blocks() * 512);
            if let (true, Ok(inner)) = (about.is_dir(), open(&entry.path(), libc::O_NOFOLLOW)) {
                self.directory(&inner, depth + 1)?;
            }
        }
        drop(hidden);
        Some(())
    }
}

/// Without reading it, which its mode may forbid.
fn open(dir: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY | flags).open(dir)
}

/// The path of what is open, wherever it is moved.
fn held(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A directory whose mode forbids even its owner to look into it, which is changed for a moment.
struct Hidden<'a> {
    dir: &'a File,
    mode: u32,
}

impl<'a> Hidden<'a> {
    fn show(dir: &'a File) -> Option<Self> {
        let about = dir.metadata().ok()?;
        let mode = about.mode() & 0o7777;
        let is_hidden = mode & 0o500 != 0o500;
        (is_hidden && set_mode(dir, mode | 0o500).is_ok()).then_some(Self { dir, mode })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        // It may be gone by now.
        drop(set_mode(self.dir, self.mode));
    }
}

fn set_mode(dir: &File, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(held(dir), Permissions::from_mode(mode))
}

/// Bytes on disk of files without a name that these processes have open, each counted once.
fn nameless(processes: &[i32]) -> u64 {
    let mut seen = HashSet::new();
    let mut bytes = 0_u64;
    for process in processes {
        for entry in std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten() {
            let Ok(about) = std::fs::metadata(entry.path()) else { continue };
            if about.is_file() && about.nlink() == 0 && seen.insert((about.dev(), about.ino())) {
                bytes = bytes.saturating_add(about.blocks() * 512);
            }
        }
    }
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_too_many_are_too_much() {
        let dir = std::env::temp_dir().join(format!("polylogue-disk-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("inner")).unwrap();
        for nth in 0..99 {
            std::fs::write(dir.join(format!("inner/{nth}")), "").unwrap();
        }
        // The directory counts, too.
        assert_eq!(named(&dir, 99), u64::MAX);
        assert!(named(&dir, 100) < 1 << 20);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(named(&dir, 100), 0);
    }
}
