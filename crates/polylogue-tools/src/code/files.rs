//! Which files a program wrote.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::SystemTime;

/// How many files are looked at, and how many are named.
const MAX_FILES: usize = 10_000;
const MAX_NAMED: usize = 20;

/// The files in a work directory: size and time of the last change, by path.
pub(crate) struct Files(BTreeMap<String, (u64, Option<SystemTime>)>);

impl Files {
    /// What is in `dir` now. Links are not followed, so nothing outside is looked at.
    pub(crate) fn of(dir: &Path) -> Self {
        let mut found = BTreeMap::new();
        let mut open = VecDeque::from([dir.to_owned()]);
        let mut seen = 0;
        while let Some(inner) = open.pop_front() {
            for entry in std::fs::read_dir(inner).into_iter().flatten().flatten() {
                seen += 1;
                if seen > MAX_FILES {
                    return Self(found);
                }
                let Ok(about) = entry.metadata() else { continue };
                if about.is_dir() {
                    open.push_back(entry.path());
                } else if let (true, Ok(path)) = (about.is_file(), entry.path().strip_prefix(dir)) {
                    found.insert(path.display().to_string(), (about.len(), about.modified().ok()));
                }
            }
        }
        Self(found)
    }

    /// What was written since, the program itself excepted; none when nothing was.
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
