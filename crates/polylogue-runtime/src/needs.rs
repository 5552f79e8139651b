//! What the conversations of a team need of the worker that runs them, and what a process has of that: keys, MCP servers, the sandbox.

use std::path::Path;

use polylogue_core::{Features, LogId, Queue as _};
use polylogue_models::{Env, Provider};
use polylogue_team::{SandboxBackend, Team};

use crate::servers::server_names;
use crate::work_dir::refusal;
use crate::{Prepared, Result, Runtime, StoreLocation};

const SANDBOX: &str = "sandbox";
const KEY: &str = "key:";
const SERVER: &str = "mcp:";

impl Prepared {
    /// Returns the features that a worker must have to run its conversations as this process would: `key:PROVIDER` for each
    /// provider whose key is used, `mcp:NAME` for each MCP server that the team does not declare itself, and `sandbox` if
    /// programs run in that of this system.
    pub fn needs(&self) -> Features {
        let (team, env) = (self.team(), &self.access().env);
        let providers = team.models().into_iter().filter(|_| self.models.are_live());
        let providers = providers.filter_map(|model| provider_of(team, model));
        let keys = providers.filter(|provider| has_key(provider, env)).map(key_word);
        let declared = team.mcp_declared();
        let servers = team.mcp_wanted().into_iter().filter(|name| !declared.contains_key(name));
        let servers = servers.map(server_word);
        let sandbox = team.runs_programs_at().contains(&SandboxBackend::Native);
        words(keys.chain(servers).chain(sandbox.then(|| SANDBOX.to_owned())))
    }
}

impl Runtime {
    /// What a worker must have to continue the conversation `id` with the team `prepared`: what the team needs, where its files are, and
    /// what was said before, or is `said` now.
    pub(crate) async fn needs_of(
        &self,
        id: &LogId,
        prepared: &Prepared,
        said: Option<&Features>,
    ) -> Result<Features> {
        let (before, of_team) = (self.queue()?.needs(id).await?, prepared.needs());
        let is_said = |word: &&str| said.is_some() || !is_of_team(word);
        let is_other = |word: &&str| !StoreLocation::is_files_feature(word);
        let files = self.files_needed(prepared, said, &before);
        let said = said.unwrap_or(&before).words().filter(is_said).filter(is_other);
        Ok(Features::new(said.chain(of_team.words()).chain(files.as_deref()))
            .unwrap_or_else(|_| before.clone()))
    }

    /// What a worker must do with the files of a conversation: what a person says now, or what was needed before. If its files are in a folder,
    /// they are in that of this process now, if it has one. A new one is treated as this process treats files.
    fn files_needed(
        &self,
        prepared: &Prepared,
        said: Option<&Features>,
        before: &Features,
    ) -> Option<String> {
        let word_of = |features: &Features| {
            features.words().find(|word| StoreLocation::is_files_feature(word)).map(str::to_owned)
        };
        let (place, earlier) = (self.place(), word_of(before));
        let Some(own) = place.files_feature() else { return said.and_then(word_of).or(earlier) };
        let is_here = |word: &String| place.has_files_in_folder() && StoreLocation::is_of_folder(word);
        let found = said.and_then(word_of).or(earlier.filter(|word| !is_here(word))).unwrap_or(own);
        prepared.team().needs_workplace().then_some(found)
    }

    /// Notes what the conversation `id`, which begins, needs of the worker that continues it.
    pub(crate) async fn note_needs(&self, id: &LogId, prepared: &Prepared) -> Result<()> {
        let of_team = if self.has_successors() { prepared.needs() } else { Features::none() };
        let files = self.files_needed(prepared, None, &Features::none());
        let needs =
            Features::new(of_team.words().chain(files.as_deref())).unwrap_or_else(|_| of_team.clone());
        if !needs.is_empty() {
            self.queue()?.set_needs(id, &needs).await?;
        }
        Ok(())
    }
}

/// Returns the features that this process offers: the keys in `env`, the MCP servers of the user's own document, and the
/// sandbox. `any_key`: no key is needed, whatever the team, because all its conversations use another model than its own.
///
/// # Errors
/// When the document cannot be read.
pub fn offered_features(env: &Env, servers: Option<&Path>, any_key: bool) -> Result<Features> {
    let remote = Provider::all().iter().filter(|provider| !provider.is_local());
    let keys = remote.filter(|provider| any_key || is_reachable(provider, env)).map(key_word);
    let servers = server_names(servers)?;
    let sandbox = refusal(SandboxBackend::Native).is_none();
    Ok(words(
        keys.chain(servers.iter().map(|name| server_word(name))).chain(sandbox.then(|| SANDBOX.to_owned())),
    ))
}

/// Whether the team, and not a person, says that it is needed.
fn is_of_team(word: &str) -> bool {
    word == SANDBOX || word.starts_with(KEY) || word.starts_with(SERVER)
}

/// The provider of a model whose key comes from the environment. The endpoints of a team name their variables themselves.
fn provider_of(team: &Team, model: &str) -> Option<&'static Provider> {
    let provider = Provider::find(model.split([':', '/']).next()?.trim())?;
    (!provider.is_local() && !team.all_endpoints().contains_key(provider.name())).then_some(provider)
}

/// Whether there is a key of it, or credentials of another kind.
fn has_key(provider: &Provider, env: &Env) -> bool {
    provider.config(env).is_ok_and(|config| config.has_credentials())
}

/// Whether it can be called: with a key, with credentials of another kind, or at an address that may ask for none.
fn is_reachable(provider: &Provider, env: &Env) -> bool {
    provider.config(env).is_ok_and(|config| config.is_usable())
}

/// Providers with the same variables have one word.
fn key_word(provider: &Provider) -> String {
    let mut all = Provider::all().iter();
    let first = all.find(|other| other.key_variables() == provider.key_variables()).unwrap_or(provider);
    format!("{KEY}{}", first.name())
}

fn server_word(name: &str) -> String {
    format!("{SERVER}{name}")
}

/// What cannot be a word, such as a name with spaces, is neither needed nor offered.
fn words(words: impl Iterator<Item = String>) -> Features {
    Features::new(words.filter(|word| Features::new([word]).is_ok())).unwrap_or_default()
}
