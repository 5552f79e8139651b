//! Detects files of a database that were replaced after it was opened.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use polylogue_core::StoreError;

use crate::io_error::{identity, show};

/// The database, its journal and its shared memory, as they were when opened. If one is replaced or removed, processes that have it
/// open use a file that no other process can find.
#[derive(Debug, Default)]
pub(super) struct Files {
    known: Vec<(PathBuf, Id)>,
}

#[cfg(unix)]
type Id = (u64, u64);
#[cfg(not(unix))]
type Id = Option<std::time::SystemTime>;

impl Files {
    /// The current files.
    pub(super) fn of(place: &Path) -> Self {
        let paths = ["", "-wal", "-shm"].map(|end| sibling(place, end));
        let known = paths.into_iter().filter_map(|path| Some((identity(&fs::metadata(&path).ok()?), path)));
        Self { known: known.map(|(id, path)| (path, id)).collect() }
    }

    /// The database alone.
    pub(super) fn of_database(place: &Path) -> Self {
        let known = fs::metadata(place).ok().map(|about| (place.to_owned(), identity(&about)));
        Self { known: known.into_iter().collect() }
    }

    /// An error when one of them no longer has its name.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let is_there =
            |(path, id): &&(PathBuf, Id)| fs::metadata(path).is_ok_and(|about| identity(&about) == *id);
        match self.known.iter().find(|known| !is_there(known)) {
            None => Ok(()),
            Some((path, _)) => Err(StoreError::Replaced { place: show(path) }),
        }
    }
}

/// The path of a file next to the database.
pub(super) fn sibling(place: &Path, end: &str) -> PathBuf {
    let mut path: OsString = place.as_os_str().to_owned();
    path.push(end);
    path.into()
}
