//! Errors of SQLite as errors of a store.

use std::path::Path;

use polylogue_core::StoreError;
use rusqlite::ErrorCode;

use crate::io_error::show;

/// Why a write failed.
#[derive(Debug, derive_more::From)]
pub(super) enum WriteError {
    /// It was rejected before anything was written: the rest of the commit is valid.
    Refused(StoreError),
    /// SQLite failed; the transaction must be rolled back.
    Failed(rusqlite::Error),
}

/// The shared memory of the database could not be extended, because the disk is full. Has no name in `rusqlite`.
const SQLITE_IOERR_SHMSIZE: i32 = 4874;

/// Whether SQLite's shared memory, a file next to the database, cannot be created.
pub(super) fn is_no_memory(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(failure, _) if failure.extended_code == SQLITE_IOERR_SHMSIZE)
}

/// An error of SQLite about the database at `place`.
pub(super) fn store_error(place: &Path, error: &rusqlite::Error) -> StoreError {
    let (place, why) = (show(place), error.to_string());
    let rusqlite::Error::SqliteFailure(failure, _) = error else { return StoreError::Io { place, why } };
    match failure.code {
        ErrorCode::DiskFull => StoreError::Full { place },
        _ if is_no_memory(error) => StoreError::Full { place },
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::ReadOnly { place, why },
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Damaged { place, why, intact: 0 },
        ErrorCode::DatabaseBusy => {
            StoreError::Io { place, why: "another program kept it locked for too long".into() }
        }
        _ => StoreError::Io { place, why },
    }
}
