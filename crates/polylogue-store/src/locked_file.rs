//! Files that this process has locked.

use std::fs::{File, TryLockError};
use std::io;
use std::thread;
use std::time::Duration;

/// How long, and how often, a lock is waited for that another process may have taken only to see whether there is one.
const MOMENT: Duration = Duration::from_millis(1);
const MOMENTS: u32 = 5;

/// A file with an exclusive lock of the operating system, which ends with the process.
///
/// Dropping it releases the lock, also when another thread is just starting a program: closing alone leaves the lock to the
/// copy of the process that becomes the program, until the program runs.
#[derive(Debug, derive_more::Deref, derive_more::DerefMut)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Waits until no other process has locked the file.
    pub(crate) fn wait(file: File) -> io::Result<Self> {
        file.lock()?;
        Ok(Self(file))
    }

    /// Fails if the file is locked, unless only for the moment that a process needs [to see whether it is](super::jsonl).
    pub(crate) fn without_waiting(file: File) -> Result<Self, TryLockError> {
        for _ in 0..MOMENTS {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => thread::sleep(MOMENT),
                locked => return locked.map(|()| Self(file)),
            }
        }
        file.try_lock().map(|()| Self(file))
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Fails only for files that are not locked.
        let _ = self.0.unlock();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_released_lock_is_free_though_a_copy_of_the_file_is_open_elsewhere() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().write(true).open(file.path()).unwrap();
        let locked = LockedFile::wait(open()).unwrap();
        assert!(matches!(LockedFile::without_waiting(open()), Err(TryLockError::WouldBlock)));
        // The program has a copy of the file and its lock, as a process has that was just forked.
        let copy = Stdio::from(locked.try_clone().unwrap());
        let mut program = Command::new("sleep").arg("60").stdout(copy).spawn().unwrap();
        drop(locked);
        let again = LockedFile::without_waiting(open()).map(drop);
        program.kill().unwrap();
        program.wait().unwrap();
        assert!(again.is_ok(), "{again:?}");
    }
}
