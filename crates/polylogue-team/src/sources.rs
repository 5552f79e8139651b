//! What a team was read from, which is kept with its conversations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use polylogue_core::Media;
use serde::{Deserialize, Serialize};

/// Values with which a caller overrides a team file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// Values of variables, which the file must define.
    pub vars: BTreeMap<String, String>,
    /// The task, literally: braces in it are not replaced.
    pub task: Option<String>,
    /// The model of every agent, as `provider:model`, including agents with their own model and teams within the team.
    pub model: Option<String>,
    /// The model of agents for which the files name none, as `provider:model`. Weaker than `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
    /// Names of custom tools that agents can have.
    pub tools: Vec<String>,
    /// Whether team files may name teams of files outside the folder of the outermost one.
    pub outside_files: bool,
}

/// What a team was read from: its files, and the values of its caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sources {
    /// The outermost file, as the caller named it.
    pub(crate) file: String,
    /// The folder from which relative paths lead.
    pub(crate) folder: PathBuf,
    /// The texts of all files, by the paths by which they were read.
    pub(crate) files: BTreeMap<PathBuf, String>,
    /// The pictures, sounds and documents that the team attaches, in the same way.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) media: BTreeMap<PathBuf, Media>,
    pub(crate) overrides: Overrides,
}

impl Sources {
    pub(crate) fn of(file: &str, text: &str, folder: PathBuf, overrides: &Overrides) -> Self {
        let files = BTreeMap::from([(PathBuf::from(file), text.to_owned())]);
        Self { file: file.to_owned(), folder, files, media: BTreeMap::new(), overrides: overrides.clone() }
    }

    /// Keeps a file. What is not text is not a part of a team.
    pub(crate) fn keep(&mut self, path: &Path, bytes: &[u8]) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.files.insert(path.to_owned(), text.to_owned());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}
