//! The file of a cache: a header with the format version, then one reply per line, as JSON.

use std::borrow::Cow;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use polylogue_core::{Digest, Reply};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::CacheError;

/// The key of the version of the format.
const KEY: &str = "polylogue_cache";
/// The format version that is written, and the last supported one.
const KNOWN: u64 = 1;

/// A cached reply with its request.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept<'a> {
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(super) namespace: Cow<'a, str>,
    pub(super) request: Digest,
    pub(super) reply: Cow<'a, Reply>,
}

impl<'a> Kept<'a> {
    pub(super) const fn of(namespace: &'a str, request: Digest, reply: &'a Reply) -> Self {
        Self { namespace: Cow::Borrowed(namespace), request, reply: Cow::Borrowed(reply) }
    }
}

/// The file, locked by this process.
pub(super) struct KeptFile {
    place: PathBuf,
    file: File,
    /// Its length up to the end of the last complete line.
    end: u64,
}

impl KeptFile {
    /// Opens or creates the file at `place`, and passes each reply in it to `each`.
    pub(super) fn open(place: &Path, each: impl FnMut(Kept<'static>)) -> Result<Self, CacheError> {
        let unwritable = |error: io::Error| CacheError::io(place, "written", &error);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(place);
        let file = opened.map_err(unwritable)?;
        // Two programs that write to one file would mix their lines. Where files cannot be locked, the user must
        // prevent it.
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(CacheError::Busy { place: place.display().to_string() });
            }
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                return Err(unwritable(error));
            }
            _ => {}
        }
        let end = read(place, &file, each)?;
        let mut kept = Self { place: place.to_owned(), file, end };
        kept.cut().map_err(unwritable)?;
        if end == 0 {
            kept.append(&json!({KEY: KNOWN}))?;
        }
        Ok(kept)
    }

    /// Writes a line, all of it or nothing.
    pub(super) fn append(&mut self, line: &impl Serialize) -> Result<(), CacheError> {
        self.write(line).map_err(|error| CacheError::io(&self.place, "written", &error))
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        let written = self.file.write_all(&bytes);
        match written {
            Ok(()) => self.end += bytes.len() as u64,
            // Best effort: if even this fails, a reader treats the rest as a truncated line.
            Err(_) => drop(self.cut()),
        }
        written
    }

    /// Removes everything after the last complete line.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end)).map(drop)
    }
}

/// Reads the lines of `file`, and returns their total length. A truncated last line is ignored: its reply is
/// requested again.
fn read(place: &Path, file: &File, mut each: impl FnMut(Kept<'static>)) -> Result<u64, CacheError> {
    let (mut reader, mut bytes, mut end) = (BufReader::new(file), Vec::new(), 0);
    for line in 1.. {
        bytes.clear();
        reader.read_until(b'\n', &mut bytes).map_err(|error| CacheError::io(place, "read", &error))?;
        if line == 1 && !is_begun_header(&bytes) {
            check_header(&bytes, place)?;
        }
        if !bytes.ends_with(b"\n") {
            break;
        }
        if line > 1 {
            each(serde_json::from_slice(&bytes).map_err(|error| CacheError::Damaged {
                place: place.display().to_string(),
                line,
                why: error.to_string(),
            })?);
        }
        end += bytes.len() as u64;
    }
    Ok(end)
}

/// Whether it is empty, or a truncated header.
fn is_begun_header(line: &[u8]) -> bool {
    !line.ends_with(b"\n") && json!({KEY: KNOWN}).to_string().as_bytes().starts_with(line)
}

fn check_header(line: &[u8], place: &Path) -> Result<(), CacheError> {
    let place = || place.display().to_string();
    let header = serde_json::from_slice::<Value>(line).unwrap_or_default();
    match header.get(KEY).and_then(Value::as_u64) {
        Some(KNOWN) => Ok(()),
        Some(found) if found > KNOWN => Err(CacheError::Newer { place: place(), found, known: KNOWN }),
        _ => Err(CacheError::NoCache { place: place() }),
    }
}
