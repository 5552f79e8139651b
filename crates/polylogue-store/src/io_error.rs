//! What the system says of files, and its errors as errors of a store.

use std::fs::{self, File, Metadata};
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

/// Whether `path` is no longer the name of the open `file`: it was removed, or another file has taken its place.
pub(crate) fn is_other_file(path: &Path, file: &File) -> bool {
    match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(open)) => identity(&there) != identity(&open),
        _ => true,
    }
}

/// What tells a file from every other one of the machine, whatever its name.
#[cfg(unix)]
pub(crate) fn identity(about: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (about.dev(), about.ino())
}

/// What tells files apart as far as it can be known.
#[cfg(not(unix))]
pub(crate) fn identity(about: &Metadata) -> Option<std::time::SystemTime> {
    about.created().ok()
}

/// Makes the names in the folder of `path` survive a loss of power.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}
