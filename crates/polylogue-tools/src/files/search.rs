//! Searches files.

use polylogue_core::{ToolError, ToolResult};
use regex::Regex;
use rustix::fs::FileType;
use rustix::io::Errno;
use serde_json::Value;

use super::arguments::{text, text_if_given};
use super::folder::{Folder, MAX_FILE_BYTES, wrong};
use super::look::MAX_DEPTH;

/// Maximum number of found lines, and of characters of each.
const MAX_FOUND: usize = 200;
const MAX_SHOWN: usize = 300;
/// Maximum number of searched files, and of bytes.
const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 256 << 20;

struct Search<'a> {
    folder: &'a Folder,
    pattern: Regex,
    found: Vec<String>,
    files: usize,
    bytes: u64,
    too_large: usize,
}

/// `search_files`.
pub(super) fn search(folder: &Folder, args: &Value) -> Result<ToolResult, ToolError> {
    let pattern = Regex::new(text(args, "pattern")?)
        .map_err(|error| ToolError(format!("`pattern` is not a valid regular expression: {error}")))?;
    let path = text_if_given(args, "path")?;
    let names = folder.names(path)?;
    let mut search = Search { folder, pattern, found: Vec::new(), files: 0, bytes: 0, too_large: 0 };
    match folder.entries(&names) {
        Ok(_) => search.directory(&names),
        Err(Errno::NOENT) if names.is_empty() => {}
        Err(Errno::NOTDIR) => search.lines(&names, &folder.read(&names)?),
        Err(error) => return Err(wrong(path, error)),
    }
    Ok(ToolResult::done(search.into_text()))
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.found.len() > MAX_FOUND || self.files >= MAX_FILES || self.bytes >= MAX_BYTES
    }

    fn directory(&mut self, names: &[String]) {
        for entry in self.folder.entries(names).into_iter().flatten() {
            if self.is_over() {
                return;
            }
            let inner = [names, &[entry.name]].concat();
            match entry.kind {
                FileType::Directory if inner.len() < MAX_DEPTH => self.directory(&inner),
                FileType::RegularFile if entry.bytes <= MAX_FILE_BYTES => {
                    self.files += 1;
                    self.bytes += entry.bytes;
                    // What cannot be read has no lines.
                    self.folder.read(&inner).into_iter().for_each(|content| self.lines(&inner, &content));
                }
                FileType::RegularFile => self.too_large += 1,
                _ => {}
            }
        }
    }

    fn lines(&mut self, names: &[String], content: &[u8]) {
        if content.contains(&0) {
            return;
        }
        let (path, content) = (names.join("/"), String::from_utf8_lossy(content));
        for (nth, line) in content.lines().enumerate().filter(|(_, line)| self.pattern.is_match(line)) {
            let shown: String = line.chars().take(MAX_SHOWN).collect();
            self.found.push(format!("{path}:{}: {shown}", nth + 1));
            if self.found.len() > MAX_FOUND {
                return;
            }
        }
    }

    fn into_text(mut self) -> String {
        let stopped = self.is_over();
        self.found.truncate(MAX_FOUND);
        if self.found.is_empty() {
            self.found.push("Nothing was found.".into());
        }
        if stopped {
            self.found.push("(there may be more: search a part of it, or for less)".into());
        }
        if self.too_large > 0 {
            self.found.push(format!("({} files are too large to be searched)", self.too_large));
        }
        self.found.join("\n")
    }
}
