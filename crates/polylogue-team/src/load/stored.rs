//! Teams that are stored with a conversation.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use polylogue_config::Config as _;
use polylogue_core::Media;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::Loader;
use super::file::{Files, Unreadable};
use crate::Diagnostics;
use crate::sources::{Overrides, Sources};
use crate::team::Team;

impl Files for Sources {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Unreadable> {
        let missing = || Unreadable { why: "it was not kept".to_owned(), hint: None };
        self.files.get(path).map(|text| text.clone().into_bytes()).ok_or_else(missing)
    }

    fn read_media(&self, path: &Path, _: u64) -> Result<Vec<u8>, Unreadable> {
        let missing = || Unreadable { why: "it was not kept".to_owned(), hint: None };
        self.media.get(path).and_then(Media::bytes).ok_or_else(missing)
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

    fn is_stored(&self) -> bool {
        true
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
        let sources = Sources::deserialize(deserializer)?;
        if !sources.files.contains_key(Path::new(&sources.file)) {
            return Err(de::Error::custom("its file is missing"));
        }
        load(sources).map_err(de::Error::custom)
    }
}

impl Team {
    /// Replaces values of variables of the team, read from the texts that it was read from: no file is opened.
    ///
    /// # Errors
    /// All mistakes at once: it has no such variable, or a value does not fit where it is used.
    ///
    /// ```
    /// use polylogue_team::{Overrides, parse};
    /// let text = "
    /// name: t
    /// vars: {topic: rain}
    /// task: 'Talk of {{topic}}.'
    /// agents: [{name: Ann}]
    /// chat: {participants: [Ann], stop: {max_turns: 1}}
    /// ";
    /// let team = parse(text, "t.yaml", &Overrides::default())?.team;
    /// let snow = team.with_vars([("topic".to_owned(), "snow".to_owned())])?;
    /// assert_eq!(snow.task.as_deref(), Some("Talk of snow."));
    /// # Ok::<(), polylogue_team::Diagnostics>(())
    /// ```
    pub fn with_vars(&self, vars: impl IntoIterator<Item = (String, String)>) -> Result<Self, Diagnostics> {
        let mut sources = self.sources.clone();
        sources.overrides.vars.extend(vars);
        load(sources)
    }
}

/// The team that was read from `sources`.
fn load(sources: Sources) -> Result<Team, Diagnostics> {
    let path = Path::new(&sources.file);
    let text = sources.files.get(path).map(String::as_str).unwrap_or_default();
    let loaded =
        Loader::new(&sources, &sources.overrides).outermost(text, &sources.file, sources.identity(path));
    let mut team = loaded?.team;
    team.sources = sources;
    Ok(team)
}
