//! The inbox of a log: a file of lines next to it, which any process appends to.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use polylogue_core::{InboxMessage, StoreError};

use crate::io_error::{reading, show, writing};
use crate::locked_file::LockedFile;
use crate::private;

/// Adds a message, unless there is one with its key. Returns its number: that of its line, from 1.
pub(super) fn post(path: &Path, message: &InboxMessage) -> Result<u64, StoreError> {
    let fail = |error: io::Error| writing(path, &error);
    let mut file = open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(fail)?;
    // A line without its end was not acknowledged.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let earlier = parsed(path, bytes.get(..whole).unwrap_or_default(), 0)?;
    if let Some((number, _)) = earlier.iter().find(|(_, earlier)| earlier.key == message.key) {
        return Ok(*number);
    }
    let mut line = serde_json::to_vec(message).map_err(|error| fail(error.into()))?;
    line.push(b'\n');
    append(&mut file, whole as u64, &line).map_err(fail)?;
    Ok(earlier.len() as u64 + 1)
}

fn open(path: &Path) -> io::Result<LockedFile> {
    loop {
        let file = private::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let file = LockedFile::wait(file)?;
        // The log may have been removed, and its inbox with it, while this waited.
        if path.try_exists()? {
            return Ok(file);
        }
    }
}

fn append(file: &mut LockedFile, whole: u64, line: &[u8]) -> io::Result<()> {
    file.set_len(whole)?;
    file.seek(SeekFrom::Start(whole))?;
    file.write_all(line)?;
    file.sync_all()
}

/// The messages after the number `after`.
pub(super) fn read(path: &Path, after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(reading(path, &error)),
        Ok(_) => {}
    }
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    parsed(path, bytes.get(..whole).unwrap_or_default(), after)
}

fn parsed(path: &Path, bytes: &[u8], after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    (1..)
        .zip(lines)
        .filter(|(number, _)| *number > after)
        .map(|(number, line)| match serde_json::from_slice(line) {
            Ok(message) => Ok((number, message)),
            Err(error) => {
                let why = format!("message {number} cannot be read: {error}");
                Err(StoreError::Io { place: show(path), why })
            }
        })
        .collect()
}

/// Removes the inbox of a log that is created or removed.
pub(super) fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}
