//! Changing the file: comments and the other settings stay.

use std::path::{Path, PathBuf};

use polylogue_config::diagnostic::Report;
use polylogue_config::source::{Source, Span};
use polylogue_config::yaml;
use serde_json::Value;

use super::{Setting, UserConfig, checked, values, written};
use crate::error::CliError;
use crate::whole_file;

impl UserConfig {
    /// Sets `setting` to `value` in the file, which is made if it is missing. Returns its path.
    pub(crate) fn set(given: Option<&Path>, setting: Setting, value: &str) -> Result<PathBuf, CliError> {
        let checked = checked(setting, value)?;
        let (config, _) = Self::found(given)?;
        let line = format!("{}: {}", setting.name(), written(value));
        let mut text = config.text.clone();
        match config.entry(setting) {
            Some(span) => text.replace_range(span, &line),
            None => {
                let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                text = format!("{text}{gap}{line}\n");
            }
        }
        config.save(setting, &text, Some(checked))
    }

    /// Removes `setting` from the file. Returns its path; `None` if it is not set there.
    pub(crate) fn unset(given: Option<&Path>, setting: Setting) -> Result<Option<PathBuf>, CliError> {
        let (config, _) = Self::found(given)?;
        let Some(span) = config.entry(setting) else { return Ok(None) };
        let mut text = config.text.clone();
        let end = text.get(span.end..).and_then(|rest| rest.find('\n')).map(|at| span.end + at + 1);
        text.replace_range(span.start..end.unwrap_or(text.len()), "");
        config.save(setting, &text, None).map(Some)
    }

    /// The key and the value of `setting` in the text.
    fn entry(&self, setting: Setting) -> Option<Span> {
        let name = self.path.display().to_string();
        let source = Source::new(&name, &self.text);
        // Positions are those behind a byte order mark.
        let skipped = self.text.len() - source.text.len();
        let root = yaml::parse(&mut Report::new(&source))?;
        let entry = root.entry(setting.name())?;
        Some(entry.key_span.start + skipped..entry.value.span.end.max(entry.key_span.end) + skipped)
    }

    /// Writes `text`, in which `setting` has `value` and all others are as before.
    fn save(self, setting: Setting, text: &str, value: Option<Value>) -> Result<PathBuf, CliError> {
        let path = self.path.display().to_string();
        let mut expected = self.values;
        match value {
            Some(value) => drop(expected.insert(setting.name().to_owned(), value)),
            None => drop(expected.shift_remove(setting.name())),
        }
        if values(text, &path).is_ok_and(|now| now == expected) {
            write(&self.path, text)
                .map_err(|error| CliError::failed(format!("`{path}` cannot be written: {error}")))?;
            return Ok(self.path);
        }
        let what =
            format!("`{}` cannot be changed in `{path}` because of how it is written there", setting.name());
        Err(CliError::usage(what).hint("edit the file"))
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    whole_file::replace(path, text)
}
