//! The file beside a log with the name of its writer and the head of the log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::head::Head;
use crate::{holder, private};

/// The position of another process's mark that it has taken over the log: after the head, so that the writer does not
/// overwrite it.
const MARK: u64 = Head::BYTES as u64;
const MARK_BYTES: usize = 32;
/// The position of the writer's name.
const HOLDER: usize = Head::BYTES + MARK_BYTES;

/// The content of such a file.
#[derive(Debug, Default)]
pub(super) struct Note {
    pub(super) head: Option<Head>,
    /// The process that writes; empty if there is none.
    pub(super) holder: String,
}

impl Note {
    pub(super) fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_default();
        let holder = bytes.get(HOLDER..).unwrap_or_default();
        Self { head: Head::read(&bytes), holder: String::from_utf8_lossy(holder).trim().to_owned() }
    }
}

/// Creates the file of a new claim. It is a new file, so that processes with the old one open cannot change it.
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

/// Updates the head.
pub(super) fn write(file: &mut File, head: &Head) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&head.line())
}

/// Marks the claim as released.
pub(super) fn end(file: &mut File, head: &Head) -> io::Result<()> {
    write(file, &Head { lease_ms: 0, ..head.clone() })?;
    file.set_len(HOLDER as u64)
}

/// Marks the log as taken over by `fence`.
pub(super) fn mark(path: &Path, fence: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.seek(SeekFrom::Start(MARK))?;
    file.write_all(fence.to_string().as_bytes())?;
    file.sync_all()
}

/// Whether another process has taken over the log.
pub(super) fn is_marked(file: &mut File) -> bool {
    let mut mark = [b' '; MARK_BYTES];
    let read = file.seek(SeekFrom::Start(MARK)).and_then(|_| file.read(&mut mark));
    read.is_ok() && mark.iter().any(u8::is_ascii_digit)
}
