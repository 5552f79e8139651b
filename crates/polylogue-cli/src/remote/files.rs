//! `files` of a conversation of a server.

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use polylogue_client::wire::files as wire;
use polylogue_core::{FileEntry, FileKind, FilePath, LogId};
use polylogue_runtime::files::NewFolder;
use polylogue_sandbox::remove_work_directory;

use super::named_server::Remote;
use crate::args::files::Files;
use crate::commands::files::{must_not_exist, print, target};
use crate::error::{CliError, Exit};

pub(super) async fn run(args: &Files, remote: &Remote) -> Result<Exit, CliError> {
    let id = remote.client.find(&args.id).await?.id;
    let wire::Files { files, folders, links, left_out } = remote.client.files(&id).await?;
    let entries = entries(files, folders, links);
    if let Some(to) = target(args, &entries)? {
        copy(remote, &id, &entries, to).await?;
    }
    print(args, &id, &entries, left_out.into_iter().map(|left| (left.path, left.why)))
}

/// All in the order of a tree: each folder before what it contains.
fn entries(files: Vec<wire::File>, folders: Vec<wire::Folder>, links: Vec<wire::Link>) -> Vec<FileEntry> {
    let entry = |path, kind| FileEntry { path: FilePath::Text(path), kind };
    let folders =
        folders.into_iter().map(|folder| entry(folder.path, FileKind::Folder { mode: folder.mode }));
    let files = files.into_iter().map(|wire::File { path, bytes, mode }| {
        entry(path, FileKind::File { mode, bytes, pieces: Vec::new() })
    });
    let links =
        links.into_iter().map(|link| entry(link.path, FileKind::Link { to: FilePath::Text(link.to) }));
    let mut entries: Vec<FileEntry> = folders.chain(files).chain(links).collect();
    entries.sort_by(|one, other| names(one).cmp(names(other)));
    entries
}

fn names(entry: &FileEntry) -> impl Iterator<Item = &[u8]> {
    entry.path.as_bytes().split(|byte| *byte == b'/')
}

/// Copies them into the folder `to`, which has another name until it is complete.
async fn copy(remote: &Remote, id: &LogId, entries: &[FileEntry], to: &Path) -> Result<(), CliError> {
    // A folder may be written with a slash at its end, which belongs to no name.
    let to = to.components().as_path();
    let mut new = to.as_os_str().to_owned();
    new.push(".restored");
    let new = PathBuf::from(new);
    must_not_exist(&new)?;
    let copied = fill(remote, id, entries, &new).await;
    let copied = copied.and_then(|()| std::fs::rename(&new, to).map_err(|error| unwritten(to, &error)));
    copied.inspect_err(|_| {
        // Why it was not copied is the error that counts.
        let _ = remove_work_directory(&new);
    })
}

/// A server can name any path: what leads out of the folder is refused.
async fn fill(remote: &Remote, id: &LogId, entries: &[FileEntry], new: &Path) -> Result<(), CliError> {
    let folder = NewFolder::make(new).map_err(|error| unwritten(new, &error))?;
    for entry in entries {
        let Some(mut file) = folder.add(entry).map_err(|error| unwritten(new, &error))? else { continue };
        let content = remote.client.file(id, &entry.path.to_string()).await?;
        file.write_all(&content).map_err(|error| unwritten(new, &error))?;
    }
    folder.finish(entries).map_err(|error| unwritten(new, &error))
}

fn unwritten(folder: &Path, error: &dyn Display) -> CliError {
    CliError::failed(format!("`{}` cannot be written: {error}", folder.display()))
}
