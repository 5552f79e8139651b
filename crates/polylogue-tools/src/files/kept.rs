//! Files of a conversation that follow it: the work directory is stored after each call that may have changed it.

mod restore;
mod scan;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polylogue_core::{
    AnyTool, BlobId, Blobs, FileEntry, FileKind, FilePath, FileTree, NotStored, Part, SkipReason,
    SkippedEntry, StoreError, StoredFiles, Tool, ToolCx, ToolError, ToolResult, ToolSpec,
};
use serde_json::Value;
use tokio::sync::Mutex;

pub use self::restore::{NewFolder, RestoreError, restore};
use self::scan::{Found, FoundKind, Scan, Stamp};
use crate::blocking::blocking;

/// Names of files that are not kept, which the model receives at most.
const NAMED: usize = 5;

/// Files up to this size are read at once: a program has just written them, so that they are in memory, and a thread for each would take
/// longer.
const AT_ONCE: u64 = 64 << 10;

/// Keeps the files of a work directory with the conversation: after each call of a tool that is [wrapped](Self::around), what has changed is
/// stored next to the log, under digests, and the result [refers](ToolResult::files) to the whole. [`restore`] makes the directory again, on any machine. Cloning
/// shares it.
///
/// Only files whose size, times or inode have changed are read. Links are kept as links and not followed. What is too large or no file is left out,
/// which the model reads.
///
/// ```
/// use polylogue_tools::code::{Sandbox, python};
/// use polylogue_tools::files::KeptFiles;
///
/// let sandbox = Sandbox::enclosed("work/session-1");
/// let files = KeptFiles::at("work/session-1");
/// let tool = files.around(python(sandbox));
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("KeptFiles({:?})", self.0.dir)]
pub struct KeptFiles(Arc<Inner>);

struct Inner {
    dir: PathBuf,
    state: Mutex<State>,
}

/// What this process knows of the files of a conversation.
#[derive(Default)]
struct State {
    /// Whether what the log says was read.
    is_ready: bool,
    /// The blobs that the store has.
    stored: HashSet<BlobId>,
    total_bytes: u64,
    /// The files as they were read last.
    read: HashMap<Vec<u8>, (Stamp, Vec<BlobId>)>,
    left_out: Vec<SkippedEntry>,
    /// What was found last, and stored for it; `None` if not all of it could be stored.
    last: Option<(Scan, StoredFiles)>,
}

impl KeptFiles {
    /// Keeps the files of the directory `dir`.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Inner { dir: dir.into(), state: Mutex::default() }))
    }

    /// Wraps `tool`: the files are kept after each of its calls.
    pub fn around(&self, tool: impl Tool) -> AnyTool {
        AnyTool::new(Keeping { tool: AnyTool::new(tool), files: self.clone() })
    }

    /// `outcome` with a reference to the files as they are now.
    async fn kept(&self, mut outcome: ToolResult, blobs: Blobs<'_>) -> ToolResult {
        let mut state = self.0.state.lock().await;
        let before = state.left_out.clone();
        match state.save(&self.0.dir, blobs).await {
            Ok(files) => outcome.files = Some(files),
            Err(why) => outcome
                .parts
                .push(Part::text(format!("(The files of the work directory are not kept: {why}.)"))),
        }
        if !state.left_out.is_empty() && state.left_out != before {
            outcome.parts.push(Part::text(note(&state.left_out)));
        }
        outcome
    }
}

/// What the model reads of files that are not kept.
fn note(left_out: &[SkippedEntry]) -> String {
    let named: Vec<String> =
        left_out.iter().take(NAMED).map(|left| format!("`{}` ({})", left.path, left.why)).collect();
    let more = left_out.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("(Not kept if the conversation continues elsewhere: {}{more}.)", named.join(", "))
}

impl State {
    async fn save(&mut self, dir: &Path, blobs: Blobs<'_>) -> Result<StoredFiles, NotStored> {
        self.learn(blobs).await?;
        let scanned = scan(dir).await?;
        let is_settled = !scanned.has_recent();
        let is_same = |(before, _): &&(Scan, StoredFiles)| is_settled && *before == scanned;
        if let Some((_, files)) = self.last.as_ref().filter(is_same) {
            return Ok(files.clone());
        }
        self.last = None;
        let Scan { found, mut left_out } = scanned.clone();
        let (mut tree, mut bytes, mut files) = (FileTree::default(), 0_u64, 0);
        let mut read = HashMap::new();
        for entry in found {
            let path = entry.path.clone();
            match self.entry_of(dir, entry, blobs, &mut read).await? {
                Ok(entry) => {
                    if let FileKind::File { bytes: size, .. } = &entry.kind {
                        (bytes, files) = (bytes.saturating_add(*size), files + 1);
                    }
                    tree.entries.push(entry);
                }
                Err(why) => left_out.push(SkippedEntry { path: FilePath::of(&path), why }),
            }
        }
        left_out.sort_by(|one, other| one.path.as_bytes().cmp(other.path.as_bytes()));
        (self.read, self.left_out) = (read, left_out.clone());
        tree.left_out = left_out;
        let left_out = tree.left_out.len() as u64;
        // The tree itself is small next to its files, and stored even where there is no room for these.
        let tree = self.put(&tree.to_bytes(), blobs).await?;
        let files = StoredFiles { tree, files, bytes, total_bytes: self.total_bytes, left_out };
        if files.left_out == scanned.left_out.len() as u64 {
            self.last = Some((scanned, files.clone()));
        }
        Ok(files)
    }

    /// What an earlier process has stored.
    async fn learn(&mut self, blobs: Blobs<'_>) -> Result<(), NotStored> {
        if self.is_ready {
            return Ok(());
        }
        if let Some(last) = blobs.last_files().await {
            let bytes = blobs.read(&last.tree).await?;
            let tree = bytes.and_then(|bytes| FileTree::from_bytes(&bytes).ok()).unwrap_or_default();
            self.stored.extend(tree.pieces().cloned());
            self.stored.insert(last.tree);
            self.total_bytes = last.total_bytes;
        }
        self.is_ready = true;
        Ok(())
    }

    /// The entry of a tree for what was found, whose content is stored; or why it has none.
    async fn entry_of(
        &mut self,
        dir: &Path,
        found: Found,
        blobs: Blobs<'_>,
        read: &mut HashMap<Vec<u8>, (Stamp, Vec<BlobId>)>,
    ) -> Result<Result<FileEntry, SkipReason>, NotStored> {
        let path = FilePath::of(&found.path);
        let kind = match found.kind {
            FoundKind::Folder { mode } => FileKind::Folder { mode },
            FoundKind::Link { to } => FileKind::Link { to: FilePath::of(&to) },
            FoundKind::File { mode, stamp, is_recent } => {
                let pieces = match self.read.remove(&found.path) {
                    Some((before, pieces)) if before == stamp => Ok(pieces),
                    _ => self.store_file(dir, &found.path, stamp.bytes, blobs).await?,
                };
                let pieces = match pieces {
                    Ok(pieces) => pieces,
                    Err(why) => return Ok(Err(why)),
                };
                if !is_recent {
                    read.insert(found.path, (stamp, pieces.clone()));
                }
                FileKind::File { mode, bytes: stamp.bytes, pieces }
            }
        };
        Ok(Ok(FileEntry { path, kind }))
    }

    /// Stores the content of a file, `bytes` at most: one that grows meanwhile is kept as long as it was.
    async fn store_file(
        &mut self,
        dir: &Path,
        path: &[u8],
        bytes: u64,
        blobs: Blobs<'_>,
    ) -> Result<Result<Vec<BlobId>, SkipReason>, NotStored> {
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < bytes {
            let (dir, path) = (dir.to_owned(), path.to_vec());
            let most = (bytes - at).min(FileTree::PIECE_BYTES as u64);
            let piece = match bytes <= AT_ONCE {
                true => scan::piece(&dir, &path, at, most),
                false => on_disk(move || scan::piece(&dir, &path, at, most)).await,
            };
            let Ok(piece) = piece else { return Ok(Err(SkipReason::Unreadable)) };
            if piece.len() as u64 != most {
                // It was cut off meanwhile: its next state is kept after the next call.
                return Ok(Err(SkipReason::Unreadable));
            }
            if !self.has_room(&piece) {
                return Ok(Err(SkipReason::NoRoom));
            }
            pieces.push(self.put(&piece, blobs).await?);
            at += most;
        }
        Ok(Ok(pieces))
    }

    fn has_room(&self, piece: &[u8]) -> bool {
        let total = self.total_bytes.saturating_add(piece.len() as u64);
        total <= FileTree::MAX_TOTAL_BYTES || self.stored.contains(&BlobId::of(piece))
    }

    async fn put(&mut self, bytes: &[u8], blobs: Blobs<'_>) -> Result<BlobId, NotStored> {
        let id = BlobId::of(bytes);
        if !self.stored.contains(&id) {
            blobs.store(bytes).await?;
            self.stored.insert(id.clone());
            self.total_bytes = self.total_bytes.saturating_add(bytes.len() as u64);
        }
        Ok(id)
    }
}

/// The files, folders and links of the directory `dir`, without following links and without reading files: none has pieces. Nothing, if there is no
/// such directory.
///
/// # Errors
/// When the directory cannot be read.
pub async fn tree_of(dir: &Path) -> io::Result<FileTree> {
    let dir = dir.to_owned();
    let Scan { found, left_out } = on_disk(move || Scan::of(&dir)).await?;
    let entries = found.into_iter().map(|Found { path, kind }| {
        let kind = match kind {
            FoundKind::Folder { mode } => FileKind::Folder { mode },
            FoundKind::Link { to } => FileKind::Link { to: FilePath::of(&to) },
            FoundKind::File { mode, stamp, .. } => {
                FileKind::File { mode, bytes: stamp.bytes, pieces: Vec::new() }
            }
        };
        FileEntry { path: FilePath::of(&path), kind }
    });
    Ok(FileTree { entries: entries.collect(), left_out })
}

/// The bytes of the file `path` in the directory `dir` from `at` on, [`FileTree::PIECE_BYTES`] of them at most. Links are not followed.
///
/// # Errors
/// When there is no such file, or it cannot be read.
pub async fn piece_of(dir: &Path, path: &FilePath, at: u64) -> io::Result<Vec<u8>> {
    let (dir, path) = (dir.to_owned(), path.as_bytes().to_vec());
    on_disk(move || scan::piece(&dir, &path, at, FileTree::PIECE_BYTES as u64)).await
}

/// What is in `dir`.
async fn scan(dir: &Path) -> Result<Scan, NotStored> {
    let (scanned, place) = (dir.to_owned(), dir.display().to_string());
    let scanned = on_disk(move || Scan::of(&scanned)).await;
    scanned.map_err(|error| NotStored::Store(StoreError::Io { place, why: error.to_string() }))
}

/// Runs what waits for a disk apart from what conversations wait for.
async fn on_disk<T: Send + 'static>(run: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    blocking(run).await.unwrap_or_else(|error| Err(io::Error::other(error.0)))
}

struct Keeping {
    tool: AnyTool,
    files: KeptFiles,
}

impl Tool for Keeping {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        // A call that failed may have changed files, too.
        let outcome = self.tool.call(args, cx).await.unwrap_or_else(|error| ToolResult::failed(error.0));
        Ok(self.files.kept(outcome, cx.results.blobs()).await)
    }
}
