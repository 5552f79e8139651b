//! The way to the models that a team names: known providers, and endpoints of the team's own.

use std::collections::BTreeMap;

use polylogue_core::{ModelError, ModelErrorKind};
use polylogue_models::{Config, Models, Provider, Timeouts};
use polylogue_team::Team;

use super::local::LocalModels;
use super::options::ModelChoice;
use crate::address::is_local;
use crate::{Access, RequestedPermission};

/// Models, and how their endpoints are to be used.
pub(super) struct EndpointResolver {
    pub(super) models: Models,
    pub(super) local: LocalModels,
    own: OwnEndpoints,
}

impl EndpointResolver {
    /// Makes the endpoints of `team` known. One that cannot be used, or is not trusted, is an error only when it is needed.
    pub(super) fn of(team: &Team, choosing: &ModelChoice<'_>) -> Self {
        let (models, own) = defined(team, choosing);
        Self { models, local: LocalModels::of(team, choosing), own }
    }

    /// Whether the model called `name` has a provider, and its provider what it needs. Returns the address of a local
    /// server.
    pub(super) fn check(&self, name: &str, choosing: &ModelChoice<'_>) -> Result<Option<String>, ModelError> {
        if let Some(model) = self.local.get(name) {
            return model.map(|_| None);
        }
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
        if let Some(error) = config.missing_credentials() {
            return Err(error);
        }
        let address = is_local(&config).then(|| config.base_url.clone());
        if !self.own.contains_key(known) {
            self.models.define(tuned(config, choosing))?;
        }
        self.models.model(name).map(|_| address)
    }
}

/// The endpoints that a team speaks of, by name, or why one cannot be used.
type OwnEndpoints = BTreeMap<String, Result<Config, ModelError>>;

/// The models of providers, and those of the endpoints of `team`.
pub(super) fn defined(team: &Team, choosing: &ModelChoice<'_>) -> (Models, OwnEndpoints) {
    let env = &choosing.access.env;
    let models = Models::new(env.clone()).with_prices(choosing.options.prices.clone());
    // A worker prepares a team for each conversation, and a server several teams: an endpoint has one limit for all of them.
    let models = models.with_cluster(choosing.cluster.clone()).of_process();
    let mut own = BTreeMap::new();
    for (name, endpoint) in team.all_endpoints() {
        let config = endpoint_allowed(team, name, choosing.access).and_then(|()| endpoint.config(name, env));
        let config = config.map(|config| tuned(config, choosing));
        let defined = config.and_then(|config| models.define(config.clone()).map(|_| config));
        own.insert(name.to_owned(), defined);
    }
    (models, own)
}

/// Returns whether the endpoint that the team calls `name` may be used: otherwise nothing is sent to it, and no key is looked up.
///
/// # Errors
/// When it was not allowed.
pub fn endpoint_allowed(team: &Team, name: &str, access: &Access) -> Result<(), ModelError> {
    if access.covers(&RequestedPermission::of_endpoint(team, name)) {
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
    let what = format!("no API key is set for `{}`", config.provider);
    let variables = config.key_variables.join("` or `");
    ModelError::new(ModelErrorKind::Config, model, what)
        .hint(format!("set `{variables}`, in the environment or in `.env`"))
}

/// The endpoint's settings with those of the run.
fn tuned(mut config: Config, choosing: &ModelChoice<'_>) -> Config {
    config.stream = choosing.options.stream;
    config.summarize_reasoning = choosing.options.thoughts;
    config.capabilities = choosing.options.capabilities.unwrap_or(config.capabilities);
    config.known = choosing.options.learned.clone();
    if let Some(limit) = choosing.options.timeout {
        let connect = limit.min(config.timeouts.connect);
        config.timeouts = Timeouts { connect, first_token: limit, idle: limit, total: limit };
    }
    config
}
