//! The writer of a claimed log.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use polylogue_core::StoreError;

use super::file::{self, LogFile};
use super::note::{self, Entry};
use crate::batch::Batch;
use crate::head::{Head, lease_from_now};
use crate::io_error::{is_other_file, show, writing};
use crate::locked_file::LockedFile;
use polylogue_core::chain::seal;

/// A log's file, locked. Dropping it releases the lock.
#[derive(Debug)]
pub(super) struct Writer {
    file: LockedFile,
    path: PathBuf,
    /// The file with this process's name and the head. The claim is valid without it, too.
    note: Option<File>,
    /// The head: the acknowledged events.
    head: Head,
    /// What lists show, with the acknowledged length of the file.
    entry: Entry,
    /// Whether a failed append may have left bytes at the end.
    torn: bool,
    /// The modification time and length of the file when it was last changed.
    seen: (Option<SystemTime>, u64),
}

impl Writer {
    /// Creates the writer of the locked `file`, which has the events of `head` in as many bytes as `entry` says, and maybe a
    /// torn line.
    pub(super) fn new(
        file: LockedFile,
        path: &Path,
        note: Option<File>,
        head: Head,
        entry: Entry,
    ) -> Result<Self, StoreError> {
        let fail = |error: io::Error| writing(path, &error);
        let torn = file.metadata().map_err(fail)?.len() > entry.bytes;
        let mut writer = Self { file, path: path.to_owned(), note, head, entry, torn, seen: (None, 0) };
        writer.cut().map_err(fail)?;
        writer.seen = writer.look().map_err(fail)?;
        Ok(writer)
    }

    /// The number of stored events.
    pub(super) const fn kept(&self) -> u64 {
        self.head.events
    }

    /// Writes all of `batch` to the disk, or none of it.
    pub(super) fn append(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.check()?;
        let (mut text, mut link) = (String::new(), self.head.link);
        for json in &batch.json {
            link = link.next(json.as_bytes());
            text.push_str(&seal(json, link));
            text.push('\n');
        }
        self.torn = true;
        let written = self.write(text.as_bytes()).map_err(|error| writing(&self.path, &error));
        // Events written to a file that was replaced or taken over are not stored.
        if let Err(error) = written.and_then(|()| self.is_ours()) {
            // If this fails too, the next append tries again before it writes.
            let _ = self.cut();
            return Err(error);
        }
        self.torn = false;
        self.entry.bytes += text.len() as u64;
        batch.events.iter().for_each(|event| self.entry.summary.add(event, self.entry.has_team));
        self.head.events += batch.json.len() as u64;
        self.head.link = link;
        self.seen = self.look().map_err(|error| writing(&self.path, &error))?;
        self.renew();
        if let Some(note) = &mut self.note {
            // Where it cannot be written, lists read the log.
            let _ = note::write_entry(note, &self.entry, self.head.link);
        }
        Ok(())
    }

    /// Whether the log is as this writer left it, and still claimed by it.
    pub(super) fn check(&mut self) -> Result<(), StoreError> {
        self.is_ours()?;
        let now = self.cut().and_then(|()| self.look()).map_err(|error| writing(&self.path, &error))?;
        if now != self.seen && !self.is_same()? {
            return Err(StoreError::Replaced { place: show(&self.path) });
        }
        self.seen = now;
        Ok(())
    }

    /// Renews the lease. A failure affects only the lease.
    pub(super) fn renew(&mut self) {
        self.head.lease_ms = lease_from_now();
        if let Some(note) = &mut self.note {
            let _ = note::write(note, &self.head);
        }
    }

    fn is_ours(&mut self) -> Result<(), StoreError> {
        if self.note.as_mut().is_some_and(note::is_marked) {
            return Err(StoreError::Fenced { id: self.head.id.clone() });
        }
        match is_other_file(&self.path, &self.file) {
            true => Err(StoreError::Replaced { place: show(&self.path) }),
            false => Ok(()),
        }
    }

    fn look(&self) -> io::Result<(Option<SystemTime>, u64)> {
        let about = self.file.metadata()?;
        Ok((about.modified().ok(), about.len()))
    }

    /// Whether the modified file still begins with the acknowledged events.
    fn is_same(&mut self) -> Result<bool, StoreError> {
        let mut log = LogFile::from_start(&self.path, &self.file)?;
        let Ok(Ok(_)) = log.header() else { return Ok(false) };
        let kept = log.events(u64::MAX..u64::MAX, Some(&self.head))?.is_some();
        Ok(kept && file::end(&self.path, &mut self.file, None).is_ok_and(|end| end.bytes == self.entry.bytes))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.entry.bytes))?;
        self.file.write_all(bytes)?;
        self.file.sync_data()
    }

    /// Removes what was not acknowledged.
    fn cut(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.entry.bytes)?;
            self.torn = false;
            self.seen = self.look()?;
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Before the lock is released.
        if let Some(note) = &mut self.note {
            let _ = note::end(note, &self.head);
        }
    }
}
