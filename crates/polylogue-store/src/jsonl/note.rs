//! The file beside a log in which its writer says who it is and how far the log goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::head::Head;
use crate::{holder, private};

/// Where another process says that it has taken the log over: behind the head, so that the writer does not write over it.
const MARK: u64 = Head::BYTES as u64;
const MARK_BYTES: usize = 32;
/// Where the writer is named.
const HOLDER: usize = Head::BYTES + MARK_BYTES;

/// What is in such a file.
#[derive(Debug, Default)]
pub(super) struct Note {
    pub(super) head: Option<Head>,
    /// The process that writes, or nothing.
    pub(super) holder: String,
}

impl Note {
    pub(super) fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_default();
        let holder = bytes.get(HOLDER..).unwrap_or_default();
        Self { head: Head::read(&bytes), holder: String::from_utf8_lossy(holder).trim().to_owned() }
    }
}

/// Begins the file of a new claim. It is a new file, so that whoever had the old one open has no part in it.
pub(super) fn begin(path: &Path, draft: &Path, head: &Head) -> io::Result<File> {
    let mut text = head.line();
    text.resize(HOLDER - 1, b' ');
    text.push(b'\n');
    text.extend_from_slice(holder::this_process().as_bytes());
    text.push(b'\n');
    let mut file = private::options().read(true).write(true).create(true).truncate(true).open(draft)?;
    let written = file.write_all(&text).and_then(|()| fs::rename(draft, path));
    if written.is_err() {
        let _ = fs::remove_file(draft);
    }
    written.map(|()| file)
}

/// Says how far the log goes.
pub(super) fn write(file: &mut File, head: &Head) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&head.line())
}

/// Says that nobody writes any more.
pub(super) fn end(file: &mut File, head: &Head) -> io::Result<()> {
    write(file, &Head { lease_ms: 0, ..head.clone() })?;
    file.set_len(HOLDER as u64)
}

/// Says that `fence` has taken the log over.
pub(super) fn mark(path: &Path, fence: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.seek(SeekFrom::Start(MARK))?;
    file.write_all(fence.to_string().as_bytes())?;
    file.sync_all()
}

/// Whether another process has taken the log over.
pub(super) fn is_marked(file: &mut File) -> bool {
    let mut mark = [b' '; MARK_BYTES];
    let read = file.seek(SeekFrom::Start(MARK)).and_then(|_| file.read(&mut mark));
    read.is_ok() && mark.iter().any(u8::is_ascii_digit)
}
