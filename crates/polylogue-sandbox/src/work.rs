//! Removing work directories.

use std::io;
use std::path::Path;

/// Removes the work directory `dir` whatever programs left in it: directories that deny access to their owner, and trees
/// that are deeper than a path can be long. Links are removed, not followed. A directory that does not exist is not an error; other
/// processes may remove it at the same time.
///
/// # Errors
/// When something in it cannot be removed.
#[cfg(unix)]
pub fn remove_work_directory(dir: &Path) -> io::Result<()> {
    removal::remove(dir)
}

/// Removes the work directory `dir`. A directory that does not exist is not an error.
///
/// # Errors
/// When something in it cannot be removed.
#[cfg(not(unix))]
pub fn remove_work_directory(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(unix)]
mod removal {
    use std::ffi::CString;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, unlinkat};
    use rustix::io::Errno;

    const DIR: OFlags =
        OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    /// Empties and removes `dir`. Directories within directories are moved up before they are emptied, so that neither the
    /// number of open files nor the stack grows with the depth.
    pub(super) fn remove(dir: &Path) -> io::Result<()> {
        let flags = DIR.difference(OFlags::NOFOLLOW);
        let Some(parent) = if_there(openat(CWD, parent(dir), flags, Mode::empty()).map_err(io::Error::from))?
        else {
            return Ok(());
        };
        let Some(root) = if_there(opened(&parent, &name(dir)?))? else { return Ok(()) };
        let mut moved = 0;
        loop {
            let names = names(&root)?;
            if names.is_empty() {
                break;
            }
            for name in names {
                remove_entry(&root, &name, &mut moved)?;
            }
        }
        if_there(std::fs::remove_dir(dir)).map(drop)
    }

    /// `None` for what is gone: another process removes the same directory. Only that of the whole directory may end the removal.
    fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// Removes an entry of `root` that may be gone. Directories in it are moved to `root`.
    fn remove_entry(root: &OwnedFd, name: &CString, moved: &mut u64) -> io::Result<()> {
        if is_removed(root, name)? {
            return Ok(());
        }
        let Some(dir) = if_there(opened(root, name))? else { return Ok(()) };
        empty(root, &dir, moved)?;
        let removed = unlinkat(root, name, AtFlags::REMOVEDIR);
        if_there(removed.map_err(io::Error::from)).map(drop)
    }

    /// Removes `name` from `dir`, unless it is a directory. Returns whether it is gone.
    fn is_removed(dir: &OwnedFd, name: &CString) -> io::Result<bool> {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::ISDIR | Errno::PERM) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn parent(dir: &Path) -> &Path {
        dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    fn name(dir: &Path) -> io::Result<CString> {
        use std::os::unix::ffi::OsStrExt;
        let name = dir.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(CString::new(name.as_bytes())?)
    }

    /// Removes the files of `dir`, and moves its directories to `root`.
    fn empty(root: &OwnedFd, dir: &OwnedFd, moved: &mut u64) -> io::Result<()> {
        for name in names(dir)? {
            // A directory that denies writing to its owner cannot be moved either.
            if is_removed(dir, &name)? || if_there(opened(dir, &name))?.is_none() {
                continue;
            }
            loop {
                *moved += 1;
                // A name that exists is of a directory that is not empty, or of a file.
                match renameat(dir, &name, root, format!(".polylogue-removed-{moved}")) {
                    Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                    Err(Errno::NOENT) => break,
                    other => break other?,
                }
            }
        }
        Ok(())
    }

    /// The directory `name` of `dir`, with all rights for its owner.
    fn opened(dir: &OwnedFd, name: &CString) -> io::Result<OwnedFd> {
        allow(dir, name)?;
        Ok(openat(dir, name, DIR, Mode::empty())?)
    }

    #[cfg(target_os = "linux")]
    fn allow(dir: &OwnedFd, name: &CString) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(dir, name, flags, Mode::empty())?;
        // By the open directory, so that a link in its place changes nothing.
        let path = format!("/proc/self/fd/{}", found.as_raw_fd());
        ignore_foreign(rustix::fs::chmod(path, Mode::RWXU))
    }

    #[cfg(not(target_os = "linux"))]
    fn allow(dir: &OwnedFd, name: &CString) -> io::Result<()> {
        ignore_foreign(rustix::fs::chmodat(dir, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// The mode of another user's directory cannot be changed, and may not have to be.
    fn ignore_foreign(changed: Result<(), Errno>) -> io::Result<()> {
        match changed {
            Err(Errno::PERM) => Ok(()),
            other => Ok(other?),
        }
    }

    /// The names in a directory; none if it was removed meanwhile, which `rustix` takes for its end.
    fn names(dir: &OwnedFd) -> io::Result<Vec<CString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(dir)? {
            let name = entry?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        Ok(names)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_another_process_removes_meanwhile_does_not_end_the_removal() {
            let dir = tempfile::tempdir().unwrap();
            let work = dir.path().join("work");
            std::fs::create_dir_all(work.join("inner")).unwrap();
            let root = OwnedFd::from(std::fs::File::open(&work).unwrap());
            // As after a list of names, one of which is gone by now.
            for name in [c"gone", c"inner"] {
                remove_entry(&root, &name.to_owned(), &mut 0).unwrap();
            }
            assert!(!work.join("inner").exists());
            remove(&work).unwrap();
            assert!(!work.exists() && names(&root).unwrap().is_empty());
            remove(&work).unwrap();
            remove(&work.join("nowhere/at/all")).unwrap();
        }
    }
}
