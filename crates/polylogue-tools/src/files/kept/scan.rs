//! What is in a work directory, without following links.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polylogue_core::{FilePath, FileTree, SkipReason, SkippedEntry};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use crate::files::folder::{DIR, FILE};

/// The greatest depth of folders.
const MAX_DEPTH: usize = 200;

/// A file that was changed less than this before it was read may change again without a new time: clocks of file systems advance in
/// steps of up to 10 ms.
const RECENT: Duration = Duration::from_millis(50);

/// The entries of a directory, each folder before what it contains, in the order of their names.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) found: Vec<Found>,
    pub(super) left_out: Vec<SkippedEntry>,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: Vec<u8>,
    pub(super) kind: FoundKind,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum FoundKind {
    Folder {
        mode: u32,
    },
    File {
        mode: u32,
        stamp: Stamp,
        /// Whether it has changed so shortly before that it may change again with the same times.
        is_recent: bool,
    },
    Link {
        to: Vec<u8>,
    },
}

/// Metadata by which a changed file is noticed without reading it. Programs can set the time of the content, but not that of the
/// inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    pub(super) bytes: u64,
    content: (i64, i64),
    changed: (i64, i64),
}

impl Scan {
    /// Scans `dir`, without following links; empty if there is no such directory.
    pub(super) fn of(dir: &Path) -> io::Result<Self> {
        let mut scan = Self { found: Vec::new(), left_out: Vec::new() };
        // The directory itself may be reached by a link: its owner set it up.
        match rustix::fs::open(dir, DIR.difference(OFlags::NOFOLLOW), Mode::empty()) {
            Err(Errno::NOENT) => return Ok(scan),
            Err(error) => return Err(error.into()),
            Ok(root) => scan.folder(&root, &[], 0)?,
        }
        Ok(scan)
    }

    /// Whether a file may change again without being noticed.
    pub(super) fn has_recent(&self) -> bool {
        self.found.iter().any(|found| matches!(found.kind, FoundKind::File { is_recent: true, .. }))
    }

    fn folder(&mut self, dir: &OwnedFd, within: &[u8], depth: usize) -> Result<(), Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(dir)? {
            let name = entry?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        names.sort();
        for name in names {
            let path = joined(within, name.to_bytes());
            match self.entry(dir, &name, &path, depth) {
                Ok(None) | Err(Errno::NOENT) => {}
                Ok(Some(why)) => self.leave_out(&path, why),
                Err(_) => self.leave_out(&path, SkipReason::Unreadable),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &[u8], why: SkipReason) {
        // A crowd of pipes needs no list.
        if self.left_out.len() < 1_000 {
            self.left_out.push(SkippedEntry { path: FilePath::of(path), why });
        }
    }

    /// Adds an entry, or says why it is left out.
    fn entry(
        &mut self,
        dir: &OwnedFd,
        name: &CStr,
        path: &[u8],
        depth: usize,
    ) -> Result<Option<SkipReason>, Errno> {
        if self.found.len() >= FileTree::MAX_ENTRIES || depth >= MAX_DEPTH {
            return Ok(Some(SkipReason::TooMany));
        }
        let about = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mode = RawMode::from(about.st_mode) & 0o777;
        #[allow(clippy::useless_conversion, reason = "the type differs between machines")]
        let mode = u32::from(mode);
        let kind = match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory => {
                let inner = rustix::fs::openat(dir, name, DIR, Mode::empty())?;
                self.found.push(Found { path: path.to_vec(), kind: FoundKind::Folder { mode } });
                self.folder(&inner, path, depth + 1)?;
                return Ok(None);
            }
            FileType::RegularFile if size(&about) > FileTree::MAX_FILE_BYTES => {
                return Ok(Some(SkipReason::TooLarge));
            }
            FileType::RegularFile => {
                let stamp = stamp(&about);
                FoundKind::File { mode, stamp, is_recent: is_recent(&stamp) }
            }
            FileType::Symlink => {
                let to = rustix::fs::readlinkat(dir, name, Vec::new())?;
                FoundKind::Link { to: to.into_bytes() }
            }
            _ => return Ok(Some(SkipReason::Special)),
        };
        self.found.push(Found { path: path.to_vec(), kind });
        Ok(None)
    }
}

fn joined(within: &[u8], name: &[u8]) -> Vec<u8> {
    match within {
        [] => name.to_vec(),
        within => [within, b"/", name].concat(),
    }
}

fn size(about: &Stat) -> u64 {
    u64::try_from(about.st_size).unwrap_or_default()
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "types differ between machines")]
fn stamp(about: &Stat) -> Stamp {
    let nanoseconds = |value| i64::try_from(value).unwrap_or_default();
    Stamp {
        inode: about.st_ino.into(),
        bytes: size(about),
        content: (about.st_mtime.into(), nanoseconds(about.st_mtime_nsec)),
        changed: (about.st_ctime.into(), nanoseconds(about.st_ctime_nsec)),
    }
}

fn is_recent(stamp: &Stamp) -> bool {
    let seconds = u64::try_from(stamp.changed.0).unwrap_or_default();
    let changed = Duration::new(seconds, u32::try_from(stamp.changed.1).unwrap_or_default());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    changed + RECENT > now
}

/// The bytes of the file at `path` from `at` on, `most` of them at most.
pub(super) fn piece(dir: &Path, path: &[u8], at: u64, most: u64) -> io::Result<Vec<u8>> {
    let root = rustix::fs::open(dir, DIR.difference(OFlags::NOFOLLOW), Mode::empty())?;
    let (folders, name) = split(path);
    let mut folder = root;
    for name in folders {
        folder = rustix::fs::openat(&folder, name, DIR, Mode::empty())?;
    }
    let mut file = File::from(opened(folder.as_fd(), name)?);
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn opened(folder: impl AsFd, name: &[u8]) -> io::Result<OwnedFd> {
    let fd = rustix::fs::openat(folder, CString::new(name)?, FILE, Mode::empty())?;
    match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
        FileType::RegularFile => Ok(fd),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The folders of a path, and its last name.
pub(super) fn split(path: &[u8]) -> (impl Iterator<Item = &[u8]>, &[u8]) {
    let (folders, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (&[][..], path),
    };
    (folders.split(|byte| *byte == b'/').filter(|name| !name.is_empty()), name)
}
