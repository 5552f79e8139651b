//! What the system says, as errors of a store.

use std::io::{Error, ErrorKind};
use std::path::Path;

use polylogue_core::StoreError;

/// An error of reading `place`.
pub(crate) fn reading(place: &Path, error: &Error) -> StoreError {
    StoreError::Io { place: show(place), why: error.to_string() }
}

/// An error of writing `place`.
pub(crate) fn writing(place: &Path, error: &Error) -> StoreError {
    match error.kind() {
        // A file may also be as long as the process's limit or the file system allows.
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            StoreError::Full { place: show(place) }
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly { place: show(place), why: error.to_string() }
        }
        _ => reading(place, error),
    }
}

/// A path in an error.
pub(crate) fn show(place: &Path) -> String {
    place.display().to_string()
}
