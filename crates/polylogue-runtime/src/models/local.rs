//! Models that are computed in this process, from files.

use std::collections::BTreeMap;
use std::path::Path;

use polylogue_core::{AnyModel, ModelError, ModelErrorKind};
use polylogue_models::Env;
use polylogue_team::{Grant, Team};

use super::options::ModelChoice;
use crate::RequestedPermission;

/// The models `local:PATH` of a team, each opened once, or why one cannot be used.
#[derive(Default)]
pub(super) struct LocalModels(BTreeMap<String, Result<AnyModel, ModelError>>);

impl LocalModels {
    /// Opens the models of `team`. What is wrong with one is an error only when it is needed.
    pub(super) fn of(team: &Team, choosing: &ModelChoice<'_>) -> Self {
        let files = team.models().into_iter().filter_map(|name| Some((name, team.model_file(name)?)));
        let opened = files.map(|(name, file)| {
            let model = allowed(team, name, choosing).and_then(|()| open(name, &file, &choosing.access.env));
            (name.to_owned(), model)
        });
        Self(opened.collect())
    }

    /// The model called `name`, if it is one of this process.
    pub(super) fn get(&self, name: &str) -> Option<Result<AnyModel, ModelError>> {
        self.0.get(name).cloned()
    }
}

/// Whether the file of the model `name` may be read: those below the folder of the team file may, as they came with it.
fn allowed(team: &Team, name: &str, choosing: &ModelChoice<'_>) -> Result<(), ModelError> {
    let outside = team.outside_model_files();
    let path = name.strip_prefix("local:").unwrap_or(name).trim();
    let is_allowed =
        |path: &String| choosing.access.has(&RequestedPermission::new(Grant::Readable, path.as_str()));
    if outside.iter().filter(|file| *file == path).all(is_allowed) {
        return Ok(());
    }
    let what = "its file is outside of the folder of the team file, which is not trusted";
    let hint = "if you trust the team file, add `--allow readable`, or `--trust` to remember it";
    Err(ModelError::new(ModelErrorKind::Config, name, what).hint(hint))
}

#[cfg(feature = "local")]
fn open(name: &str, file: &Path, env: &Env) -> Result<AnyModel, ModelError> {
    use polylogue_local::{LocalModel, LocalOptions};
    let number = |variable: &str| {
        let Some(text) = env.get(variable) else { return Ok(None) };
        text.trim().parse::<u32>().map(Some).map_err(|_| {
            let what = format!("`{variable}` is not a number: `{text}`");
            ModelError::new(ModelErrorKind::Config, name, what).hint("write a whole number, such as 16384")
        })
    };
    let window = number("POLYLOGUE_LOCAL_WINDOW")?;
    let memory = number("POLYLOGUE_LOCAL_MEMORY")?.map(|mib| u64::from(mib) << 20);
    let options = LocalOptions { window, memory, ..LocalOptions::default() };
    let opened = LocalModel::open(file, options).map_err(|error| {
        ModelError::new(ModelErrorKind::Config, name, error.to_string()).hint(error.hint())
    })?;
    Ok(AnyModel::new(opened.named(name)))
}

#[cfg(not(feature = "local"))]
fn open(name: &str, _: &Path, _: &Env) -> Result<AnyModel, ModelError> {
    let what = "this program is built without models in the process";
    let hint = "build it with `--features local`, or run the model in Ollama and name it `ollama:NAME`";
    Err(ModelError::new(ModelErrorKind::Config, name, what).hint(hint))
}
