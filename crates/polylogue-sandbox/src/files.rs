//! Writes files for a program from outside, without following links of earlier programs.
#![allow(
    unsafe_code,
    reason = "the standard library opens no file relative to a directory that is held open"
)]

use std::ffi::{CString, OsStr};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Writes each file below `work`, whose paths consist of plain names. No link is followed, whatever happens meanwhile.
pub(crate) fn write(work: &Path, files: &[(PathBuf, Vec<u8>)]) -> Result<(), Error> {
    for (path, content) in files {
        one(work, path, content).map_err(|error| {
            Error::Config(format!("`{}` cannot be written to the work directory: {error}", path.display()))
        })?;
    }
    Ok(())
}

fn one(work: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut dir = OwnedFd::from(std::fs::File::open(work)?);
    for parent in path.parent().into_iter().flat_map(Path::iter) {
        dir = directory(&dir, parent)?;
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // Without waiting for the reader of a pipe at its path.
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_NONBLOCK;
    let mut file = std::fs::File::from(open(&dir, name, flags)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something else is in its place"));
    }
    file.write_all(content)
}

/// The directory `name` of `dir`, created if it does not exist.
fn directory(dir: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let text = CString::new(name.as_bytes())?;
    // SAFETY: the name ends with a zero. That it is there already is not an error; what it is is seen next.
    unsafe { libc::mkdirat(dir.as_raw_fd(), text.as_ptr(), 0o755) };
    open(dir, name, libc::O_RDONLY | libc::O_DIRECTORY)
}

fn open(dir: &OwnedFd, name: &OsStr, flags: i32) -> io::Result<OwnedFd> {
    const MODE: libc::c_uint = 0o644;
    let name = CString::new(name.as_bytes())?;
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name ends with a zero.
    let fd = unsafe { libc::openat(dir.as_raw_fd(), name.as_ptr(), flags, MODE) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened just now and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
