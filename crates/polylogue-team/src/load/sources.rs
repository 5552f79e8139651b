//! What a team was read from, which is kept with its conversations.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use polylogue_config::Config as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::file::{Files, Unreadable};
use super::{Loader, Overrides};
use crate::team::Team;

/// What a team was read from: its files, and the values of its caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sources {
    /// The outermost file, as the caller named it.
    file: String,
    /// The folder from which relative paths lead.
    folder: PathBuf,
    /// The texts of all files, by the paths by which they were read.
    files: BTreeMap<PathBuf, String>,
    pub(crate) overrides: Overrides,
}

impl Sources {
    pub(super) fn of(file: &str, text: &str, folder: PathBuf, overrides: &Overrides) -> Self {
        let files = BTreeMap::from([(PathBuf::from(file), text.to_owned())]);
        Self { file: file.to_owned(), folder, files, overrides: overrides.clone() }
    }

    /// Keeps a file. What is no text is no part of a team.
    pub(super) fn keep(&mut self, path: &Path, bytes: &[u8]) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.files.insert(path.to_owned(), text.to_owned());
        }
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn load(self) -> Result<Team, String> {
        let path = Path::new(&self.file);
        let text = self.files.get(path).ok_or("its file is missing")?;
        let loaded = Loader::new(&self, &self.overrides).outermost(text, &self.file, self.identity(path));
        let mut team = loaded.map_err(|errors| errors.to_string())?.team;
        team.sources = self;
        Ok(team)
    }
}

impl Files for Sources {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Unreadable> {
        let missing = || Unreadable { why: "it was not kept".to_owned(), hint: None };
        self.files.get(path).map(|text| text.clone().into_bytes()).ok_or_else(missing)
    }

    fn list(&self, folder: &Path) -> Result<Vec<(String, bool)>, Unreadable> {
        let below = self.files.keys().filter_map(|path| path.strip_prefix(folder).ok());
        let found: BTreeMap<String, bool> = below
            .filter_map(|path| {
                let mut parts = path.components();
                let name = parts.next()?.as_os_str().to_str()?.to_owned();
                Some((name, parts.next().is_some()))
            })
            .collect();
        Ok(found.into_iter().collect())
    }

    fn identity(&self, path: &Path) -> PathBuf {
        let mut plain = PathBuf::new();
        for part in self.absolute(path).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => drop(plain.pop()),
                part => plain.push(part),
            }
        }
        plain
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}

/// A team is stored as what it was read from; a team that was not read from a file, as a file that says the same.
impl Serialize for Team {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.sources.is_empty() {
            return self.sources.serialize(serializer);
        }
        let text = serde_json::to_string(&self.write()).map_err(ser::Error::custom)?;
        Sources::of("team.json", &text, PathBuf::new(), &Overrides::default()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Team {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Sources::deserialize(deserializer)?.load().map_err(de::Error::custom)
    }
}
