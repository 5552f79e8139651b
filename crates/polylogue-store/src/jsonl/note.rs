//! The file next to a log with the name of its writer, the head of the log, and what lists show of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use polylogue_core::chain::Link;
use polylogue_core::{Listing, LogId, Meta, Parent, Summary, Timestamp};
use polylogue_files::private_options;
use serde::{Deserialize, Serialize};

use crate::claims;
use crate::head::Head;
use crate::sealed::{sealed, unsealed};

/// The position of another process's mark that it has taken over the log: after the head, so that the writer does not
/// overwrite it.
const MARK: usize = Head::BYTES;
const MARK_BYTES: usize = 32;
/// The position of the writer's name.
const HOLDER: usize = MARK + MARK_BYTES;
const HOLDER_BYTES: usize = 128;
/// The position of the entry in lists, a line of JSON.
const ENTRY: usize = HOLDER + HOLDER_BYTES;

/// What lists show of a log, sealed with its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    title: String,
    #[serde(rename = "created_ms")]
    created: Timestamp,
    pub(super) has_team: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<Parent>,
    /// The length of the log's file. A file of another length was written since.
    pub(super) bytes: u64,
    pub(super) summary: Summary,
}

impl Entry {
    pub(super) fn new(meta: &Meta, bytes: u64, summary: Summary) -> Self {
        let Meta { title, created, team, parent } = meta;
        let (title, parent) = (title.clone(), parent.clone());
        Self { title, created: *created, has_team: !team.is_null(), parent, bytes, summary }
    }

    pub(super) fn listing(self, id: LogId) -> Listing {
        let Self { title, created, has_team, parent, summary, .. } = self;
        let (is_damaged, is_archived) = (false, false);
        Listing { id, title, created, has_team, parent, summary, is_damaged, is_archived }
    }
}

/// The content of such a file.
#[derive(Debug, Default)]
pub(super) struct Note {
    pub(super) head: Option<Head>,
    /// The process that writes; empty if there is none.
    pub(super) holder: String,
    /// What lists show, if it is that of the head.
    pub(super) entry: Option<Entry>,
}

impl Note {
    pub(super) fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_default();
        let holder = String::from_utf8_lossy(bytes.get(HOLDER..ENTRY).unwrap_or_default()).trim().to_owned();
        let head = Head::read(&bytes);
        // The line before it may have been longer.
        let line = bytes.get(ENTRY..).unwrap_or_default().split(|byte| *byte == b'\n').next();
        let entry = head.as_ref().zip(line).and_then(|(head, line)| unsealed(line.to_vec(), head.link));
        Self { head, holder, entry }
    }
}

/// Creates the file of a new claim. It is a new file, so that processes with the old one open cannot change it.
pub(super) fn begin(path: &Path, draft: &Path, head: &Head, entry: &Entry) -> io::Result<File> {
    let mut text = head.line();
    text.resize(HOLDER - 1, b' ');
    text.push(b'\n');
    text.extend_from_slice(&holder_line(&claims::this_process()));
    text.extend_from_slice(entry_line(entry, head.link).as_bytes());
    let mut file = private_options().read(true).write(true).create(true).truncate(true).open(draft)?;
    let written = file.write_all(&text).and_then(|()| fs::rename(draft, path));
    if written.is_err() {
        let _ = fs::remove_file(draft);
    }
    written.map(|()| file)
}

fn holder_line(holder: &str) -> Vec<u8> {
    let mut line = holder.as_bytes().to_vec();
    line.resize(HOLDER_BYTES - 1, b' ');
    line.push(b'\n');
    line
}

fn entry_line(entry: &Entry, link: Link) -> String {
    sealed(entry, link) + "\n"
}

/// Updates the head.
pub(super) fn write(file: &mut File, head: &Head) -> io::Result<()> {
    write_at(file, 0, &head.line())
}

/// Updates the entry in lists, after the head.
pub(super) fn write_entry(file: &mut File, entry: &Entry, link: Link) -> io::Result<()> {
    write_at(file, ENTRY, entry_line(entry, link).as_bytes())
}

fn write_at(file: &mut File, at: usize, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at as u64))?;
    file.write_all(bytes)
}

/// Marks the claim as released.
pub(super) fn end(file: &mut File, head: &Head) -> io::Result<()> {
    write(file, &Head { lease_ms: 0, ..head.clone() })?;
    write_at(file, HOLDER, &holder_line(""))
}

/// Marks the log as taken over by `fence`.
pub(super) fn mark(path: &Path, fence: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    write_at(&mut file, MARK, fence.to_string().as_bytes())?;
    file.sync_all()
}

/// Whether another process has taken over the log.
pub(super) fn is_marked(file: &mut File) -> bool {
    let mut mark = [b' '; MARK_BYTES];
    let read = file.seek(SeekFrom::Start(MARK as u64)).and_then(|_| file.read(&mut mark));
    read.is_ok() && mark.iter().any(u8::is_ascii_digit)
}
