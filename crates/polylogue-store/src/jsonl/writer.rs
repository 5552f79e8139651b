//! A claimed log.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::batch::Batch;
use crate::holder;
use crate::private;

/// A log's file, locked. Dropping it gives the lock back.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    /// Where this process is named, for others to be told.
    note: PathBuf,
    /// How many events are kept.
    pub(super) kept: u64,
    /// How long the file is, as far as it was acknowledged.
    bytes: u64,
    /// Whether something of a failed append may stand behind.
    torn: bool,
}

impl Writer {
    /// Takes over `file`, whose lock is held and which has `kept` events in `bytes` bytes, and maybe a torn line.
    pub(super) fn new(file: File, note: PathBuf, kept: u64, bytes: u64) -> io::Result<Self> {
        let torn = file.metadata()?.len() > bytes;
        // Without the note the claim holds as well.
        let mut options = private::options();
        let opened = options.write(true).create(true).truncate(true).open(&note);
        let _ = opened.and_then(|mut file| file.write_all(holder::this_process().as_bytes()));
        let mut writer = Self { file, note, kept, bytes, torn };
        writer.cut()?;
        Ok(writer)
    }

    /// Writes all of `batch` to the disk, or leaves nothing of it.
    pub(super) fn append(&mut self, batch: &Batch) -> io::Result<()> {
        self.cut()?;
        let mut text = batch.json.join("\n");
        text.push('\n');
        self.torn = true;
        let written = self.write(text.as_bytes());
        match written {
            Ok(()) => {
                self.torn = false;
                self.bytes += text.len() as u64;
                self.kept += batch.json.len() as u64;
            }
            Err(_) => {
                // If this fails too, the next append tries again before it writes.
                let _ = self.cut();
            }
        }
        written
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.bytes))?;
        self.file.write_all(bytes)?;
        self.file.sync_data()
    }

    /// Cuts off what was not acknowledged.
    fn cut(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.bytes)?;
            self.torn = false;
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // While the lock is still held, so that the next holder's note is not the one that goes.
        let _ = fs::remove_file(&self.note);
    }
}
