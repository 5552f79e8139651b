//! Models that are computed in this process, from files.

mod resources;

use std::collections::BTreeMap;
use std::path::Path;

use polylogue_core::{AnyModel, ModelError, ModelErrorKind};
use polylogue_models::local_file;
use polylogue_team::{Grant, Team};

pub use self::built_in::{count_local, local_resources};
use self::built_in::{described, open};
use self::resources::Opened;
pub use self::resources::{LocalModelInfo, LocalResources};
use super::options::ModelChoice;
use crate::{Access, RequestedPermission};

/// The models `local:PATH` of a team, each opened once, or why one cannot be used.
#[derive(Default)]
pub(super) struct LocalModels(BTreeMap<String, Result<Opened, ModelError>>);

impl LocalModels {
    /// Opens the models of `team`. What is wrong with one is an error only when it is needed.
    pub(super) fn of(team: &Team, choosing: &ModelChoice<'_>) -> Self {
        let files = team.models().into_iter().filter_map(|name| Some((name, team.model_file(name)?)));
        let opened = files.map(|(name, file)| (name.to_owned(), opened(team, name, &file, choosing.access)));
        Self(opened.collect())
    }

    /// The model called `name`, if it is one of this process.
    pub(super) fn get(&self, name: &str) -> Option<Result<AnyModel, ModelError>> {
        self.0.get(name).map(|opened| opened.as_ref().map(|(model, _)| model.clone()).map_err(Clone::clone))
    }

    /// What the models take of this machine that can be used, by name.
    pub(super) fn infos(&self) -> Vec<(String, LocalModelInfo)> {
        self.0.iter().filter_map(|(name, opened)| Some((name.clone(), opened.as_ref().ok()?.1))).collect()
    }
}

/// Returns what the model `name` takes of this machine, and what it can do; `None` if it is none in the process. Its path is
/// relative to the team file, or else to the current folder. No weights are loaded.
///
/// # Errors
/// When its file cannot be used, or was not allowed, or the program is built without models in the process.
pub fn local_model_info(
    team: Option<&Team>,
    name: &str,
    access: &Access,
) -> Option<Result<LocalModelInfo, ModelError>> {
    let path = local_file(name)?;
    let opened = match team.and_then(|team| Some((team, team.model_file(name)?))) {
        Some((team, file)) => opened(team, name, &file, access),
        None => open(name, Path::new(path), &access.env),
    };
    Some(opened.map(|(_, info)| info))
}

/// The model `name` of `team`, if it is one in the process and its file can be used, whatever memory it needs. No weights are loaded.
pub(super) fn local_model(team: &Team, name: &str, access: &Access) -> Option<AnyModel> {
    let file = team.model_file(name)?;
    allowed(team, name, access).ok()?;
    described(&file)
}

fn opened(team: &Team, name: &str, file: &Path, access: &Access) -> Result<Opened, ModelError> {
    allowed(team, name, access)?;
    open(name, file, &access.env)
}

/// Whether the file of the model `name` may be read: those below the folder of the team file may, as they came with it.
fn allowed(team: &Team, name: &str, access: &Access) -> Result<(), ModelError> {
    let outside = team.outside_model_files();
    let path = local_file(name).unwrap_or(name);
    let is_allowed = |path: &String| access.has(&RequestedPermission::new(Grant::Readable, path.as_str()));
    if outside.iter().filter(|file| *file == path).all(is_allowed) {
        return Ok(());
    }
    let what = "its file is outside of the folder of the team file, which is not trusted";
    let hint = "if you trust the team file, add `--allow readable`, or `--trust` to remember it";
    Err(ModelError::new(ModelErrorKind::Config, name, what).hint(hint))
}

#[cfg(feature = "local")]
mod built_in {
    use std::path::Path;

    use polylogue_core::{AnyModel, Model as _, ModelError, ModelErrorKind};
    use polylogue_local::{LoadError, LocalModel, LocalOptions, Machine};
    use polylogue_models::{Env, local_file};

    use super::resources::{LocalModelInfo, LocalResources, Opened};

    /// The smallest context window, in tokens. No prompt and reply fit into a smaller one.
    const LEAST_WINDOW: u32 = 64;

    /// Returns what models in the process can use on this machine; `None` if the program is built without them.
    ///
    /// # Errors
    /// When a variable of their settings is wrong.
    pub fn local_resources(env: &Env) -> Result<Option<LocalResources>, ModelError> {
        let (options, machine) = (options("local", env)?, Machine::now());
        let memory = options.memory.or(machine.available).map(|bytes| bytes >> 20);
        let window = options.window.unwrap_or(LocalOptions::WINDOW);
        Ok(Some(LocalResources { threads: machine.threads, memory, window }))
    }

    /// Counts the tokens of `text` for the model `name`, which is `local:` and the path of a file, relative to the current
    /// folder.
    ///
    /// # Errors
    /// When the file cannot be used, or the program is built without models in the process.
    pub fn count_local(name: &str, text: &str) -> Result<u64, ModelError> {
        let file = local_file(name).unwrap_or(name);
        let count = LocalModel::count_with(file, text);
        count.map(|tokens| tokens as u64).map_err(|error| match error {
            LoadError::Unreadable { .. } => ModelError::new(ModelErrorKind::Config, name, error.to_string())
                .hint("write `local:` and the path of a GGUF file, relative to the current folder"),
            error => refused(name, &error),
        })
    }

    /// The model in `file`, whatever memory it needs, to read what it takes of a request.
    pub(super) fn described(file: &Path) -> Option<AnyModel> {
        let options = LocalOptions { memory: Some(u64::MAX), ..LocalOptions::default() };
        LocalModel::open(file, options).ok().map(AnyModel::new)
    }

    pub(super) fn open(name: &str, file: &Path, env: &Env) -> Result<Opened, ModelError> {
        // All conversations of the process share it: their weights would not fit into the memory together.
        let opened = LocalModel::open_shared(file, options(name, env)?);
        let opened = opened.map_err(|error| refused(name, &error))?;
        let (memory, mib) = (opened.memory(), |bytes: u64| bytes.div_ceil(1 << 20));
        let info = LocalModelInfo {
            window: opened.window(),
            weights: mib(memory.weights.saturating_add(memory.scratch)),
            conversation: mib(memory.cache),
            conversations: memory.caches,
            tools: opened.capabilities().tools == Some(true),
        };
        Ok((AnyModel::new(opened.named(name)), info))
    }

    fn refused(name: &str, error: &LoadError) -> ModelError {
        ModelError::new(ModelErrorKind::Config, name, error.to_string()).hint(error.hint())
    }

    /// The settings in `env` of the model `name`.
    fn options(name: &str, env: &Env) -> Result<LocalOptions, ModelError> {
        let number = |variable: &str, unit: &str, least: u32| {
            let Some(text) = env.get(variable) else { return Ok(None) };
            let number = text.trim().parse::<u32>().ok().filter(|number| *number >= least);
            number.map(Some).ok_or_else(|| {
                let what = format!("`{variable}` must be a number of {unit}, at least {least}, not `{text}`");
                ModelError::new(ModelErrorKind::Config, name, what)
                    .hint("write a whole number, such as 16384, or unset it for the default")
            })
        };
        let window = number("POLYLOGUE_LOCAL_WINDOW", "tokens", LEAST_WINDOW)?;
        let memory = number("POLYLOGUE_LOCAL_MEMORY", "MiB", 1)?.map(|mib| u64::from(mib) << 20);
        Ok(LocalOptions { window, memory, ..LocalOptions::default() })
    }
}

#[cfg(not(feature = "local"))]
mod built_in {
    use std::path::Path;

    use polylogue_core::{AnyModel, ModelError, ModelErrorKind};
    use polylogue_models::Env;

    use super::resources::{LocalResources, Opened};

    /// Returns what models in the process can use on this machine; `None` if the program is built without them.
    ///
    /// # Errors
    /// When a variable of their settings is wrong.
    pub const fn local_resources(_: &Env) -> Result<Option<LocalResources>, ModelError> {
        Ok(None)
    }

    /// Counts the tokens of `text` for the model `name`, which is `local:` and the path of a file, relative to the current
    /// folder.
    ///
    /// # Errors
    /// When the file cannot be used, or the program is built without models in the process.
    pub fn count_local(name: &str, _: &str) -> Result<u64, ModelError> {
        Err(not_built_in(name))
    }

    pub(super) const fn described(_: &Path) -> Option<AnyModel> {
        None
    }

    pub(super) fn open(name: &str, _: &Path, _: &Env) -> Result<Opened, ModelError> {
        Err(not_built_in(name))
    }

    fn not_built_in(name: &str) -> ModelError {
        let what = "this program is built without models in the process";
        let hint = "build it with `--features local`, or run the model in Ollama and name it `ollama:NAME`";
        ModelError::new(ModelErrorKind::Config, name, what).hint(hint)
    }
}
