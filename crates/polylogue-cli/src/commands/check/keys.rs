//! Keys of providers that a team's models need and that are not set.

use std::collections::BTreeMap;

use polylogue_models::{Env, Provider};
use polylogue_team::Team;
use serde::Serialize;

/// A provider whose key is not set.
#[derive(Debug, Serialize)]
pub(super) struct MissingKey {
    provider: &'static str,
    /// The variables that can have the key.
    variables: Vec<String>,
}

impl MissingKey {
    /// Those of the providers that `team` calls, by name. Endpoints that the file defines are left to `doctor`: an untrusted file
    /// names variables of its own.
    pub(super) fn of(team: &Team, env: &Env) -> Vec<Self> {
        let models = team.models().into_iter().filter(|model| team.endpoint_of(model).is_none());
        let providers = models.filter_map(|model| Provider::find(model.split_once([':', '/'])?.0));
        let providers: BTreeMap<&str, _> = providers.map(|provider| (provider.name(), provider)).collect();
        let missing = providers.into_values().filter_map(|provider| {
            let config = provider.config(env).ok()?;
            let is_set = config.key_variables.iter().any(|name| env.get(name).is_some());
            (config.needs_key && !is_set)
                .then(|| Self { provider: provider.name(), variables: config.key_variables })
        });
        missing.collect()
    }

    /// A line for people.
    pub(super) fn row(&self) -> String {
        format!("  no key for `{}`: set `{}`", self.provider, self.variables.join("` or `"))
    }
}
