//! One log as a text file: its format and how it is read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use polylogue_core::{Event, Intact, LogId, Meta, StoreError};
use serde::{Deserialize, Serialize};

use crate::intact::{Salvage, parse_event};
use crate::io_error::{reading, show};

/// The only format so far.
pub(super) const FORMAT: u64 = 1;

#[derive(Serialize)]
struct Header<'a> {
    polylogue: u64,
    meta: &'a Meta,
}

/// What every format's first line has.
#[derive(Deserialize)]
struct AnyHeader {
    polylogue: u64,
}

#[derive(Deserialize)]
struct KnownHeader {
    meta: Meta,
}

/// The first line of a new log, with its newline.
pub(super) fn header(meta: &Meta) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Header { polylogue: FORMAT, meta })?;
    line.push(b'\n');
    Ok(line)
}

/// A file of the store that is being read.
pub(super) struct LogFile<'a> {
    path: &'a Path,
    lines: BufReader<&'a File>,
    line: Vec<u8>,
}

/// Why the first line is of no use.
pub(super) enum BadHeader {
    /// A later version wrote it.
    Newer(StoreError),
    /// It is damaged, or the file is no log. Says in what way.
    Damaged(String),
}

impl<'a> LogFile<'a> {
    pub(super) fn new(path: &'a Path, file: &'a File) -> Self {
        Self { path, lines: BufReader::new(file), line: Vec::new() }
    }

    fn broken(&self, error: &io::Error) -> StoreError {
        reading(self.path, error)
    }

    /// The next whole line without its newline. A torn last line is none.
    fn next(&mut self) -> Result<Option<&[u8]>, StoreError> {
        self.line.clear();
        self.lines.read_until(b'\n', &mut self.line).map_err(|error| self.broken(&error))?;
        Ok(self.line.strip_suffix(b"\n"))
    }

    /// Reads the first line.
    pub(super) fn header(&mut self) -> Result<Result<Meta, BadHeader>, StoreError> {
        let place = show(self.path);
        let Some(line) = self.next()? else {
            return Ok(Err(BadHeader::Damaged("the first line is missing or torn".into())));
        };
        let no_header = |_| BadHeader::Damaged("the first line is no header of a log".into());
        let header =
            serde_json::from_slice(line).map_err(no_header).and_then(|AnyHeader { polylogue: found }| {
                if found > FORMAT {
                    return Err(BadHeader::Newer(StoreError::Newer { place, found, known: FORMAT }));
                }
                serde_json::from_slice(line).map_err(no_header)
            });
        Ok(header.map(|KnownHeader { meta }| meta))
    }

    /// The events from `from` on, or `None` if one of them is damaged.
    pub(super) fn events(&mut self, from: u64) -> Result<Option<Vec<Event>>, StoreError> {
        let mut events = Vec::new();
        let mut seq = 0;
        while let Some(line) = self.next()? {
            if seq >= from {
                let Ok(event) = parse_event(line, seq) else { return Ok(None) };
                events.push(event);
            }
            seq += 1;
        }
        Ok(Some(events))
    }

    /// Every event that can be read.
    pub(super) fn intact(&mut self) -> Result<Intact, StoreError> {
        let mut salvage = Salvage::default();
        match self.header()? {
            Ok(_) => {}
            Err(BadHeader::Newer(error)) => return Err(error),
            Err(BadHeader::Damaged(why)) => {
                salvage.note(why);
                // When the header line is gone, the first line is an event.
                if let Ok(event) = serde_json::from_slice(self.line.trim_ascii_end()) {
                    salvage.take(Ok(event));
                }
            }
        }
        let mut number = 1;
        while let Some(line) = self.next()? {
            number += 1;
            let event = serde_json::from_slice::<Event>(line).map_err(|error| {
                let why = error.to_string().replace(" at line 1 column ", " at column ");
                format!("line {number} is no event: {why}")
            });
            salvage.take(event);
        }
        Ok(salvage.finish(show(self.path)))
    }
}

/// Why a log could not be read: [`StoreError::Damaged`] with all it takes a whole reading to know.
pub(super) fn damage(path: &Path, file: &mut File) -> StoreError {
    let whole =
        file.rewind().map_err(|error| reading(path, &error)).and_then(|()| LogFile::new(path, file).intact());
    match whole.map(|intact| intact.damage) {
        Ok(Some(damage)) => damage,
        // A writer was at it while it was read, and now it is well: reading again will succeed.
        Ok(None) => StoreError::Io { place: show(path), why: "it changed while it was read".into() },
        Err(error) => error,
    }
}

/// The end of a log.
pub(super) struct End {
    /// The last event.
    pub(super) last: Option<Event>,
    /// Where its line ends, in bytes; what follows is torn.
    pub(super) bytes: u64,
}

impl End {
    /// How many events there are.
    pub(super) fn kept(&self) -> u64 {
        self.last.as_ref().map_or(0, |event| event.seq.saturating_add(1))
    }
}

/// Reads the header and the last event, however long the log is. The error is that of a damaged log.
pub(super) fn ends(path: &Path, file: &mut File) -> Result<(Meta, End), StoreError> {
    let broken = |error: io::Error| reading(path, &error);
    let mut log = LogFile::new(path, file);
    let meta = match log.header()? {
        Ok(meta) => meta,
        Err(BadHeader::Newer(error)) => return Err(error),
        Err(BadHeader::Damaged(_)) => return Err(damage(path, file)),
    };
    let begin = log.line.len() as u64;
    let (line, bytes) = last_line(file, begin).map_err(broken)?;
    let last = match line {
        None => None,
        Some(line) => match serde_json::from_slice(&line) {
            Ok(event) => Some(event),
            Err(_) => return Err(damage(path, file)),
        },
    };
    Ok((meta, End { last, bytes }))
}

/// The last whole line behind the first `begin` bytes, and where it ends.
fn last_line(file: &mut File, begin: u64) -> io::Result<(Option<Vec<u8>>, u64)> {
    /// Most events are shorter.
    const FIRST_LOOK: u64 = 4096;
    let len = file.seek(SeekFrom::End(0))?;
    let mut look = FIRST_LOOK;
    loop {
        let start = len.saturating_sub(look).max(begin);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(len.saturating_sub(start)).read_to_end(&mut bytes)?;
        let newline = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n');
        if let Some(end) = newline(&bytes) {
            bytes.truncate(end);
            let after = start + end as u64 + 1;
            match newline(&bytes) {
                Some(before) => return Ok((Some(bytes.split_off(before + 1)), after)),
                None if start == begin => return Ok((Some(bytes), after)),
                None => {}
            }
        } else if start == begin {
            return Ok((None, begin));
        }
        look = look.saturating_mul(4);
    }
}

/// An error about a log that is not there, or cannot be read.
pub(super) fn opening(path: &Path, id: &LogId, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::NotFound { id: id.clone() },
        _ => reading(path, error),
    }
}
