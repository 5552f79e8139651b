//! The files of a conversation: stored with it, or in its work directory on this machine.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polylogue_core::{
    AnyStore, Event, Features, FileEntry, FileKind, FilePath, FileTree, LogId, Queue as _, Store as _,
    StoreError, StoredFiles,
};
#[cfg(unix)]
use polylogue_tools::files::{piece_of, tree_of};

pub use crate::error::FilesPlace;
use crate::stored::is_imported;
use crate::work_dir::{copy_folder, restored};
use crate::{Error, FilesPolicy, Result, Runtime, StoreLocation};
#[cfg(unix)]
pub use polylogue_tools::files::{NewFolder, RestoreError};

/// The files of a conversation, as [`Runtime::files`] finds them.
#[derive(Debug, Clone)]
pub struct RunFiles {
    id: LogId,
    store: AnyStore,
    tree: FileTree,
    source: Source,
}

/// Where the contents are.
#[derive(Debug, Clone)]
enum Source {
    /// In the store.
    Stored(StoredFiles),
    /// In this work directory.
    Folder(PathBuf),
}

impl Runtime {
    /// The files of the conversation `id`: if they [are kept](crate::FilesPolicy::Kept), those after its last finished call, from any machine that
    /// has the store; else those that its work directory on this machine has. None, if it has no work directory, or was imported: the file of
    /// a conversation has no files of its agents.
    ///
    /// # Errors
    /// When there is no such conversation, or what is stored is damaged. [`Error::FilesElsewhere`] when its files are in a volume that is not
    /// mounted here, or on another machine.
    pub async fn files(&self, id: &LogId) -> Result<RunFiles> {
        let events: Vec<Arc<Event>> = self.store().read(id, 0).await?.into_iter().map(Arc::new).collect();
        let store = self.store().clone();
        let is_imported = is_imported(&store.meta(id).await?);
        let (tree, source) = match StoredFiles::last_of(&events).filter(|_| !is_imported) {
            Some(files) => {
                let tree = stored_tree(&store, id, &files, events.len() as u64).await?;
                (tree, Source::Stored(files))
            }
            None => {
                let dir = self.place().work_dir(id)?;
                let tree = tree_of(&dir).await.map_err(|error| unread(&dir, &error))?;
                if tree == FileTree::default() && !is_imported {
                    self.check_files_are_here(id).await?;
                }
                (tree, Source::Folder(dir))
            }
        };
        Ok(RunFiles { id: id.clone(), store, tree, source })
    }

    /// Refuses a conversation whose files are in a folder that this process does not have.
    async fn check_files_are_here(&self, id: &LogId) -> Result<()> {
        let needs = match self.store().queue() {
            Some(queue) => queue.needs(id).await?,
            None => Features::none(),
        };
        let of_machine = self.place().clone().with_files(FilesPolicy::Local).files_feature();
        let own = [self.place().files_feature(), of_machine];
        let is_own = |word: &str| own.iter().any(|own| own.as_deref() == Some(word));
        let elsewhere = |place| Err(Error::FilesElsewhere { id: id.clone(), place });
        let mut others = needs.words().filter(|word| !is_own(word));
        if let Some(place) = others.find_map(StoreLocation::files_place) {
            return elsewhere(place);
        }
        let has_files = self.may_have_files(id).await;
        match self.place().check_volume() {
            // Not each conversation has files.
            Err(Error::NoVolume(folder)) if has_files => elsewhere(FilesPlace::Volume(folder)),
            _ => Ok(()),
        }
    }

    /// Whether agents of the conversation write files or run programs, as far as its team can be read.
    async fn may_have_files(&self, id: &LogId) -> bool {
        let team = self.stored_document(id).await.and_then(|document| document.team());
        team.is_ok_and(|stored| stored.team.needs_workplace())
    }
}

impl RunFiles {
    /// What there is, without the contents: each folder before what it contains.
    pub fn tree(&self) -> &FileTree {
        &self.tree
    }

    /// The file with this path in the work directory, such as `notes/a.txt`. Links are no files.
    pub fn file(&self, path: &FilePath) -> Option<&FileEntry> {
        let is_file = |entry: &&FileEntry| matches!(entry.kind, FileKind::File { .. });
        self.tree.entries.iter().filter(is_file).find(|entry| entry.path.as_bytes() == path.as_bytes())
    }

    /// The piece `number` of a file of the tree, from 0 on, with at most [`FileTree::PIECE_BYTES`]; `None` after the last one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn piece(&self, entry: &FileEntry, number: usize) -> Result<Option<Vec<u8>>> {
        let FileKind::File { bytes, pieces, .. } = &entry.kind else { return Ok(None) };
        match &self.source {
            Source::Stored(_) => {
                let Some(piece) = pieces.get(number) else { return Ok(None) };
                let found = self.store.stored_blob(&self.id, piece).await?;
                let found = found.ok_or_else(|| damaged(&self.id, format!("the blob {piece} is missing"), 0));
                Ok(Some(found?.to_vec()))
            }
            Source::Folder(dir) => {
                let at = (FileTree::PIECE_BYTES as u64).saturating_mul(number as u64);
                if at >= *bytes {
                    return Ok(None);
                }
                let read = piece_of(dir, &entry.path, at).await;
                read.map(Some).map_err(|error| unread(&dir.join(entry.path.to_string()), &error))
            }
        }
    }

    /// Writes all of them into the folder `to`, which must not exist. Nothing outside of it is written.
    ///
    /// # Errors
    /// When there is something at `to`, or the files cannot be read or written.
    pub async fn copy_to(&self, to: &Path) -> Result<()> {
        // A folder may be written with a slash at its end, which belongs to no name.
        let to = to.components().as_path();
        // It is written under another name first.
        let mut written = to.as_os_str().to_owned();
        written.push(".restored");
        let written = PathBuf::from(written);
        if let Some(path) = [to, written.as_path()].into_iter().find(|path| path.symlink_metadata().is_ok()) {
            let why = "it exists, and nothing is replaced".into();
            return Err(Error::Io { path: path.to_owned(), what: "written", why });
        }
        match &self.source {
            Source::Stored(files) => restored(to, &self.id, (files, true), &self.store).await,
            Source::Folder(dir) => {
                let (from, target) = (dir.clone(), to.to_owned());
                let copied = tokio::task::spawn_blocking(move || copy_folder(&from, &target)).await;
                let copied = copied.unwrap_or_else(|error| Err(io::Error::other(error)));
                copied.map_err(|error| Error::Io {
                    path: to.to_owned(),
                    what: "written",
                    why: error.to_string(),
                })
            }
        }
    }
}

async fn stored_tree(store: &AnyStore, id: &LogId, files: &StoredFiles, events: u64) -> Result<FileTree> {
    let bytes = store.stored_blob(id, &files.tree).await?;
    let bytes = bytes.ok_or_else(|| damaged(id, format!("the blob {} is missing", files.tree), events))?;
    FileTree::from_bytes(&bytes).map_err(|why| damaged(id, why, events))
}

fn damaged(id: &LogId, why: String, intact: u64) -> Error {
    StoreError::Damaged { place: format!("the files of `{id}`"), why, intact }.into()
}

fn unread(path: &Path, error: &io::Error) -> Error {
    Error::Io { path: path.to_owned(), what: "read", why: error.to_string() }
}

#[cfg(not(unix))]
async fn tree_of(_: &Path) -> io::Result<FileTree> {
    Ok(FileTree::default())
}

#[cfg(not(unix))]
async fn piece_of(_: &Path, _: &FilePath, _: u64) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}
