//! The file of a cache of replies: a line of JSON for each reply, oldest first.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::{Digest, ModelError, ModelErrorKind, Reply};
use polylogue_files::private_options;
use serde::{Deserialize, Serialize};
use tracing::warn;

/// The first line: the format and its version.
const HEADER: &str = "{\"polylogue_cache\":1}\n";

/// An open file of replies.
#[derive(Debug)]
pub(super) struct CacheFile {
    /// Locked with the file: the lock of the file keeps out other processes only.
    file: Mutex<File>,
    place: String,
}

/// A stored reply. Owned when read, borrowed when written.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(default, skip_serializing_if = "str::is_empty")]
    namespace: Cow<'a, str>,
    request: Digest,
    reply: Cow<'a, Reply>,
}

/// What a file has: namespace, request and reply.
type Stored = Vec<(Arc<str>, Digest, Reply)>;

impl CacheFile {
    /// Opens the file `place`, or creates it.
    pub(super) fn open(place: &Path) -> Result<(Self, Stored), ModelError> {
        let shown = place.display().to_string();
        let failed = |error: io::Error| {
            let message = format!("the file `{shown}` cannot be used as a cache of replies: {error}");
            ModelError::new(ModelErrorKind::Config, "cache", message)
        };
        let opened = private_options().read(true).append(true).create(true).open(place);
        let this = Self { file: Mutex::new(opened.map_err(failed)?), place: shown.clone() };
        let text = this.locked(|mut file| Self::content(&mut file)).map_err(failed)?;
        let Some(lines) = text.strip_prefix(HEADER) else {
            let message = format!("the file `{shown}` is not a cache of replies of this version");
            let error = ModelError::new(ModelErrorKind::Config, "cache", message);
            return Err(error.hint("name another file, or one that does not exist"));
        };
        // A line that cannot be read is one reply less: it is asked for again.
        let read = |line: &str| serde_json::from_str::<Line<'_>>(line).ok();
        let stored = lines
            .lines()
            .filter_map(read)
            .map(|line| (line.namespace.into(), line.request, line.reply.into_owned()));
        Ok((this, stored.collect()))
    }

    /// The text of the file. Writes the header of a new one, and ends a last line that was truncated.
    fn content(file: &mut &File) -> io::Result<String> {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if text.is_empty() {
            file.write_all(HEADER.as_bytes())?;
            text = HEADER.to_owned();
        } else if text.starts_with(HEADER) && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok(text)
    }

    /// Whether the file ends with a whole line. A full disk, or the death of another process, can have cut the last one.
    fn ends_line(file: &mut &File) -> io::Result<bool> {
        if file.seek(SeekFrom::End(0))? == 0 {
            return Ok(true);
        }
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        Ok(last == *b"\n")
    }

    /// Appends a reply. One that cannot be written is asked for again by the next process.
    pub(super) fn append(&self, namespace: &str, request: Digest, reply: &Reply) {
        let line = Line { namespace: namespace.into(), request, reply: Cow::Borrowed(reply) };
        let written = serde_json::to_string(&line).map_err(io::Error::other).and_then(|line| {
            self.locked(|mut file| {
                let begin = if Self::ends_line(&mut file)? { "" } else { "\n" };
                file.write_all(format!("{begin}{line}\n").as_bytes())
            })
        });
        if let Err(error) = written {
            warn!(file = self.place, %error, "a reply could not be written to the cache");
        }
    }

    /// Runs `action` while no other thread or process writes to the file.
    fn locked<T>(&self, action: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        // A panic elsewhere leaves at most a line that was cut, which the next one ends.
        let guard = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file: &File = &guard;
        match file.lock() {
            // Where files cannot be locked, lines of two processes may mix, and such lines are skipped.
            Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        let result = action(file);
        // Closing the file unlocks it, too.
        let _ = file.unlock();
        result
    }
}
