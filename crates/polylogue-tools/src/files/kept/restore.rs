//! Making a work directory again.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polylogue_core::{
    AnyStore, BlobId, FileEntry, FileKind, FileTree, LogId, Store as _, StoreError, StoredFiles,
};
use polylogue_files::make_private_folder;
use polylogue_sandbox::remove_work_directory;
use rustix::fs::{AtFlags, CWD, Mode, RawMode};

use super::on_disk;
use super::scan::{FoundKind, Scan, piece, split};
use crate::files::folder::{DIR, NEW};

/// The reason why a work directory could not be restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A blob is missing from the store.
    #[error("the blob {0} of the files is missing from the store")]
    Missing(BlobId),
    /// The stored data is no tree of files.
    #[error("the stored files are damaged: {0}")]
    Damaged(String),
    /// The directory cannot be written.
    #[error("the work directory cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Restores `dir` as it was after the last finished call: as `files`, which is stored with the conversation `id`. What a call
/// that did not finish has changed is undone. Returns whether a new directory was made: also if it is as stored and a call is
/// `in_flight`, because another process that has lost the conversation may still write into the old one.
///
/// The new directory takes the place of the old one when it is complete. Nothing outside of it is written, whatever the tree says: paths are walked
/// without following links, and links are made last.
///
/// # Errors
/// [`RestoreError`]. The old directory is then unchanged, unless that is what cannot be removed: some of it may be missing, and the
/// next call restores it.
pub async fn restore(
    dir: &Path,
    files: &StoredFiles,
    in_flight: bool,
    store: &AnyStore,
    id: &LogId,
) -> Result<bool, RestoreError> {
    let bytes = store.stored_blob(id, &files.tree).await?;
    let bytes = bytes.ok_or_else(|| RestoreError::Missing(files.tree.clone()))?;
    let tree = Arc::new(FileTree::from_bytes(&bytes).map_err(RestoreError::Damaged)?);
    let (there, wanted) = (dir.to_owned(), Arc::clone(&tree));
    // What cannot be read is not what was stored.
    if !in_flight && on_disk(move || is_same(&there, &wanted)).await.unwrap_or(false) {
        return Ok(false);
    }
    let mut new = dir.as_os_str().to_owned();
    new.push(".restored");
    let new = PathBuf::from(new);
    let written = write(&new, &tree, store, id).await;
    let (old, made) = (dir.to_owned(), new.clone());
    match written {
        Ok(()) => on_disk(move || put_in_place(&made, &old)).await?,
        Err(error) => {
            // Why it was not made is the error that counts.
            let _ = on_disk(move || remove_work_directory(&made)).await;
            return Err(error);
        }
    }
    Ok(true)
}

fn put_in_place(new: &Path, dir: &Path) -> io::Result<()> {
    remove_work_directory(dir)?;
    std::fs::rename(new, dir)
}

/// Whether the directory has exactly what `tree` has. What the tree leaves out does not count.
fn is_same(dir: &Path, tree: &FileTree) -> io::Result<bool> {
    let Scan { found, .. } = Scan::of(dir)?;
    if !dir.exists() || found.len() != tree.entries.len() {
        return Ok(false);
    }
    let mut entries: Vec<&FileEntry> = tree.entries.iter().collect();
    entries.sort_by(|one, other| one.path.as_bytes().cmp(other.path.as_bytes()));
    let mut found = found;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    for (found, entry) in found.iter().zip(entries) {
        let is_same = found.path == entry.path.as_bytes()
            && match (&found.kind, &entry.kind) {
                (FoundKind::Folder { mode }, FileKind::Folder { mode: wanted }) => mode == wanted,
                (FoundKind::Link { to }, FileKind::Link { to: wanted }) => to == wanted.as_bytes(),
                (FoundKind::File { mode, stamp, .. }, FileKind::File { mode: wanted, bytes, pieces }) => {
                    mode == wanted && stamp.bytes == *bytes && has_content(dir, &found.path, *bytes, pieces)?
                }
                _ => false,
            };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_content(dir: &Path, path: &[u8], bytes: u64, pieces: &[BlobId]) -> io::Result<bool> {
    let mut at = 0;
    for wanted in pieces {
        let most = bytes.saturating_sub(at).min(FileTree::PIECE_BYTES as u64);
        if BlobId::of(piece(dir, path, at, most)?) != *wanted {
            return Ok(false);
        }
        at += most;
    }
    Ok(at == bytes)
}

async fn write(dir: &Path, tree: &FileTree, store: &AnyStore, id: &LogId) -> Result<(), RestoreError> {
    let folder = NewFolder::make(dir)?;
    for entry in &tree.entries {
        let (Some(mut file), FileKind::File { pieces, .. }) = (folder.add(entry)?, &entry.kind) else {
            continue;
        };
        for id_of_piece in pieces {
            let bytes = store.stored_blob(id, id_of_piece).await?;
            file.write_all(&bytes.ok_or_else(|| RestoreError::Missing(id_of_piece.clone()))?)?;
        }
    }
    folder.finish(&tree.entries)
}

/// A new folder that files, folders and links are written into, wherever they are from. Nothing outside of it is written, whatever their paths are: these
/// are walked without following links, and links are made last.
#[derive(Debug)]
pub struct NewFolder(PathBuf);

impl NewFolder {
    /// Makes an empty folder for this user alone at `path`, instead of what is there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(path: &Path) -> io::Result<Self> {
        remove_work_directory(path)?;
        make_private_folder(path)?;
        Ok(Self(path.to_owned()))
    }

    /// Adds a folder, or a file, which is returned empty. The folder in which it is must have been added before. Links are made by
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// [`RestoreError::Damaged`] when the path is none in this folder, and [`RestoreError::Io`].
    pub fn add(&self, entry: &FileEntry) -> Result<Option<File>, RestoreError> {
        match entry.kind {
            FileKind::Folder { .. } => {
                let (folder, name) = self.placed(entry)?;
                rustix::fs::mkdirat(&folder, name, Mode::RWXU).map_err(io::Error::from)?;
                Ok(None)
            }
            FileKind::File { mode, .. } => {
                let (folder, name) = self.placed(entry)?;
                let made = rustix::fs::openat(&folder, name, NEW, Mode::RUSR | Mode::WUSR);
                let file = File::from(made.map_err(io::Error::from)?);
                // It is open for writing, whatever its mode says.
                rustix::fs::fchmod(&file, permissions(mode)).map_err(io::Error::from)?;
                Ok(Some(file))
            }
            FileKind::Link { .. } => Ok(None),
        }
    }

    /// Makes the links of `entries`, and then gives the folders their permissions.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn finish(&self, entries: &[FileEntry]) -> Result<(), RestoreError> {
        for entry in entries {
            if let FileKind::Link { to } = &entry.kind {
                let (folder, name) = self.placed(entry)?;
                let to = CString::new(to.as_bytes()).map_err(io::Error::from)?;
                rustix::fs::symlinkat(to, &folder, name).map_err(io::Error::from)?;
            }
        }
        // Last, and the inner ones first: a folder may deny writing to its owner.
        for entry in entries.iter().rev() {
            if let FileKind::Folder { mode } = entry.kind {
                let (folder, name) = self.placed(entry)?;
                let mode = permissions(mode);
                rustix::fs::chmodat(&folder, name, mode, AtFlags::empty()).map_err(io::Error::from)?;
            }
        }
        Ok(())
    }

    /// The folder of an entry, opened without following links, and its name in it.
    fn placed(&self, entry: &FileEntry) -> Result<(OwnedFd, CString), RestoreError> {
        let path = entry.path.as_bytes();
        let (folders, name) = split(path);
        let is_wrong = |name: &[u8]| matches!(name, b"" | b"." | b"..") || name.contains(&0);
        if path.first() == Some(&b'/') || path.split(|byte| *byte == b'/').any(is_wrong) {
            return Err(RestoreError::Damaged(format!("`{}` is no path in a work directory", entry.path)));
        }
        let root = rustix::fs::openat(CWD, &self.0, DIR, Mode::empty()).map_err(io::Error::from)?;
        let mut folder = root;
        for name in folders {
            folder = rustix::fs::openat(&folder, name, DIR, Mode::empty()).map_err(io::Error::from)?;
        }
        Ok((folder, CString::new(name).map_err(io::Error::from)?))
    }
}

fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode as RawMode & 0o777)
}
