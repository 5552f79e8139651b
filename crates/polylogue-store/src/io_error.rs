//! System errors of files as errors of a store.

use std::fs::{self, File, Metadata};
use std::io::{Error, ErrorKind};
use std::path::Path;

use polylogue_core::StoreError;

/// An error while reading `place`.
pub(crate) fn reading(place: &Path, error: &Error) -> StoreError {
    StoreError::Io { place: show(place), why: error.to_string() }
}

/// An error while writing `place`.
pub(crate) fn writing(place: &Path, error: &Error) -> StoreError {
    match error.kind() {
        // A file can also reach the limit of the process or the file system.
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

/// Whether `path` is no longer the name of the open `file`: it was removed or replaced.
pub(crate) fn is_other_file(path: &Path, file: &File) -> bool {
    match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(open)) => identity(&there) != identity(&open),
        _ => true,
    }
}

/// Identifies a file on this machine, whatever its name.
#[cfg(unix)]
pub(crate) fn identity(about: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (about.dev(), about.ino())
}

/// Identifies a file as far as possible.
#[cfg(not(unix))]
pub(crate) fn identity(about: &Metadata) -> Option<std::time::SystemTime> {
    about.created().ok()
}
