//! Large results of tool calls: a folder next to the log, with a file for each, named by its id.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polylogue_core::{ResultId, StoreError};

use crate::io_error::{reading, sync_folder, writing};
use crate::sealed::checked_result;
use crate::{claims, private};

/// Ids are digits only, so that no other file can be named.
fn file(folder: &Path, result: &ResultId) -> PathBuf {
    folder.join(format!("{result}.txt"))
}

/// Writes `text` under its id, unless it is there.
pub(super) fn write(folder: &Path, result: &ResultId, text: &str) -> Result<(), StoreError> {
    let path = file(folder, result);
    if read(folder, result).is_ok_and(|there| there.is_some()) {
        return Ok(());
    }
    written(folder, &path, text).map_err(|error| writing(&path, &error))
}

/// The file appears under its name when it is complete.
fn written(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    private::make_folder(folder)?;
    let draft = folder.join(format!(".{}-{}", std::process::id(), claims::next_fence()));
    let put = || {
        let mut file = private::options().write(true).create_new(true).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    put().inspect_err(|_| drop(fs::remove_file(&draft)))?;
    sync_folder(path)
}

pub(super) fn read(folder: &Path, result: &ResultId) -> Result<Option<Arc<str>>, StoreError> {
    let path = file(folder, result);
    match File::open(&path).and_then(io::read_to_string) {
        Ok(text) => checked_result(&path, result, text).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(reading(&path, &error)),
    }
}

/// Removes the results of a log that is created or removed.
pub(super) fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}
