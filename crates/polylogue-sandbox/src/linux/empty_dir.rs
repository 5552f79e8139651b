//! The empty directory in which the sandbox is tried.

use std::fs::{self, DirBuilder, DirEntry};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How a name begins; the id of the process and a number follow.
const PREFIX: &str = ".polylogue-probe-";

/// Directories that are younger may be those of processes that this one does not see, such as those in another container.
const STALE: Duration = Duration::from_secs(120);

/// A new directory, which is removed when this is dropped. One whose process was killed before is removed by the next process.
pub(super) struct EmptyDir(PathBuf);

impl EmptyDir {
    /// Created in the first directory for temporary files with free space.
    pub(super) fn new() -> io::Result<Self> {
        static NTH: AtomicU64 = AtomicU64::new(0);
        let mut last = io::ErrorKind::NotFound.into();
        for parent in [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()] {
            let nth = NTH.fetch_add(1, Ordering::Relaxed);
            let dir = parent.join(format!("{PREFIX}{}-{nth}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => {
                    remove_stale(&parent);
                    return Ok(Self(dir));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for EmptyDir {
    fn drop(&mut self) {
        // An empty directory that stays does no harm until the next process removes it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Removes what processes left in `parent` that were killed. What cannot be removed, such as directories of others, stays.
fn remove_stale(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(is_stale) {
        // Nothing but an empty directory is removed.
        let _ = fs::remove_dir(entry.path());
    }
}

fn is_stale(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let process =
        name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
    process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) && is_old(entry)
}

fn is_old(entry: &DirEntry) -> bool {
    let made = entry.metadata().and_then(|data| data.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age >= STALE))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::Command;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn directories_of_processes_that_were_killed_are_removed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let mut killed = Command::new("sleep").arg("60").spawn().unwrap();
        let dead = killed.id();
        killed.kill().unwrap();
        killed.wait().unwrap();
        let alive = std::process::id();
        let make = |name: &str, is_old: bool| {
            let dir = parent.path().join(name);
            fs::create_dir(&dir).unwrap();
            if is_old {
                File::open(&dir).unwrap().set_modified(SystemTime::now() - STALE * 2).unwrap();
            }
        };
        make(&format!("{PREFIX}{dead}-0"), true);
        let kept = [
            (format!("{PREFIX}{dead}-1"), false),
            (format!("{PREFIX}{alive}-0"), true),
            (format!("{PREFIX}x-0"), true),
            (format!("other-{dead}-0"), true),
        ];
        kept.iter().for_each(|(name, is_old)| make(name, *is_old));
        remove_stale(parent.path());
        let mut left: Vec<_> =
            fs::read_dir(parent.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        let mut expected: Vec<_> = kept.iter().map(|(name, _)| name.as_str()).collect();
        expected.sort_unstable();
        assert_eq!(left, expected);
    }
}
