//! The disk usage of a work directory, measured from outside while a program changes it.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::program::Program;
use crate::program_result::ExitReason;
use crate::sandbox::Sandbox;

/// Interval of the measurements.
const WATCH: Duration = Duration::from_millis(250);
/// Maximum number and depth of entries that are counted. A program that creates more exceeds the limit.
const MAX_ENTRIES: usize = 200_000;
const MAX_DEPTH: usize = 200;

/// Enforces the limit on the work directory: measures it before, during and after a program.
pub(crate) struct WatchDisk<'a> {
    sandbox: &'a Sandbox,
    since: Instant,
    pause: Duration,
    /// The usage before, and the limit now.
    before: u64,
    allowed: u64,
    /// The largest of the files that are written for the program.
    own: u64,
}

impl<'a> WatchDisk<'a> {
    /// Measures the directory before a program starts. A program may run in a full directory, so that it can remove files; then
    /// the directory must not grow.
    ///
    /// # Errors
    /// When the usage is twice the limit, so that programs that are killed late cannot fill the disk.
    pub(crate) fn begin(sandbox: &'a Sandbox, program: &Program) -> Result<Self, Error> {
        let limit = sandbox.limits().disk_bytes;
        let before = used(sandbox.work());
        if before > limit.saturating_mul(2) {
            return Err(Error::Config(full(sandbox.work(), limit)));
        }
        let sizes = program.files.iter().map(|(_, content)| content.len() as u64);
        let (own, all) =
            sizes.fold((0, 0), |(most, all): (u64, u64), size| (most.max(size), all.saturating_add(size)));
        let allowed = if before > limit { before.saturating_add(all).saturating_add(SLACK) } else { limit };
        Ok(Self { sandbox, since: Instant::now(), pause: WATCH, before, allowed, own })
    }

    /// Maximum size of a file, within the remaining space.
    pub(crate) fn largest_file(&self) -> u64 {
        let limits = self.sandbox.limits();
        let left = limits.disk_bytes.saturating_sub(self.before);
        left.max(self.own).min(limits.largest_file())
    }

    /// Whether the usage exceeds the limit, including deleted files that one of the processes `who` still has open.
    pub(crate) fn look(&mut self, who: impl FnOnce() -> Vec<i32>) -> Option<ExitReason> {
        if self.since.elapsed() < self.pause {
            return None;
        }
        let begun = Instant::now();
        let bytes = used(self.sandbox.work()).saturating_add(nameless(&who()));
        self.since = Instant::now();
        // Where there is much to look at, looking does not take all the time.
        self.pause = WATCH.max(begun.elapsed() * 5);
        (bytes > self.allowed).then_some(ExitReason::TooMuchDisk)
    }

    /// Measures the directory after a program that ended as `how`, to find quick growth.
    pub(crate) fn after(&self, how: ExitReason) -> ExitReason {
        match how {
            ExitReason::Exited(_) | ExitReason::Signaled(_) if used(self.sandbox.work()) > self.allowed => {
                ExitReason::TooMuchDisk
            }
            how => how,
        }
    }
}

/// Allowed growth of a full directory while files are removed from it: blocks of directories.
const SLACK: u64 = 1 << 16;

/// The usage of the directory `dir` in bytes. Files count with their full length, including holes, which can be filled without
/// exceeding any limit on file sizes.
pub(crate) fn used(dir: &Path) -> u64 {
    named(dir, MAX_ENTRIES)
}

/// The error text for a directory that exceeds the limit.
fn full(dir: &Path, limit: u64) -> String {
    format!(
        "the work directory `{}` holds more than twice what it may, {} MiB\nhint: remove files from it, or raise the limit on the disk",
        dir.display(),
        limit >> 20
    )
}

/// Bytes on disk of all files in `dir`; the maximum when there are too many to count.
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
    /// Counts the files in `dir`, which is held open so that nothing outside is counted if it is replaced meanwhile. `None` when
    /// there are too many.
    fn directory(&mut self, dir: &File, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let hidden = Hidden::show(dir);
        for entry in std::fs::read_dir(held(dir)).into_iter().flatten().flatten() {
            self.entries_left = self.entries_left.checked_sub(1)?;
            // Of the entry itself: a link is not followed.
            let Ok(about) = entry.metadata() else { continue };
            self.bytes = self.bytes.saturating_add((about.blocks() * 512).max(about.len()));
            if let (true, Ok(inner)) = (about.is_dir(), open(&entry.path(), libc::O_NOFOLLOW)) {
                self.directory(&inner, depth + 1)?;
            }
        }
        drop(hidden);
        Some(())
    }
}

/// Opens a directory by path only, because its mode may forbid reading.
fn open(dir: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY | flags).open(dir)
}

/// The path of an open file, even if it was moved.
fn held(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A directory that its owner cannot read, made readable temporarily.
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

/// Bytes on disk of deleted files that these processes have open, each counted once.
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
