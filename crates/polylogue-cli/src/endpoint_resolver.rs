//! The way to the models that a team names: known providers, and endpoints of the team's own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use polylogue::{ModelError, ModelErrorKind};
use polylogue_models::{Config, Models, Provider, Timeouts};
use polylogue_team::Team;

use crate::model_builder::ModelOptions;
use crate::probe::host;
use crate::trust::{Access, Want};

/// Models, and how their endpoints are to be used.
pub(crate) struct EndpointResolver {
    pub(crate) models: Models,
    /// The endpoints that the team speaks of, by name, or why one cannot be used.
    own: BTreeMap<String, Result<Config, ModelError>>,
}

impl EndpointResolver {
    /// Makes the endpoints of `team` known. One that cannot be used, or is not trusted, is an error only when it is needed.
    pub(crate) fn of(team: &Team, manner: &ModelOptions<'_>) -> Self {
        let env = &manner.access.env;
        let models = Models::new(env.clone());
        let mut own = BTreeMap::new();
        for (name, endpoint) in team.all_endpoints() {
            let config = allowed(team, name, manner.access).and_then(|()| endpoint.config(name, env));
            let config = config.map(|config| tuned(config, manner));
            let defined = config.and_then(|config| models.define(config.clone()).map(|_| config));
            own.insert(name.to_owned(), defined);
        }
        Self { models, own }
    }

    /// Whether the model called `name` has a provider, and its provider what it needs. Returns the address of a local
    /// server.
    pub(crate) fn check(&self, name: &str, manner: &ModelOptions<'_>) -> Result<Option<String>, ModelError> {
        let written = name.split([':', '/']).next().unwrap_or_default().trim();
        let provider = Provider::find(written);
        let known = provider.map_or(written, |provider| provider.name());
        let config = match self.own.get(known) {
            Some(own) => own.clone()?,
            // An invalid name is shown unchanged.
            None => self.models.model(name).and_then(|_| self.models.config(known))?,
        };
        if config.needs_key && config.key.is_none() {
            return Err(no_key(name, &config));
        }
        let address = is_ones_own(&config).then(|| config.base_url.clone());
        if !self.own.contains_key(known) {
            self.models.define(tuned(config, manner))?;
        }
        self.models.model(name).map(|_| address)
    }
}

/// Whether the endpoint that the team calls `name` may be used: nothing is sent to it, and no key is looked up, unless it is.
pub(crate) fn allowed(team: &Team, name: &str, access: &Access) -> Result<(), ModelError> {
    let wants = team.wants_of_endpoint(name).into_iter();
    let wants: Vec<Want> =
        wants.flat_map(|(grant, what)| what.into_iter().map(move |what| Want::new(grant, what))).collect();
    if access.covers(&wants) {
        return Ok(());
    }
    let error = ModelError::new(
        ModelErrorKind::Config,
        name,
        format!("the endpoint `{name}` of the team file is not trusted"),
    );
    Err(error.hint("if you trust the team file, add `--allow endpoints,env`, or `--trust` to remember it"))
}

fn no_key(model: &str, config: &Config) -> ModelError {
    let what = format!("there is no key for `{}`", config.provider);
    let variables = config.key_variables.join("` or `");
    ModelError::new(ModelErrorKind::Config, model, what)
        .hint(format!("set `{variables}`, in the environment or in `.env`"))
}

/// The settings of the command line over those of the endpoint.
fn tuned(mut config: Config, manner: &ModelOptions<'_>) -> Config {
    config.stream = manner.stream;
    config.capabilities = manner.wish.capabilities.unwrap_or(config.capabilities);
    config.known = manner.known.clone();
    if let Some(seconds) = manner.wish.timeout {
        let limit = Duration::from_secs(seconds);
        let connect = limit.min(config.timeouts.connect);
        config.timeouts = Timeouts { connect, first_token: limit, idle: limit, total: limit };
    }
    config
}

/// Whether an endpoint is a local server, which may not be running.
pub(crate) fn is_ones_own(config: &Config) -> bool {
    Provider::find(&config.provider).map_or_else(|| is_here(&config.base_url), Provider::is_local)
}

/// Whether an address is one of this machine.
fn is_here(url: &str) -> bool {
    let host = host(url).unwrap_or_default();
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_addresses() {
        assert!(["http://localhost:1/v1", "http://127.0.0.2", "https://[::1]:8/v1"].into_iter().all(is_here));
        assert!(
            !["http://10.0.0.5:8000/v1", "http://localhost.example/v1", "localhost"].into_iter().any(is_here)
        );
    }
}
