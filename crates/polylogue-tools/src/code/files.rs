//! Finds the files that a program wrote.

use std::collections::{BTreeMap, VecDeque};

use polylogue_sandbox::Sandbox;
use rustix::fs::FileType;

use crate::blocking::blocking;
use crate::files::Folder;

/// Maximum number of files, their depth, and how many are named.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 32;
/// Maximum total length of their paths in bytes.
const MAX_PATHS: usize = 4 << 20;
const MAX_NAMED: usize = 20;

/// The state of a file: size and modification time.
type State = (u64, (i64, i64));

/// The files in a work directory by path.
#[derive(Default)]
pub(crate) struct Files(BTreeMap<String, State>);

impl Files {
    /// The current files in the work directory of `sandbox`.
    ///
    /// Directories are opened step by step without following links, so that concurrent programs cannot make it read outside.
    pub(crate) async fn of(sandbox: &Sandbox) -> Self {
        let folder = Folder::of(sandbox);
        // A list that cannot be made is empty: it is for information only.
        blocking(move || Self::in_folder(&folder)).await.unwrap_or_default()
    }

    fn in_folder(folder: &Folder) -> Self {
        let mut found = BTreeMap::new();
        let mut open = VecDeque::from([Vec::new()]);
        let (mut seen, mut paths) = (0, 0);
        while let Some(names) = open.pop_front() {
            for entry in folder.entries(&names).into_iter().flatten() {
                let inner = [&*names, &[entry.name]].concat();
                seen += 1;
                paths += inner.iter().map(String::len).sum::<usize>();
                if seen > MAX_FILES || paths > MAX_PATHS {
                    return Self(found);
                }
                match entry.kind {
                    FileType::Directory if inner.len() < MAX_DEPTH => open.push_back(inner),
                    FileType::RegularFile => {
                        found.insert(inner.join("/"), (entry.bytes, entry.changed));
                    }
                    _ => {}
                }
            }
        }
        Self(found)
    }

    /// The files that were written since, except the program itself.
    pub(crate) fn written_since(&self, before: &Self, program: &str) -> Option<String> {
        let written: Vec<_> = self
            .0
            .iter()
            .filter(|(path, about)| *path != program && before.0.get(*path) != Some(about))
            .map(|(path, (bytes, _))| format!("`{path}` ({bytes} bytes)"))
            .collect();
        let named = written.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
        match written.len() {
            0 => None,
            count if count > MAX_NAMED => {
                Some(format!("Files written: {named}, and {} more", count - MAX_NAMED))
            }
            _ => Some(format!("Files written: {named}")),
        }
    }
}
