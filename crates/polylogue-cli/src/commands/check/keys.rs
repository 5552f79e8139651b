//! Keys that a team's models need and that are not set.

use std::collections::BTreeMap;

use polylogue_models::{Config, Env, Provider};
use polylogue_runtime::Access;
use polylogue_runtime::models::endpoint_allowed;
use polylogue_team::{Endpoint, Header, Team};
use serde::Serialize;

/// A key of a provider or an endpoint that is not set, or another secret that is sent there.
#[derive(Debug, Serialize)]
pub(super) struct MissingKey {
    provider: String,
    /// The variables that can have the key.
    variables: Vec<String>,
}

impl MissingKey {
    /// Those of the providers and endpoints that `team` calls, by name. Of endpoints that may not be used, nothing is looked up: an
    /// untrusted file names variables of its own.
    pub(super) fn of(team: &Team, access: &Access) -> Vec<Self> {
        let mut missing: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
        for model in team.models().into_iter().chain(team.embedding_model()) {
            let provider = model.split_once([':', '/']).and_then(|(name, _)| Provider::find(name));
            let (name, unset) = match (team.endpoint_of(model), provider) {
                (Some((name, _)), _) if endpoint_allowed(team, name, access).is_err() => continue,
                (Some((name, endpoint)), _) => (name, unset_by(name, endpoint, &access.env)),
                (None, Some(provider)) => (provider.name(), unset_in(provider.config(&access.env).ok())),
                (None, None) => continue,
            };
            missing.insert(name.to_owned(), unset);
        }
        let each = |(name, unset): (String, Vec<Vec<String>>)| {
            unset.into_iter().map(move |variables| Self { provider: name.clone(), variables })
        };
        missing.into_iter().flat_map(each).collect()
    }

    /// A line for people.
    pub(super) fn row(&self) -> String {
        format!("  no key for `{}`: set `{}`", self.provider, self.variables.join("` or `"))
    }
}

/// What an endpoint of the file needs: its headers each of their variables, its key one of several.
fn unset_by(name: &str, endpoint: &Endpoint, env: &Env) -> Vec<Vec<String>> {
    let variable = |header: &Header| match header {
        Header::Variable(from) if env.get(&from.env).is_none() => Some(vec![from.env.clone()]),
        _ => None,
    };
    let of_headers: Vec<_> = endpoint.headers.values().filter_map(|header| variable(&header.value)).collect();
    match of_headers.is_empty() {
        true => unset_in(endpoint.config(name, env).ok()),
        false => of_headers,
    }
}

/// The variables for the key that a configuration lacks.
fn unset_in(config: Option<Config>) -> Vec<Vec<String>> {
    let lacks_key = |config: &Config| config.needs_key && config.key.is_none();
    config.filter(lacks_key).map(|config| config.key_variables).into_iter().collect()
}
