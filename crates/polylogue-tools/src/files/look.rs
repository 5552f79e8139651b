//! Reads and lists files.

use polylogue_core::{Part, ToolError, ToolResult, ToolStatus};
use rustix::fs::FileType;
use rustix::io::Errno;
use serde_json::Value;

use super::arguments::{count, flag, text, text_if_given};
use super::folder::{Entry, Folder, wrong};

/// Maximum number of lines, and of bytes, that are read at once; less than the maximum of a result.
const MAX_LINES: usize = 2_000;
const MAX_BYTES: usize = 60_000;
/// Maximum number of listed entries, and their depth.
const MAX_ENTRIES: usize = 1_000;
pub(super) const MAX_DEPTH: usize = 32;

/// `read_file`.
pub(super) fn read(folder: &Folder, args: &Value) -> Result<ToolResult, ToolError> {
    let path = text(args, "path")?;
    let (first, most) = (count(args, "from")?.unwrap_or(1), count(args, "lines")?.unwrap_or(MAX_LINES));
    let content = folder.read(&folder.names(path)?)?;
    if content.contains(&0) {
        return Err(ToolError(format!("`{path}` is not text ({} bytes)", content.len())));
    }
    let content = String::from_utf8_lossy(&content);
    if content.is_empty() {
        return Ok(ToolResult::done(format!("`{path}` is empty")));
    }
    // A file of empty lines has as many as bytes: they are counted, not kept.
    let lines = || content.split_inclusive('\n');
    let all = lines().count();
    if first > all {
        return Err(ToolError(format!("`{path}` has {all} lines")));
    }
    let mut shown = String::new();
    let mut taken = 0;
    for line in lines().skip(first - 1).take(most.min(MAX_LINES)) {
        if taken > 0 && shown.len() + line.len() > MAX_BYTES {
            break;
        }
        shown.push_str(line);
        taken += 1;
    }
    Ok(ToolResult::new(ToolStatus::Done, parts(shown, first, taken, all)))
}

/// The text, and its position in the file unless it is the whole file.
fn parts(shown: String, first: usize, taken: usize, all: usize) -> Vec<Part> {
    let last = first + taken - 1;
    let mut parts = vec![Part::text(shown)];
    if taken < all {
        let more = if last < all { format!("; continue from {}", last + 1) } else { String::new() };
        parts.push(Part::text(format!("(lines {first} to {last} of {all}{more})")));
    }
    parts
}

/// `list_files`.
pub(super) fn list(folder: &Folder, args: &Value) -> Result<ToolResult, ToolError> {
    let path = text_if_given(args, "path")?;
    let (names, recursive) = (folder.names(path)?, flag(args, "recursive")?);
    let mut lines = Vec::new();
    match folder.entries(&names) {
        Ok(entries) => fill(folder, &names, "", entries, recursive, &mut lines),
        // It is made when the first file is.
        Err(Errno::NOENT) if names.is_empty() => {}
        Err(error) => return Err(wrong(path, error)),
    }
    Ok(ToolResult::done(match lines.len() {
        0 => "There are no files.".to_owned(),
        count if count > MAX_ENTRIES => {
            lines.truncate(MAX_ENTRIES);
            format!("{}\n(there is more)", lines.join("\n"))
        }
        _ => lines.join("\n"),
    }))
}

fn fill(
    folder: &Folder,
    names: &[String],
    prefix: &str,
    entries: Vec<Entry>,
    deep: bool,
    lines: &mut Vec<String>,
) {
    for Entry { name, kind, bytes, .. } in entries {
        if lines.len() > MAX_ENTRIES {
            return;
        }
        match kind {
            FileType::Directory => {
                lines.push(format!("{prefix}{name}/"));
                let inner = [names, std::slice::from_ref(&name)].concat();
                if let (true, true, Ok(entries)) = (deep, inner.len() < MAX_DEPTH, folder.entries(&inner)) {
                    fill(folder, &inner, &format!("{prefix}{name}/"), entries, deep, lines);
                }
            }
            FileType::RegularFile => lines.push(format!("{prefix}{name} ({bytes} bytes)")),
            FileType::Symlink => lines.push(format!("{prefix}{name} (a link, which is not followed)")),
            _ => lines.push(format!("{prefix}{name} (no file)")),
        }
    }
}
