//! Blobs: a folder next to the log, with a file for each, named by its id.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polylogue_core::{BlobId, StoreError};
use polylogue_files::{make_private_folder, replace_private};

use crate::io_error::{reading, writing};
use crate::sealed::checked;

/// Ids are digits only, so that no other file can be named.
fn file(folder: &Path, blob: &BlobId) -> PathBuf {
    folder.join(blob.as_str())
}

/// Writes `bytes` under its id, unless it is there.
pub(super) fn write(folder: &Path, blob: &BlobId, bytes: &[u8]) -> Result<(), StoreError> {
    let path = file(folder, blob);
    if read(folder, blob).is_ok_and(|there| there.is_some()) {
        return Ok(());
    }
    let written = make_private_folder(folder).and_then(|()| replace_private(&path, bytes));
    written.map_err(|error| writing(&path, &error))
}

pub(super) fn read(folder: &Path, blob: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
    let path = file(folder, blob);
    match fs::read(&path) {
        Ok(bytes) => checked(&path, blob, bytes).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(reading(&path, &error)),
    }
}

/// Removes the blobs of a log that is created or removed.
pub(super) fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}
