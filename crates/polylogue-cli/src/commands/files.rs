//! `polylogue files`: the files that the agents of a conversation have written.

use std::path::Path;

use polylogue_core::{FileEntry, FileKind, FileTree, LogId};
use serde_json::json;

use super::{unwritable, write, write_rows};
use crate::args::{self, files::Files};
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::place;
use crate::screen::Sanitized;
use crate::stderr::print_note;

pub(crate) async fn run(cli: &args::Cli, args: &Files) -> Result<Exit, CliError> {
    let runtime = place::existing(&cli.named_store())?;
    let id = runtime.find(&args.id).await?;
    let files = runtime.files(&id).await?;
    let FileTree { entries, left_out } = files.tree();
    if let Some(to) = target(args, entries)? {
        files.copy_to(to).await?;
    }
    let left_out = left_out.iter().map(|left| (left.path.to_string(), left.why.to_string()));
    print(args, &id, entries, left_out)
}

/// The folder into which files are to be copied, if there are any.
pub(crate) fn target<'a>(args: &'a Files, entries: &[FileEntry]) -> Result<Option<&'a Path>, CliError> {
    let to = args.to.as_deref().filter(|_| !entries.is_empty());
    to.map_or(Ok(()), must_not_exist)?;
    Ok(to)
}

/// Refuses to replace what is at `path`.
pub(crate) fn must_not_exist(path: &Path) -> Result<(), CliError> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let what = format!("`{}` exists, and nothing is replaced", path.display());
    Err(CliError::usage(what).hint("name a folder that does not exist"))
}

/// Prints the files of the conversation `id`, or that they were copied. What is left out has a path and a reason.
pub(crate) fn print(
    args: &Files,
    id: &LogId,
    entries: &[FileEntry],
    mut left_out: impl ExactSizeIterator<Item = (String, String)>,
) -> Result<Exit, CliError> {
    let listed = || entries.iter().filter(|entry| !matches!(entry.kind, FileKind::Folder { .. }));
    if entries.is_empty() {
        print_note(&format!("`{id}` has no files"));
    } else if let Some(to) = &args.to {
        let count = counted(listed().count() as u64, "file");
        write(&Sanitized::row(&format!("{count} in {}", to.display())))?;
    } else {
        let rows: Result<Sanitized, CliError> = listed().map(|entry| row(entry, args.json)).collect();
        write_rows(&rows?, args.json)?;
    }
    let count = counted(left_out.len() as u64, "file");
    if let Some((path, why)) = left_out.next() {
        print_note(&format!("{count} left out, such as `{path}`: {why}"));
    }
    Ok(Exit::Done)
}

fn row(FileEntry { path, kind }: &FileEntry, json: bool) -> Result<Sanitized, CliError> {
    let (bytes, link) = match kind {
        FileKind::File { bytes, .. } => (Some(*bytes), None),
        FileKind::Link { to } => (None, Some(to)),
        FileKind::Folder { .. } => (None, None),
    };
    if json {
        return Sanitized::json(&json!({"path": path, "bytes": bytes, "link": link})).map_err(unwritable);
    }
    let bytes = bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    let link = link.map(|to| format!(" -> {to}")).unwrap_or_default();
    Ok(Sanitized::row(&format!("{bytes:>11}  {path}{link}")))
}
