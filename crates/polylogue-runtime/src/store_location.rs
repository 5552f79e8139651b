//! Where conversations are kept, and what is next to them.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use polylogue_core::{AnyStore, LogId};
use polylogue_store::{Jsonl, Sqlite};

use crate::lease_renewal::LeaseRenewal;
use crate::{Error, Result};

/// The place of a store of conversations: a folder of JSON lines, or a SQLite database. The work directories of the
/// conversations are next to it, and the long-term memory of agents is in the database.
///
/// ```
/// # use polylogue_runtime::StoreLocation;
/// assert!(StoreLocation::new("runs/").is_folder());
/// assert!(!StoreLocation::new("runs.db").is_folder());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLocation(PathBuf);

/// The end of the name of the folder of work directories, after the name of the store.
const WORK: &str = ".work";

impl StoreLocation {
    /// A place. An existing folder, or a path that ends in `/`, is one of JSON lines; everything else is a SQLite file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Whether conversations are kept as JSON lines.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.0.is_dir() || self.0.as_os_str().to_string_lossy().ends_with('/')
    }

    /// Opens the store, and creates it if it does not exist. Its claims are renewed while this process is well, which
    /// takes a tokio runtime.
    ///
    /// # Errors
    /// When it cannot be made, or is not a store.
    pub fn open(&self) -> Result<AnyStore> {
        if self.is_folder() {
            return Ok(LeaseRenewal::of(AnyStore::new(Jsonl::open(&self.0)?)));
        }
        if let Some(folder) = self.0.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            make_private(folder).map_err(|error| Error::Io {
                path: folder.to_owned(),
                what: "made",
                why: error.to_string(),
            })?;
        }
        Ok(LeaseRenewal::of(AnyStore::new(Sqlite::open(&self.0)?)))
    }

    /// The work directory of the conversation `id`, whether it exists or not: an absolute path.
    ///
    /// # Errors
    /// When there is no current directory.
    pub fn work_dir(&self, id: &LogId) -> Result<PathBuf> {
        let root = self.work_root();
        let whole = std::path::absolute(&root);
        let whole = whole.map_err(|error| Error::Io { path: root, what: "found", why: error.to_string() })?;
        Ok(whole.join(id.as_str()))
    }

    /// The folder of the work directories.
    fn work_root(&self) -> PathBuf {
        // A folder may be written with a slash at its end, which belongs to no name.
        let mut work: OsString = self.0.components().as_path().as_os_str().to_owned();
        work.push(WORK);
        PathBuf::from(work)
    }

    /// Whether `folder` is within a work directory of this store, or of any store: what is in it may have been written
    /// by code that models wrote.
    #[must_use]
    pub fn is_in_work_dir(&self, folder: &Path) -> bool {
        let own = std::fs::canonicalize(self.work_root()).ok();
        let of_any = |folder: &Path| {
            let store = folder.as_os_str().to_string_lossy().strip_suffix(WORK).map(PathBuf::from);
            store.is_some_and(|store| store.exists())
        };
        own.is_some_and(|own| folder.starts_with(own)) || folder.ancestors().any(of_any)
    }
}

impl fmt::Display for StoreLocation {
    /// Which kind of store it is, with its format.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_folder() {
            true => write!(f, "JSON lines, format {}", Jsonl::FORMAT),
            false => write!(f, "SQLite, format {}", Sqlite::FORMAT),
        }
    }
}

/// Makes a folder that only its owner can look into, unless it exists.
fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
