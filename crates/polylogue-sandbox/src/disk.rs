//! How much a work directory takes, as seen from outside while a program does with it what it likes.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::ended::How;
use crate::error::Error;
use crate::program::Program;
use crate::sandbox::Sandbox;

/// How often the work directory is looked at.
const WATCH: Duration = Duration::from_millis(250);
/// How many entries of a directory are looked at, and how deep: a program that makes more is taken to have filled the disk.
const MAX_ENTRIES: usize = 200_000;
const MAX_DEPTH: usize = 200;

/// Keeps a program to what its work directory may hold, by looking before it, from time to time, and after it.
pub(crate) struct WatchDisk<'a> {
    sandbox: &'a Sandbox,
    since: Instant,
    pause: Duration,
    /// How much the directory held before, and how much it may hold now.
    before: u64,
    allowed: u64,
    /// The largest of the files that are written for the program.
    own: u64,
}

impl<'a> WatchDisk<'a> {
    /// Looks at what is there. A program may run although the directory is full, so that it can remove something; then the
    /// directory must not grow.
    ///
    /// # Errors
    /// When the directory holds twice what it may: programs that are ended too late fill it no further.
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

    /// How large a file may become: no larger than what is left.
    pub(crate) fn largest_file(&self) -> u64 {
        let limits = self.sandbox.limits();
        let left = limits.disk_bytes.saturating_sub(self.before);
        left.max(self.own).min(limits.largest_file())
    }

    /// Whether it takes too much, together with the files that have no name any more but that one of the processes `who`
    /// still has open.
    pub(crate) fn look(&mut self, who: impl FnOnce() -> Vec<i32>) -> Option<How> {
        if self.since.elapsed() < self.pause {
            return None;
        }
        let begun = Instant::now();
        let bytes = used(self.sandbox.work()).saturating_add(nameless(&who()));
        self.since = Instant::now();
        // Where there is much to look at, looking does not take all the time.
        self.pause = WATCH.max(begun.elapsed() * 5);
        (bytes > self.allowed).then_some(How::TooMuchDisk)
    }

    /// How the program ended, which ended as `how`: what was too quick to be seen is seen now.
    pub(crate) fn after(&self, how: How) -> How {
        match how {
            How::Exited(_) | How::Signalled(_) if used(self.sandbox.work()) > self.allowed => {
                How::TooMuchDisk
            }
            how => how,
        }
    }
}

/// How much a directory that is full may grow while something is removed from it: blocks of directories.
const SLACK: u64 = 1 << 16;

/// Bytes that the directory `dir` takes, or may come to take without another look: files count with their length, holes in them
/// included, which are filled without a limit.
pub(crate) fn used(dir: &Path) -> u64 {
    named(dir, MAX_ENTRIES)
}

/// What is said of a directory that holds too much.
fn full(dir: &Path, limit: u64) -> String {
    format!(
        "the work directory `{}` holds more than twice what it may, {} MiB\nhint: remove files from it, or raise the limit on the disk",
        dir.display(),
        limit >> 20
    )
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
            self.bytes = self.bytes.saturating_add((about.blocks() * 512).max(about.len()));
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
