//! The schema of a database, and how to recognize one without changing it.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use polylogue_core::StoreError;

use crate::io_error::{reading, show};

/// `PLYL`: tells `file` and us whose database it is.
const APPLICATION: u32 = 0x504C_594C;

/// The only supported format.
pub(super) const FORMAT: u32 = 10;

/// Creates the tables of an empty database. Must run in a transaction.
pub(super) const CREATE: &str = "
CREATE TABLE logs(
    nr INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    has_team INTEGER NOT NULL,
    parent TEXT,
    chain BLOB NOT NULL,
    team TEXT NOT NULL
) STRICT;
CREATE INDEX newest ON logs(created_ms, id);
CREATE TABLE events(
    log INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    json TEXT NOT NULL,
    chain BLOB NOT NULL,
    PRIMARY KEY(log, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE heads(
    log INTEGER PRIMARY KEY,
    fence INTEGER NOT NULL,
    events INTEGER NOT NULL,
    chain BLOB NOT NULL,
    summary TEXT NOT NULL
) STRICT;
CREATE TABLE claims(
    fence INTEGER PRIMARY KEY AUTOINCREMENT,
    log INTEGER NOT NULL UNIQUE,
    writer TEXT NOT NULL,
    holder TEXT NOT NULL
) STRICT;
CREATE TABLE inbox(
    log INTEGER NOT NULL,
    nr INTEGER NOT NULL,
    key TEXT NOT NULL,
    json TEXT NOT NULL,
    -- Whether an event takes it.
    is_taken INTEGER NOT NULL DEFAULT 0,
    -- Whether it came while the log was held, which must be looked at when it is released.
    wakes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY(log, nr),
    UNIQUE(key, log)
) STRICT, WITHOUT ROWID;
CREATE INDEX unread ON inbox(log) WHERE NOT is_taken;
CREATE INDEX waking ON inbox(log) WHERE wakes AND NOT is_taken;
CREATE TABLE blobs(
    log INTEGER NOT NULL,
    id TEXT NOT NULL,
    bytes BLOB NOT NULL,
    is_packed INTEGER NOT NULL DEFAULT 0,
    UNIQUE(log, id)
) STRICT;
CREATE TABLE archives(
    log INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE queue(
    log INTEGER PRIMARY KEY,
    due_ms INTEGER,
    needs TEXT NOT NULL DEFAULT '',
    is_woken INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0,
    takeovers INTEGER NOT NULL DEFAULT 0,
    is_parked INTEGER NOT NULL DEFAULT 0,
    worker TEXT NOT NULL DEFAULT '',
    why TEXT
) STRICT;
CREATE INDEX due ON queue(needs, due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX woken ON queue(log) WHERE is_woken;
CREATE TABLE workers(
    writer TEXT PRIMARY KEY,
    process TEXT NOT NULL,
    version TEXT NOT NULL,
    offers TEXT NOT NULL,
    at_once INTEGER NOT NULL,
    address TEXT,
    seen_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE reserved_keys(
    key TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX reserved ON reserved_keys(until_ms);
PRAGMA application_id = 0x504C594C;
PRAGMA user_version = 10;
";

/// The file at the path of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// No file, or an empty one.
    Nothing,
    /// A database of Polylogue, of a known format.
    Database,
}

/// Checks the first bytes of the file. A database of another program is not opened, because that alone may change it.
pub(super) fn inspect(place: &Path) -> Result<FileKind, StoreError> {
    let mut head = Vec::new();
    match File::open(place).and_then(|file| file.take(HEAD).read_to_end(&mut head)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FileKind::Nothing),
        Err(error) => return Err(reading(place, &error)),
        Ok(_) if head.is_empty() => return Ok(FileKind::Nothing),
        Ok(_) => {}
    }
    let damaged = |why: &str| StoreError::Damaged { place: show(place), why: why.into(), intact: 0 };
    let foreign = |why: &str| StoreError::Foreign { place: show(place), why: why.into() };
    if !head.starts_with(b"SQLite format 3\0") {
        return Err(foreign("it is not an SQLite database"));
    }
    // See https://www.sqlite.org/fileformat2.html#the_database_header for the places of these numbers.
    match (number(&head, 68), number(&head, 60)) {
        (None, _) | (_, None) => Err(damaged("it is cut off in its first bytes")),
        (Some(APPLICATION), Some(found)) if found > FORMAT => {
            Err(StoreError::Newer { place: show(place), found: found.into(), known: FORMAT.into() })
        }
        (Some(APPLICATION), Some(FORMAT)) => Ok(FileKind::Database),
        (Some(APPLICATION), Some(found)) => {
            Err(StoreError::Older { place: show(place), found: found.into(), known: FORMAT.into() })
        }
        _ => Err(foreign("it is an SQLite database of another program")),
    }
}

/// Length of the header of a database in bytes.
const HEAD: u64 = 100;

fn number(head: &[u8], at: usize) -> Option<u32> {
    head.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}
