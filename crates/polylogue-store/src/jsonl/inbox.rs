//! The inbox of a log: a file of lines next to it, which any process appends to.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use polylogue_core::{InboxMessage, StoreError};
use polylogue_files::private_options;
use serde::Deserialize;

use crate::io_error::{is_other_file, reading, show, writing};
use crate::locked_file::LockedFile;
use crate::message::parse_message;

/// Adds a message, unless there is one with its key. Returns its number: that of its line, from 1.
pub(super) fn post(path: &Path, message: &InboxMessage) -> Result<u64, StoreError> {
    let fail = |error: io::Error| writing(path, &error);
    let mut file = open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(fail)?;
    let whole = whole_lines(&bytes);
    let earlier: Vec<&[u8]> = lines(whole).collect();
    // Those that only a later version can read have keys, too.
    let has_key = |line: &&[u8]| {
        serde_json::from_slice::<Keyed>(line).is_ok_and(|earlier| *earlier.key == *message.key)
    };
    if let Some(at) = earlier.iter().position(has_key) {
        return Ok(at as u64 + 1);
    }
    let mut line = serde_json::to_vec(message).map_err(|error| fail(error.into()))?;
    line.push(b'\n');
    append(&mut file, whole.len() as u64, &line).map_err(fail)?;
    Ok(earlier.len() as u64 + 1)
}

/// A message, of which nothing but the key counts.
#[derive(Deserialize)]
struct Keyed {
    key: String,
}

/// What was acknowledged: not a last line without its end.
pub(super) fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    bytes.get(..end).unwrap_or_default()
}

/// The messages, of which the first one has the number 1.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Opens a file of lines, and locks it.
pub(super) fn open(path: &Path) -> io::Result<LockedFile> {
    loop {
        let file = private_options().read(true).write(true).create(true).truncate(false).open(path)?;
        let file = LockedFile::wait(file)?;
        // The log may have been removed, and its inbox with it, while this waited. One that was created since has its own.
        if !is_other_file(path, &file) {
            return Ok(file);
        }
    }
}

/// Writes a line after the first `whole` bytes of a file.
pub(super) fn append(file: &mut LockedFile, whole: u64, line: &[u8]) -> io::Result<()> {
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
    parsed(path, whole_lines(&bytes), after)
}

fn parsed(path: &Path, bytes: &[u8], after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
    let (place, new) = (show(path), (1..).zip(lines(bytes)).filter(|(number, _)| *number > after));
    new.map(|(number, line)| Ok((number, parse_message(line, number, &place)?))).collect()
}

/// Removes the inbox of a log that is created or removed.
pub(super) fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use super::*;

    /// How many files this process has open that have or had the name `path`.
    fn open_files(path: &Path) -> io::Result<usize> {
        let names = fs::read_dir("/proc/self/fd")?.flatten().flat_map(|file| fs::read_link(file.path()));
        Ok(names.filter(|name| name == path).count())
    }

    #[test]
    fn an_inbox_that_is_replaced_while_one_waits_for_it_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("a.inbox");
        let earlier = open(&path).unwrap();
        let opening = thread::spawn({
            let path = path.clone();
            move || open(&path)
        });
        while open_files(&path).unwrap() < 2 {
            thread::yield_now();
        }
        remove(&path);
        drop(open(&path).unwrap());
        drop(earlier);
        let opened = opening.join().unwrap().unwrap();
        assert!(!is_other_file(&path, &opened));
    }
}
