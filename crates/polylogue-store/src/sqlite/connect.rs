//! Connections to a database.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use polylogue_core::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::fault::store_error;
use super::schema::{self, Found};
use crate::io_error::show;

/// How long to wait for another process's commit. Commits take milliseconds; this is for a slow disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// The one connection that writes.
pub(super) fn to_write(place: &Path, found: Found) -> Result<Connection, StoreError> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if found == Found::Nothing {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let begun = Instant::now();
    let connected = loop {
        match open(place, flags).and_then(|connection| set_up(connection, found)) {
            // SQLite waits by itself, except where a database gets its mode: when several processes make it at once.
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
        Ok(connection) => {
            // Another process may have made it, with a later version, since it was looked at.
            schema::inspect(place)?;
            Ok(connection)
        }
        // SQLite says no more when it cannot make the files beside the database.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            let why = "the system does not allow files to be made or changed beside it".into();
            Err(StoreError::ReadOnly { place: show(place), why })
        }
        Err(error) => Err(store_error(place, &error)),
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

fn set_up(mut connection: Connection, found: Found) -> rusqlite::Result<Connection> {
    // Every commit reaches the disk before it is acknowledged.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;")?;
    if found == Found::Nothing {
        create(&mut connection)?;
    }
    connection.execute_batch("PRAGMA journal_mode = WAL; SELECT 1 FROM claims LIMIT 1;")?;
    Ok(connection)
}

fn open(place: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(place, flags)?;
    connection.busy_timeout(PATIENCE)?;
    // What others put into the database's schema may not call functions that reach beyond it.
    connection.execute_batch("PRAGMA trusted_schema = OFF;")?;
    Ok(connection)
}

/// Makes the tables, unless another process was faster.
fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        transaction.execute_batch(schema::CREATE)?;
    }
    transaction.commit()
}

/// A connection that reads, whatever state the database is in.
pub(super) fn to_read(place: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connected = open(place, flags).and_then(tolerant);
    match connected {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => match immutable(place) {
            Some(uri) => open(Path::new(&uri), flags | OpenFlags::SQLITE_OPEN_URI).and_then(tolerant),
            None => Err(error),
        },
        connected => connected,
    }
}

/// With `writable_schema`, a database that is cut off is read as far as it goes. The connection is a read-only one:
/// nothing is written.
fn tolerant(connection: Connection) -> rusqlite::Result<Connection> {
    connection.execute_batch("PRAGMA writable_schema = ON; SELECT 1 FROM sqlite_schema LIMIT 1;")?;
    Ok(connection)
}

/// How to name a database in a folder that cannot be written, where SQLite cannot make the files it reads with. Not
/// possible while there is a journal with content, which would be ignored.
fn immutable(place: &Path) -> Option<String> {
    let path = place.to_str()?;
    let journal = fs::metadata(format!("{path}-wal")).map_or(0, |metadata| metadata.len());
    let escaped = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    (journal == 0).then(|| format!("file:{escaped}?immutable=1"))
}
