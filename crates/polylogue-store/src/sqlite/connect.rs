//! Connections to a database.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use polylogue_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::files::Files;
use super::write_error::{is_no_memory, store_error};
use crate::io_error::show;

/// The timeout for another process's commit. Commits take milliseconds; this is for a slow disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// The writing connection to an existing database.
pub(super) fn to_write(place: &Path) -> Result<Connection, StoreError> {
    let begun = Instant::now();
    let connected = loop {
        match open(place, READ_WRITE).and_then(set_up) {
            // SQLite waits by itself, except while it recovers the journal of a killed process.
            Err(error) if is_busy(&error) && begun.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(1))
            }
            connected => break connected,
        }
    };
    match connected {
        Ok(connection) if connection.is_readonly("main").unwrap_or(false) => {
            Err(StoreError::ReadOnly { place: show(place), why: "the file is read-only".into() })
        }
        Ok(connection) => Ok(connection),
        // SQLite reports only this when it cannot create the files next to the database.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            let why = "the system does not allow creating or changing files in its directory".into();
            Err(StoreError::ReadOnly { place: show(place), why })
        }
        Err(error) => Err(store_error(place, &error)),
    }
}

const READ_WRITE: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

fn set_up(connection: Connection) -> rusqlite::Result<Connection> {
    // Every commit reaches the disk before it is acknowledged.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;")?;
    connection.execute_batch("PRAGMA journal_mode = WAL; SELECT 1 FROM claims LIMIT 1;")?;
    Ok(connection)
}

fn open(place: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    set_safe(Connection::open_with_flags(place, flags)?)
}

/// So many statements are compiled once: more than there are, so that none is compiled repeatedly.
const STATEMENTS: usize = 128;

fn set_safe(connection: Connection) -> rusqlite::Result<Connection> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Without it, SQLite compiles a statement again for each new value that a range is compared with.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(PATIENCE)?;
    // The database's schema must not call functions that reach beyond it.
    connection.execute_batch("PRAGMA trusted_schema = OFF;")?;
    Ok(connection)
}

/// A reading connection.
#[derive(Debug)]
pub(super) struct ReadConnection {
    pub(super) connection: Connection,
    /// The files of the database when it was opened.
    pub(super) files: Files,
    /// Whether it may stay open: it blocks no other process, and sees their writes.
    pub(super) lasts: bool,
}

/// A reading connection, whatever the state of the database and its disk.
pub(super) fn to_read(place: &Path) -> rusqlite::Result<ReadConnection> {
    let files = Files::of_database(place);
    match open(place, READ_ONLY).and_then(tolerant) {
        Ok(connection) => Ok(ReadConnection { connection, files, lasts: true }),
        Err(error) if lacks_files(&error) => match alone(place) {
            Ok(connection) => Ok(ReadConnection { connection, files, lasts: false }),
            Err(_) => untouched(place).unwrap_or(Err(error)),
        },
        Err(error) => Err(error),
    }
}

const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Whether SQLite cannot create or extend the files next to a database that it needs for reading: its folder is not
/// writable, or the disk is full.
fn lacks_files(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::DiskFull))
        || is_no_memory(error)
}

/// A connection with exclusive access, which needs no shared memory and so no disk space. Reads the journal, too.
/// Close it soon, since it blocks all other connections.
fn alone(place: &Path) -> rusqlite::Result<Connection> {
    // Only a writing connection can be exclusive; nothing is written.
    let connection = set_safe(Connection::open_with_flags_and_vfs(place, READ_WRITE, c"unix-excl")?)?;
    // An empty journal is removed; one with content stays for processes that can write.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, journal_bytes(place) > 0)?;
    connection.execute_batch("PRAGMA query_only = ON;")?;
    tolerant(connection)
}

/// A connection to a database that no process can change. `None` if that is not possible.
fn untouched(place: &Path) -> Option<rusqlite::Result<ReadConnection>> {
    let uri = immutable(place)?;
    let files = Files::of_database(place);
    let connected = open(Path::new(&uri), READ_ONLY | OpenFlags::SQLITE_OPEN_URI).and_then(tolerant);
    Some(connected.map(|connection| ReadConnection { connection, files, lasts: true }))
}

/// With `writable_schema`, a truncated database is read as far as possible. The connection is read-only: nothing is
/// written.
fn tolerant(connection: Connection) -> rusqlite::Result<Connection> {
    connection.execute_batch("PRAGMA writable_schema = ON; SELECT 1 FROM sqlite_schema LIMIT 1;")?;
    Ok(connection)
}

/// The URI of a database in a folder that is not writable, where SQLite cannot create the files for reading. Not
/// possible while there is a journal with content, which would be ignored.
fn immutable(place: &Path) -> Option<String> {
    let path = place.to_str()?;
    let escaped = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    (journal_bytes(place) == 0).then(|| format!("file:{escaped}?immutable=1"))
}

/// The length of the journal next to a database.
pub(super) fn journal_bytes(place: &Path) -> u64 {
    let mut journal = place.as_os_str().to_owned();
    journal.push("-wal");
    fs::metadata(journal).map_or(0, |metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use polylogue_core::{LogId, Meta, Store};

    use super::*;
    use crate::Sqlite;

    fn titles(connection: &Connection) -> Vec<String> {
        let mut select = connection.prepare("SELECT title FROM logs").unwrap();
        select.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
    }

    #[tokio::test]
    async fn alone_a_journal_is_read_without_shared_memory_and_left_unchanged() {
        let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = Sqlite::open(dir.path().join("db")).unwrap();
        let meta = Meta { title: "in the journal".into(), ..Meta::default() };
        store.create(&LogId::new("x").unwrap(), &meta).await.unwrap();
        for name in ["db", "db-wal"] {
            fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
        }
        let journal = fs::read(copy.path().join("db-wal")).unwrap();
        let place = copy.path().join("db");
        let connection = alone(&place).unwrap();
        // A second reader of the same process is let in.
        assert_eq!([titles(&connection), titles(&alone(&place).unwrap())], [["in the journal"]; 2]);
        assert_eq!(fs::read_dir(copy.path()).unwrap().count(), 2, "nothing else is there");
        assert!(connection.execute_batch("DELETE FROM logs").is_err());
        drop(connection);
        assert_eq!(fs::read(copy.path().join("db-wal")).unwrap(), journal);
    }

    #[tokio::test]
    async fn alone_a_closed_database_is_left_without_files_next_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("db");
        drop(Sqlite::open(&place).unwrap());
        assert!(titles(&alone(&place).unwrap()).is_empty());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is there");
    }
}
