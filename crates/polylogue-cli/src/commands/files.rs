//! `polylogue files`: the files that the agents of a conversation have written.

use polylogue_core::{FileEntry, FileKind, FileTree};
use serde_json::json;

use super::{unwritable, write, write_rows};
use crate::args;
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::place;
use crate::screen::Sanitized;
use crate::stderr::print_note;

pub(crate) async fn run(cli: &args::Cli, args: &args::files::Files) -> Result<Exit, CliError> {
    let runtime = place::existing(cli.store.as_deref())?;
    let id = runtime.find(&args.id).await?;
    let files = runtime.files(&id).await?;
    let FileTree { entries, left_out } = files.tree();
    let listed = || entries.iter().filter(|entry| !matches!(entry.kind, FileKind::Folder { .. }));
    if entries.is_empty() {
        print_note(&format!("`{id}` has no files"));
    } else if let Some(to) = &args.to {
        if to.symlink_metadata().is_ok() {
            let what = format!("`{}` exists, and nothing is replaced", to.display());
            return Err(CliError::usage(what).hint("name a folder that does not exist"));
        }
        files.copy_to(to).await?;
        let count = counted(listed().count() as u64, "file");
        write(&Sanitized::row(&format!("{count} in {}", to.display())))?;
    } else {
        let rows: Result<Sanitized, CliError> = listed().map(|entry| row(entry, args.json)).collect();
        write_rows(&rows?, args.json)?;
    }
    if let Some(first) = left_out.first() {
        let count = counted(left_out.len() as u64, "file");
        print_note(&format!("{count} not stored, such as `{}`: {}", first.path, first.why));
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
