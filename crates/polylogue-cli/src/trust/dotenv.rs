//! The `.env` file of the current folder: it gives keys, and addresses, proxies and files with commands only when the user trusts it.

use std::path::Path;

use polylogue_http::Proxies;
use polylogue_models::{Env, Provider};
use polylogue_runtime::address::shown;
use polylogue_runtime::{RequestedPermission, StoreLocation};
use polylogue_team::{Grant, Team, Usage};

use crate::error::CliError;
use crate::place::is_in_work_directory;
use crate::stderr::print_note_wrapped;

/// What the file is called.
pub(super) const FILE: &str = ".env";

/// The environment, with the keys of the current folder's `.env` behind it. That of a work directory is not read: code that
/// models wrote may have written it.
pub(crate) fn of_folder(place: &StoreLocation) -> Result<Env, CliError> {
    let file = Path::new(FILE);
    if file.exists() && is_in_work_directory(place) {
        print_note_wrapped("`.env` is not read here: this is the work directory of a conversation.");
        return Ok(Env::process());
    }
    Ok(Env::with_file(file)?)
}

/// The addresses and proxies in the file, by name, that nothing was trusted with.
pub(crate) fn addresses(env: &Env) -> Vec<String> {
    let of_providers = Provider::all().iter().flat_map(Provider::trusted_variables).map(str::to_owned);
    let mut names: Vec<String> = proxies().chain(of_providers).collect();
    names.sort();
    names.dedup();
    names.retain(|name| env.untrusted_address(name).is_some());
    names
}

fn proxies() -> impl Iterator<Item = String> {
    Proxies::VARIABLES.into_iter().flat_map(|name| [name.to_owned(), name.to_ascii_lowercase()])
}

/// The addresses and proxies in the file that a run would use.
pub(super) struct Addresses {
    pub(super) wants: Vec<RequestedPermission>,
    /// The variables that they are in.
    pub(super) names: Vec<String>,
    /// Identifies them, and the folder.
    pub(super) digest: String,
}

impl Addresses {
    /// Those in `env` that are of use for `team`.
    pub(super) fn of(env: &Env, team: &Team, usage: &Usage) -> Self {
        let models: Vec<&str> = if usage.offline { Vec::new() } else { team.models().into_iter().collect() };
        let reaches =
            [Grant::Network, Grant::Mcp].iter().any(|grant| team.wants_of(usage).contains_key(grant));
        let mut names = Vec::new();
        if !models.is_empty() || reaches || !usage.own_servers.is_empty() {
            names.extend(proxies());
        }
        for model in models {
            let provider = Provider::find(model.split([':', '/']).next().unwrap_or_default().trim());
            names.extend(provider.into_iter().flat_map(Provider::trusted_variables).map(str::to_owned));
        }
        names.sort();
        names.dedup();
        let found = names.into_iter().filter_map(|name| Some((env.untrusted_address(&name)?, name)));
        let found: Vec<(String, String)> = found.collect();
        let folder = std::env::current_dir().unwrap_or_default();
        let mut all = blake3::Hasher::new();
        all.update(folder.as_os_str().as_encoded_bytes());
        for (value, name) in &found {
            for part in [name, value] {
                all.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
            }
        }
        let want = |(value, name): &(String, String)| {
            let value = if value.contains("://") { shown(value) } else { value.clone() };
            RequestedPermission::new(Grant::Dotenv, format!("{name}={value}"))
        };
        Self {
            wants: found.iter().map(want).collect(),
            names: found.iter().map(|(_, name)| name.clone()).collect(),
            digest: format!("dotenv-{}", all.finalize().to_hex()),
        }
    }
}
