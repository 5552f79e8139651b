//! Models by name, with one shared endpoint for each provider.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::{AnyModel, Capability, Model as _, ModelError, ModelErrorKind};
use polylogue_http::Env;

use crate::config::Config;
use crate::endpoint::{Embedder, Endpoint, EndpointModel};
use crate::limits::ClusterLimits;
use crate::prices::Prices;
use crate::provider::Provider;
use crate::spec::parse_spec;
use crate::unsupported::Unsupported;

/// Returns models by names such as `openai:gpt-4o-mini` or `ollama/llama3.2`. Cloning shares the endpoints.
///
/// ```
/// use polylogue_core::Model;
/// use polylogue_models::{Env, Models};
/// let models = Models::new(Env::of([("OPENAI_API_KEY", "sk-example")]));
/// assert_eq!(models.model("openai:gpt-4o-mini")?.name(), "openai:gpt-4o-mini");
/// assert!(models.model("opneai:gpt-4o-mini").unwrap_err().hint.unwrap().contains("openai:gpt-4o-mini"));
/// # Ok::<(), polylogue_core::ModelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Models {
    env: Env,
    endpoints: Arc<Mutex<BTreeMap<String, Endpoint>>>,
    prices: Arc<Prices>,
    cluster: Option<ClusterLimits>,
    /// Whether they share the endpoints of the process.
    of_process: bool,
    /// What logs say that models lack. Only for these models: other conversations of the process find out by themselves.
    logged: Arc<Unsupported>,
}

/// Returns the model `spec`, `provider:model`, with addresses and keys from the environment of the process.
///
/// ```no_run
/// # async fn example() -> Result<(), polylogue_core::ModelError> {
/// let model = polylogue_models::named("openai:gpt-4o-mini")?;
/// println!("{}", model.ask("Why is the sky blue?").await?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Models::model`].
pub fn named(spec: &str) -> Result<AnyModel, ModelError> {
    Models::new(Env::process()).model(spec).map(AnyModel::from)
}

impl Models {
    /// Creates models with addresses and keys from `env`.
    pub fn new(env: Env) -> Self {
        let (endpoints, prices, logged) = (Arc::default(), Arc::default(), Arc::default());
        Self { env, endpoints, prices, cluster: None, of_process: false, logged }
    }

    /// Sets the user's `prices` instead of the list prices of those models, as of the day on which a model is requested.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Self { prices: Arc::new(prices), ..self }
    }

    /// Sets limits that endpoints share with those of other processes, if their configuration has none.
    #[must_use]
    pub fn with_cluster(self, cluster: Option<ClusterLimits>) -> Self {
        Self { cluster, ..self }
    }

    /// Uses endpoints [of the process](Endpoint::of_process): their limits, and what is known of their keys and failures, are
    /// then those of all such models, however they were created. Default: only clones share endpoints.
    #[must_use]
    pub fn of_process(self) -> Self {
        Self { of_process: true, ..self }
    }

    fn prepare(&self, config: Config) -> Result<Endpoint, ModelError> {
        let cluster = config.cluster.or_else(|| self.cluster.clone());
        let config = Config { cluster, ..config };
        if self.of_process { Endpoint::of_process(config) } else { Endpoint::new(config) }
    }

    /// Returns the configuration of the provider `name`, to be changed and passed to [`Self::define`].
    ///
    /// # Errors
    /// When the provider is unknown, or has no address.
    pub fn config(&self, name: &str) -> Result<Config, ModelError> {
        let spec = format!("{name}:model");
        let (name, _) = parse_spec(&spec, |name| Provider::find(name).is_some(), &self.names())?;
        Provider::find(name).map_or_else(|| Ok(Config::new("")), |provider| provider.config(&self.env))
    }

    /// Defines `config.provider` as a provider, replacing one of the same name.
    ///
    /// # Errors
    /// When the configuration is invalid.
    pub fn define(&self, config: Config) -> Result<Endpoint, ModelError> {
        let endpoint = self.prepare(config)?;
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.insert(endpoint.provider().to_owned(), endpoint.clone());
        Ok(endpoint)
    }

    /// Returns the model `spec`: `provider:model` or `provider/model`.
    ///
    /// # Errors
    /// When the provider is unknown, with a suggestion; when its address is invalid. A missing key is an error of the
    /// first call only.
    pub fn model(&self, spec: &str) -> Result<EndpointModel, ModelError> {
        let (endpoint, model) = self.find(spec)?;
        Ok(endpoint.model(model).priced(&self.prices).with_logged(&self.logged))
    }

    /// Records that the model `spec` lacked a capability in an earlier process, according to a log: what it refused
    /// is not sent to it again.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn learn(&self, spec: &str, lacks: Capability, why: &str) -> Result<(), ModelError> {
        let model = self.model(spec)?;
        let error = ModelError::new(ModelErrorKind::Unsupported(lacks), model.name(), why);
        self.logged.learn(&error);
        Ok(())
    }

    /// The endpoint of a model, and the model's name there.
    fn find<'a>(&self, spec: &'a str) -> Result<(Endpoint, &'a str), ModelError> {
        let defined: Vec<String> = self.defined();
        let is_defined = |name: &str| defined.iter().any(|other| other == name);
        let mut names = self.names();
        names.extend(defined.iter().map(String::as_str).filter(|name| Provider::find(name).is_none()));
        let known = |name: &str| is_defined(name) || Provider::find(name).is_some();
        let (name, model) = parse_spec(spec, known, &names)?;
        Ok((self.endpoint(name)?, model))
    }

    /// Returns the embedding model `spec`.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn embedder(&self, spec: &str) -> Result<Embedder, ModelError> {
        let (endpoint, model) = self.find(spec)?;
        Ok(endpoint.embedder(model)?.priced(&self.prices))
    }

    fn defined(&self) -> Vec<String> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn names(&self) -> Vec<&'static str> {
        Provider::all().iter().map(Provider::name).collect()
    }

    fn endpoint(&self, name: &str) -> Result<Endpoint, ModelError> {
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = endpoints.get(name) {
            return Ok(endpoint.clone());
        }
        // Not defined, so it is a known provider, perhaps in other letter case.
        let Some(provider) = Provider::find(name) else { return Endpoint::new(Config::new("")) };
        if let Some(endpoint) = endpoints.get(provider.name()) {
            return Ok(endpoint.clone());
        }
        let endpoint = self.prepare(provider.config(&self.env)?)?;
        endpoints.insert(provider.name().to_owned(), endpoint.clone());
        Ok(endpoint)
    }
}
