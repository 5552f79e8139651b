//! The teams that are served: files, with what the user trusts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use polylogue_core::LogId;
use polylogue_models::Env;
use polylogue_runtime::stored::StoredDocument;
use polylogue_runtime::{Access, ModelOptions, Prepared, RunOptions, Runtime, StoreLocation, check_models};
use polylogue_server::{SourceError, TeamSource};
use polylogue_team::{Diagnostics, Grant, Loaded, Overrides};
use tracing::{info, warn};

use crate::commands::resume::Stored;
use crate::commands::team_version::TeamVersion;
use crate::error::{CliError, Exit};
use crate::launch::{Launch, UNWATCHED};
use crate::screen::Settings;
use crate::user_config::default_model;
use crate::{args, place, trust, user_prices};

/// People watch on the page: a script speaks at its pace.
const SERVED: Settings = Settings { paced: true, ..UNWATCHED };

/// The teams that are served.
pub(super) struct TeamFiles {
    /// The files and folders of the command line.
    named: Vec<Named>,
    known: Mutex<Known>,
    /// Teams that were prepared to see whether they can be served, by file, until they are served at the same place.
    ready: Mutex<BTreeMap<PathBuf, (PathBuf, Prepared)>>,
    default_model: Option<String>,
    /// The environment, with which texts of clients are checked.
    env: Env,
    options: args::TeamOptions,
    /// Whether all conversations share a budget of money.
    shared_budget: bool,
}

/// A file or a folder of the command line.
struct Named {
    path: PathBuf,
    /// Whether it was a folder when the server started: one that is gone since, such as with its disk, is no file.
    is_folder: bool,
}

impl Named {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), is_folder: path.is_dir() }
    }
}

/// The files as they were when they were looked at last.
#[derive(Default)]
struct Known {
    /// Those that are served, by id: the name of the file without its ending.
    served: BTreeMap<String, PathBuf>,
    /// All, with those that cannot be used.
    stamps: BTreeMap<PathBuf, Stamp>,
    /// Those that are not served because of their names, which was reported.
    misnamed: BTreeSet<PathBuf>,
    /// The folders that cannot be read, which was reported.
    unreadable: BTreeSet<PathBuf>,
}

impl Known {
    /// Reports folders that cannot be read since the last look, and those that can be read again.
    fn note_unreadable(&mut self, unreadable: Vec<(PathBuf, CliError)>) {
        let before = std::mem::take(&mut self.unreadable);
        for (folder, error) in unreadable {
            if !before.contains(&folder) {
                warn!(
                    error = error.into_parts().0,
                    "teams of a folder stay as they were when it was read last"
                );
            }
            self.unreadable.insert(folder);
        }
        for folder in before.difference(&self.unreadable) {
            info!(folder = %folder.display(), "a folder of teams can be read again");
        }
    }
}

/// The team files that there are.
#[derive(Default)]
struct Found {
    /// By the ids of their teams.
    files: BTreeMap<String, PathBuf>,
    /// Those of folders whose names cannot be ids, each with the reason.
    misnamed: Vec<(PathBuf, CliError)>,
    /// Those whose id another file has, each with the reason.
    repeated: Vec<(PathBuf, CliError)>,
    /// The folders that cannot be read, each with the reason. Of these, the files that are served are found.
    unreadable: Vec<(PathBuf, CliError)>,
}

/// When a file was changed last, and its size. `None` if it is gone.
type Stamp = Option<(SystemTime, u64)>;

fn stamp(file: &Path) -> Stamp {
    let about = std::fs::metadata(file).ok()?;
    Some((about.modified().ok()?, about.len()))
}

impl TeamFiles {
    /// The files that the command line names, and those in folders.
    pub(super) fn find(cli: &args::Cli, args: &args::serve::Serve) -> Result<Self, CliError> {
        let default_model = default_model(cli, &args.options.models)?.map(|given| given.value);
        let env = trust::of_folder(&place::or_none(&cli.named_store()))?;
        let named = args.teams.iter().map(|path| Named::new(path)).collect();
        let (known, ready) = (Mutex::default(), Mutex::default());
        let shared_budget = args.budgets.limits_cost();
        let options = args.options.clone();
        let files = Self { named, known, ready, default_model, env, options, shared_budget };
        for folder in files.named.iter().filter(|named| named.is_folder) {
            if in_folder(&folder.path)?.is_empty() {
                let what = format!("the folder `{}` has no team files", folder.path.display());
                return Err(CliError::usage(what).hint("their names end in `.yaml`"));
            }
        }
        let Found { files: served, repeated, .. } = by_id(&files.named, &BTreeMap::new())?;
        if let Some((_, error)) = repeated.into_iter().next() {
            return Err(error);
        }
        files.known().served = served;
        Ok(files)
    }

    /// The same without the teams of folders that have no id or cannot be prepared, each with the reason: one of them does not keep the
    /// others from being served. The error is that of the only team.
    pub(super) async fn usable(
        self,
        place: &StoreLocation,
    ) -> Result<(Self, Vec<(PathBuf, CliError)>), CliError> {
        let found = self.known().served.clone();
        let mut unusable = by_id(&self.named, &found)?.misnamed;
        self.known().misnamed = unusable.iter().map(|(file, _)| file.clone()).collect();
        for (id, file) in found {
            self.known().stamps.insert(file.clone(), stamp(&file));
            if self.named.iter().any(|named| named.path == file) {
                continue;
            }
            match self.prepare_file(&file, place).await {
                Ok(prepared) => {
                    self.ready().insert(file, (place.path().to_owned(), prepared));
                }
                Err(error) => {
                    self.known().served.remove(&id);
                    unusable.push((file, error));
                }
            }
        }
        match unusable.pop() {
            Some((_, error)) if self.known().served.is_empty() => Err(error),
            last => Ok((self, unusable.into_iter().chain(last).collect())),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ready(&self) -> MutexGuard<'_, BTreeMap<PathBuf, (PathBuf, Prepared)>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The team of `file`, if it was prepared at the start and is served for the first time.
    fn take_ready(&self, file: &Path, place: &StoreLocation) -> Option<Prepared> {
        let mut ready = self.ready();
        ready.get(file).filter(|(at, _)| at == place.path())?;
        ready.remove(file).map(|(_, prepared)| prepared)
    }

    /// The models of the command line.
    fn given(&self) -> Overrides {
        let (model, default_model) = (self.options.models.model.clone(), self.default_model.clone());
        Overrides { model, default_model, ..Overrides::default() }
    }

    /// What is allowed to the text of a client, which has the content `digest`: what the user trusts exactly this content with, and models
    /// of unknown price. Other permissions of the command line are for the files that it names: with them, a text could have any
    /// variable looked up, and the findings would tell which are set.
    fn access_of_text(&self, digest: &str) -> Result<Access, CliError> {
        let mut permits = self.options.allowed.permits.clone();
        permits.grants.retain(|grant| *grant == Grant::UnknownPrice);
        trust::known(self.env.clone(), &permits, digest)
    }

    /// The options with which the models of a text are checked.
    fn options_of_text(&self) -> Result<RunOptions, CliError> {
        let (model, prices) = (self.options.models.model.clone(), user_prices::read()?);
        let models = ModelOptions { model, prices, ..ModelOptions::default() };
        let (limits, shared_budget) = (self.options.limits.overrides(), self.shared_budget);
        Ok(RunOptions { models, limits, shared_budget, ..RunOptions::default() })
    }

    async fn prepare_file(&self, file: &Path, place: &StoreLocation) -> Result<Prepared, CliError> {
        let given = self.given();
        let loaded = trust::load(file, &given, &self.options.allowed.permits)?;
        let mut launch = Launch::of(loaded, file, &self.options);
        // No person is at the terminal of a server.
        launch.asks = false;
        launch.shared_budget = self.shared_budget;
        launch.shown = Some(&SERVED);
        launch.prepare(place).await
    }
}

impl TeamSource for TeamFiles {
    fn ids(&self) -> Vec<String> {
        self.known().served.keys().cloned().collect()
    }

    fn rescan(&self, again: bool) -> Vec<String> {
        let served = self.known().served.clone();
        let Found { files, misnamed, repeated, unreadable } = match by_id(&self.named, &served) {
            Ok(found) => found,
            Err(error) => {
                warn!(error = error.into_parts().0, "the team files are not read again");
                return Vec::new();
            }
        };
        let mut known = self.known();
        known.note_unreadable(unreadable);
        let warned = std::mem::take(&mut known.misnamed);
        for (file, error) in misnamed.into_iter().chain(repeated) {
            if !warned.contains(&file) {
                let (error, hint) = error.into_parts();
                warn!(file = %file.display(), error, hint, "a team file is not served");
            }
            known.misnamed.insert(file);
        }
        let before = std::mem::take(&mut known.stamps);
        known.served.retain(|id, file| files.get(id) == Some(file));
        let mut changed = Vec::new();
        for (id, file) in files {
            let now = stamp(&file);
            if again || before.get(&file) != Some(&now) {
                known.served.insert(id.clone(), file.clone());
                changed.push(id);
            }
            known.stamps.insert(file, now);
        }
        // Files that were not served before are not served merely because their folder is back.
        let Known { stamps, unreadable, .. } = &mut *known;
        for (file, seen) in before {
            if file.parent().is_some_and(|folder| unreadable.contains(folder)) {
                stamps.entry(file).or_insert(seen);
            }
        }
        changed
    }

    fn file(&self, team: &str) -> Option<PathBuf> {
        self.known().served.get(team).cloned()
    }

    fn check(&self, team: Option<&str>, text: &str, hidden: &[PathBuf]) -> Result<Loaded, Diagnostics> {
        let (given, file) = (self.given(), team.and_then(|team| self.file(team)));
        let loaded = match file {
            Some(file) => polylogue_team::parse_at(text, file, hidden, &given),
            None => polylogue_team::parse(text, "team.yaml", &given),
        }?;
        let access = self.access_of_text(&loaded.digest);
        match access.and_then(|access| Ok((access, self.options_of_text()?))) {
            Ok((access, options)) => check_models(loaded, &access, &options),
            Err(error) => {
                // It is no mistake of the text.
                warn!(error = error.into_parts().0, "the models of a text are not checked");
                Ok(loaded)
            }
        }
    }

    fn prepare<'a>(
        &'a self,
        team: &'a str,
        place: &'a StoreLocation,
    ) -> BoxFuture<'a, Result<Prepared, SourceError>> {
        Box::pin(async move {
            let file = self.file(team).ok_or_else(|| CliError::usage("there is no such team"))?;
            if let Some(prepared) = self.take_ready(&file, place) {
                return Ok(prepared);
            }
            let prepared = self.prepare_file(&file, place).await;
            prepared.map_err(|error| without_folder(error.into(), &file))
        })
    }

    fn prepare_stored<'a>(
        &'a self,
        runtime: &'a Runtime,
        id: &'a LogId,
        document: &'a StoredDocument,
    ) -> BoxFuture<'a, Result<Prepared, SourceError>> {
        let options = args::RunOptions { team: self.options.clone(), ..args::RunOptions::default() };
        Box::pin(async move {
            // A conversation keeps the team that it began with.
            let version = TeamVersion::Pinned;
            let shared_budget = self.shared_budget;
            let stored =
                Stored { id, options: &options, asks: false, settings: &SERVED, version, shared_budget };
            Ok(stored.prepare_document(runtime, document).await?.0)
        })
    }

    fn is_for_any_task(&self, prepared: &Prepared) -> bool {
        // Else something may have been allowed to the content of that document.
        prepared.access().items.is_empty() && !trust::has_rules()
    }
}

impl From<CliError> for SourceError {
    fn from(error: CliError) -> Self {
        let is_usage = error.exit == Exit::Usage;
        let (what, hint) = error.into_parts();
        Self { what, hint, is_usage }
    }
}

/// The same without the folder of `file`: clients need not know where it is on this machine.
fn without_folder(error: SourceError, file: &Path) -> SourceError {
    let folder = file.parent().map(|folder| format!("{}/", folder.display())).filter(|folder| folder != "/");
    let short =
        |text: String| folder.as_ref().map_or_else(|| text.clone(), |folder| text.replace(folder, ""));
    SourceError { what: short(error.what), hint: error.hint.map(short), ..error }
}

/// The files that `named` has, and those in its folders. Of files with one id, the one that is `served` is used, or else the first.
fn by_id(named: &[Named], served: &BTreeMap<String, PathBuf>) -> Result<Found, CliError> {
    let mut found = Found::default();
    for Named { path, is_folder } in named {
        match is_folder {
            true => found.add_folder(path, served),
            false => found.add(id_of(path)?, path.clone(), served),
        }
    }
    Ok(found)
}

impl Found {
    /// Adds the files of a folder. One that cannot be read keeps neither its teams nor those of others from being served.
    fn add_folder(&mut self, folder: &Path, served: &BTreeMap<String, PathBuf>) {
        let files = in_folder(folder).unwrap_or_else(|error| {
            self.unreadable.push((folder.to_owned(), error));
            served.values().filter(|file| file.parent() == Some(folder)).cloned().collect()
        });
        for file in files {
            match id_of(&file) {
                Ok(id) => self.add(id, file, served),
                Err(error) => self.misnamed.push((file, error)),
            }
        }
    }

    fn add(&mut self, id: String, file: PathBuf, served: &BTreeMap<String, PathBuf>) {
        let Some(first) = self.files.get(&id).cloned() else {
            self.files.insert(id, file);
            return;
        };
        let (used, other) = if served.get(&id) == Some(&file) { (file, first) } else { (first, file) };
        let what = format!("`{}` and `{}` would both be the team `{id}`", used.display(), other.display());
        let error = CliError::usage(what).hint("give one of the files another name");
        self.files.insert(id, used);
        self.repeated.push((other, error));
    }
}

/// The team files of a folder, by name, not of folders within it, and not the hidden ones, which editors keep while they write a file.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let unreadable = |error: std::io::Error| {
        CliError::usage(format!("the folder `{}` cannot be read: {error}", folder.display()))
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        let is_team = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
        if is_team && path.is_file() && !entry.file_name().as_encoded_bytes().starts_with(b".") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
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
