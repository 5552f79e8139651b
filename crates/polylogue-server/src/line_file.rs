//! Files with a line of JSON for each note to the next process.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;

/// Adds a line to the file, which is made with its folder when it is needed. One write, so that lines of several requests are not mixed.
pub(crate) fn append(file: &Path, line: &impl Serialize) -> io::Result<()> {
    // It begins with a line break, too: one before it can be torn, when the disk was full.
    let mut text = vec![b'\n'];
    serde_json::to_writer(&mut text, line)?;
    text.push(b'\n');
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).append(true).open(file)?.write_all(&text)
}

/// Replaces the lines of the file, if there is one.
pub(crate) fn rewrite(file: &Path, lines: impl IntoIterator<Item: Serialize>) -> io::Result<()> {
    if !file.exists() {
        return Ok(());
    }
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, &line)?;
        text.push(b'\n');
    }
    polylogue_files::replace(file, &text)
}
