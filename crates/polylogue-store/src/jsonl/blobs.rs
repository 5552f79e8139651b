//! Blobs: a folder next to the log, with a file for each, named by its id.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polylogue_core::{BlobId, StoreError};

use crate::io_error::{reading, sync_folder, writing};
use crate::sealed::checked;
use crate::{claims, private};

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
    written(folder, &path, bytes).map_err(|error| writing(&path, &error))
}

/// The file appears under its name when it is complete.
fn written(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    private::make_folder(folder)?;
    let draft = folder.join(format!(".{}-{}", std::process::id(), claims::next_fence()));
    let put = || {
        let mut file = private::options().write(true).create_new(true).open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    put().inspect_err(|_| drop(fs::remove_file(&draft)))?;
    sync_folder(path)
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
