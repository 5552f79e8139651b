//! Creates a database. It appears under its name when it is complete, so that a process that dies meanwhile leaves none, or an empty
//! file, which the next process replaces.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use polylogue_core::StoreError;
use polylogue_files::{make_private_folder, private_options, sync_folder};
use rusqlite::Connection;

use super::files::sibling;
use super::schema::{self, FileKind};
use super::write_error::store_error;
use crate::locked_file::LockedFile;
use crate::{claims, io_error};

/// Number of retries when another process creates the database as well.
const TRIES: u32 = 10;

/// Creates the database at `place`, which is no link, and its folder, unless another process is faster.
pub(super) fn create(place: &Path) -> Result<(), StoreError> {
    let fail = |error: io::Error| match error.kind() {
        // Some file systems of the kernel answer so when a file is to be made.
        ErrorKind::NotFound => StoreError::ReadOnly { place: io_error::show(place), why: error.to_string() },
        _ => io_error::writing(place, &error),
    };
    if let Some(folder) = place.parent().filter(|folder| !folder.is_dir()) {
        make_private_folder(folder).map_err(|error| io_error::writing(folder, &error))?;
    }
    let image = image().map_err(|error| store_error(place, &error))?;
    for _ in 0..TRIES {
        let draft = Draft::write(place, &image).map_err(fail)?;
        draft.put(place).map_err(fail)?;
        // Another process may have made it, with a later version; or cleared the draft away before it was locked.
        if schema::inspect(place)? == FileKind::Database {
            return Ok(());
        }
    }
    Err(fail(io::Error::other("other processes are making it at the same time")))
}

/// The bytes of a database without logs.
fn image() -> rusqlite::Result<Vec<u8>> {
    /// The offset of the versions for writing and reading in the header, and the version with a write-ahead log. See
    /// <https://www.sqlite.org/fileformat2.html#file_format_version_numbers>.
    const VERSIONS: std::ops::Range<usize> = 18..20;
    const WAL: u8 = 2;
    let mut memory = Connection::open_in_memory()?;
    memory.execute_batch(&format!("BEGIN; {} COMMIT;", schema::CREATE))?;
    let mut image = memory.serialize("main")?.to_vec();
    image.get_mut(VERSIONS).into_iter().flatten().for_each(|version| *version = WAL);
    Ok(image)
}

/// A complete database under a temporary name. Removed when it is dropped.
struct Draft {
    path: PathBuf,
    /// Locked, so that others know that its process is alive.
    _file: LockedFile,
}

impl Draft {
    fn write(target: &Path, image: &[u8]) -> io::Result<Self> {
        let prefix = prefix(target);
        clear(target, &prefix);
        let path = target.with_file_name(format!("{prefix}{}-{}", std::process::id(), claims::next_fence()));
        let file = private_options().write(true).create_new(true).open(&path)?;
        let mut draft = Self { path, _file: LockedFile::wait(file)? };
        draft._file.write_all(image)?;
        draft._file.sync_all()?;
        Ok(draft)
    }

    /// Renames it to `target`, unless another database has that name. The process that creates one locks the empty file that it
    /// replaces.
    fn put(&self, target: &Path) -> io::Result<()> {
        let empty =
            LockedFile::wait(private_options().write(true).create(true).truncate(false).open(target)?)?;
        if empty.metadata()?.len() > 0 || io_error::is_other_file(target, &empty) {
            return Ok(());
        }
        for end in ["-journal", "-wal", "-shm"] {
            set_aside(&sibling(target, end))?;
        }
        match fs::rename(&self.path, target) {
            // Cleared away by a process that came between making and locking it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            renamed => renamed.and_then(|()| sync_folder(target)),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Fails when it has got its name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Journals of a removed database, which SQLite would apply to the new one.
fn set_aside(journal: &Path) -> io::Result<()> {
    match fs::metadata(journal) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(about) if about.len() > 0 => {
            fs::rename(journal, sibling(journal, &format!(".left-{}", claims::next_fence())))
        }
        _ => fs::remove_file(journal),
    }
}

fn prefix(target: &Path) -> String {
    format!(".{}.new-", target.file_name().unwrap_or_default().to_string_lossy())
}

/// Removes incomplete databases of dead processes.
fn clear(target: &Path, prefix: &str) {
    for entry in target.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten()
    {
        let is_draft = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        if is_draft && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
