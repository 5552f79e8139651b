//! The teams that are served: files, with what the user trusts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use polylogue_core::LogId;
use polylogue_runtime::{Prepared, Runtime, StoreLocation};
use polylogue_server::{SourceError, TeamSource};
use polylogue_team::{Diagnostics, Loaded, Overrides};

use crate::commands::resume::Stored;
use crate::commands::team_version::TeamVersion;
use crate::error::{CliError, Exit};
use crate::launch::Launch;
use crate::screen::{Output, OutputStyle, Settings};
use crate::user_config::default_model;
use crate::{args, trust};

/// The teams that are served.
pub(super) struct TeamFiles {
    /// By id: the name of the file without its ending.
    files: BTreeMap<String, PathBuf>,
    /// The ids of those that a folder has, and the command line does not name.
    found: Vec<String>,
    default_model: Option<String>,
    options: args::TeamOptions,
}

/// Clients read events; nothing is written here.
const SETTINGS: Settings = Settings {
    output: Output::Json,
    looks: OutputStyle { color: false, live: false, terminal: false },
    stream: true,
    thoughts: false,
    verbose: false,
};

impl TeamFiles {
    /// The files that the command line names, and those in folders.
    pub(super) fn find(cli: &args::Cli, args: &args::serve::Serve) -> Result<Self, CliError> {
        let default_model = default_model(cli, &args.options.models)?.map(|given| given.value);
        let (mut files, mut found) = (BTreeMap::new(), Vec::new());
        for named in &args.teams {
            let is_folder = named.is_dir();
            for file in if is_folder { in_folder(named)? } else { vec![named.clone()] } {
                let id = id_of(&file)?;
                found.extend(is_folder.then(|| id.clone()));
                if let Some(other) = files.insert(id.clone(), file.clone()) {
                    let what = format!(
                        "`{}` and `{}` would both be the team `{id}`",
                        other.display(),
                        file.display()
                    );
                    return Err(CliError::usage(what).hint("give one of the files another name"));
                }
            }
        }
        Ok(Self { files, found, default_model, options: args.options.clone() })
    }

    /// The same without the teams of folders that cannot be prepared, each with the reason: one of them does not keep the others from
    /// being served. The error is that of the only team.
    pub(super) async fn usable(
        mut self,
        place: &StoreLocation,
    ) -> Result<(Self, Vec<(PathBuf, CliError)>), CliError> {
        let mut unusable = Vec::new();
        for id in std::mem::take(&mut self.found) {
            let Some(file) = self.files.get(&id) else { continue };
            if let Err(error) = self.prepare_file(file, place).await {
                unusable.extend(self.files.remove(&id).map(|file| (file, error)));
            }
        }
        match unusable.pop() {
            Some((_, error)) if self.files.is_empty() => Err(error),
            last => Ok((self, unusable.into_iter().chain(last).collect())),
        }
    }

    fn file(&self, team: &str) -> Result<&Path, CliError> {
        let file = self.files.get(team).map(PathBuf::as_path);
        file.ok_or_else(|| CliError::usage("there is no such team"))
    }

    /// What a caller gives, with the models of the command line.
    fn given(&self, given: &Overrides) -> Overrides {
        let (model, default_model) = (self.options.models.model.clone(), self.default_model.clone());
        Overrides { model, default_model, ..given.clone() }
    }

    async fn prepare_file(&self, file: &Path, place: &StoreLocation) -> Result<Prepared, CliError> {
        let given = self.given(&Overrides::default());
        let loaded = trust::load(file, &given, &self.options.allowed.permits)?;
        let mut launch = Launch::of(loaded, file, &self.options);
        // No person is at the terminal of a server.
        launch.asks = false;
        launch.shown = Some(&SETTINGS);
        launch.prepare(Some(place.path())).await
    }
}

impl TeamSource for TeamFiles {
    fn ids(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    fn load(&self, team: &str, given: &Overrides) -> Result<Loaded, SourceError> {
        Ok(trust::load(self.file(team)?, &self.given(given), &self.options.allowed.permits)?)
    }

    fn check(&self, team: Option<&str>, text: &str) -> Result<Loaded, Diagnostics> {
        let given = self.given(&Overrides::default());
        match team.and_then(|team| self.files.get(team)) {
            Some(file) => polylogue_team::parse_at(text, file, &given),
            None => polylogue_team::parse(text, "team.yaml", &given),
        }
    }

    fn prepare<'a>(
        &'a self,
        team: &'a str,
        place: &'a StoreLocation,
    ) -> BoxFuture<'a, Result<Prepared, SourceError>> {
        Box::pin(async move { Ok(self.prepare_file(self.file(team)?, place).await?) })
    }

    fn prepare_stored<'a>(
        &'a self,
        runtime: &'a Runtime,
        id: &'a LogId,
    ) -> BoxFuture<'a, Result<Prepared, SourceError>> {
        let options = args::RunOptions { team: self.options.clone(), ..args::RunOptions::default() };
        Box::pin(async move {
            // A conversation keeps the team that it began with.
            let version = TeamVersion::Pinned;
            let stored = Stored { id, options: &options, asks: false, settings: &SETTINGS, version };
            Ok(stored.prepare(Some(runtime.place().path()), runtime).await?)
        })
    }
}

impl From<CliError> for SourceError {
    fn from(error: CliError) -> Self {
        let is_usage = error.exit == Exit::Usage;
        let (what, hint) = error.into_parts();
        Self { what, hint, is_usage }
    }
}

/// The team files of a folder, not of folders within it.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let unreadable = |error: std::io::Error| {
        CliError::usage(format!("the folder `{}` cannot be read: {error}", folder.display()))
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") && path.is_file() {
            files.push(path);
        }
    }
    match files.is_empty() {
        true => Err(CliError::usage(format!("the folder `{}` has no team files", folder.display()))
            .hint("their names end in `.yaml`")),
        false => Ok(files),
    }
}

/// The id of the team in `file`, which is a part of paths.
fn id_of(file: &Path) -> Result<String, CliError> {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if stem.is_empty() || stem.len() > 100 || stem.starts_with('.') || !stem.chars().all(is_plain) {
        let what = format!("the name of `{}` cannot be part of a URL", file.display());
        return Err(CliError::usage(what).hint("rename it with letters, digits, `-`, `_` and `.`"));
    }
    Ok(stem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_plain_name_of_a_file() {
        assert_eq!(id_of(Path::new("teams/two-agents.v1.yaml")).unwrap(), "two-agents.v1");
        for wrong in ["teams/a b.yaml", "ä.yaml", ".yaml", ""] {
            assert!(id_of(Path::new(wrong)).is_err(), "{wrong}");
        }
    }
}
