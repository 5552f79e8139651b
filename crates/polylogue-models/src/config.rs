//! How an endpoint is reached and used.

use std::collections::BTreeMap;
use std::fmt;

use polylogue_core::{Capabilities, ModelError};
use polylogue_http::{Env, Key, Proxies};
use url::Url;

use crate::address::{of_ollama, shown};
use crate::api::{Api, EmbeddingApi};
use crate::auth::Auth;
use crate::deviations::{Deviations, SendReasoning};
use crate::learned::LearnedCapabilities;
use crate::limits::{ClusterLimits, Limits};
use crate::retry::Retries;
use crate::timeouts::Timeouts;

/// Configuration of an endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// The part before the `:` in the names of its models.
    pub provider: String,
    /// The API. Default: chat completions.
    pub api: Api,
    /// The API of models that are known to reason, if it is another one. Default: the same.
    pub reasoning_api: Option<Api>,
    /// The API of embeddings, if it is not that of servers with its API. Default: that one.
    pub embeddings: Option<EmbeddingApi>,
    /// The URL without `/chat/completions`, such as `https://api.openai.com/v1`; for Ollama's own API, without
    /// `/api/chat`.
    pub base_url: String,
    /// The address that lists the models, if it is another one, as at Amazon Bedrock. Default: `base_url`.
    pub list_url: Option<String>,
    /// The version of Azure's API in `api-version`. Default: none, for its v1 API.
    pub api_version: Option<String>,
    /// The models behind deployments, for an endpoint whose names of models are those of deployments: `gpt-4o` by
    /// `my-deployment`. What is known of a model, such as its price, is known of its deployment. Default: `None`, for names of
    /// models.
    pub deployments: Option<BTreeMap<String, String>>,
    /// How requests are authorized. Default: as the API wants.
    pub auth: Auth,
    /// The key, or access token.
    pub key: Option<Key>,
    /// Further keys, used in turn with [`key`](Self::key). A key that meets a rate limit is not used while that lasts, and
    /// a key whose account has no credit left for ten minutes, if others can be used.
    pub further_keys: Vec<Key>,
    /// The keys' shares of the requests, in their order. Default: 1 each.
    pub key_weights: Vec<u32>,
    /// The environment variables that can contain the key: named in errors.
    pub key_variables: Vec<String>,
    /// Whether calls without a key fail before anything is sent.
    pub needs_key: bool,
    /// Further headers. Their values are redacted in errors like the key.
    pub headers: Vec<(String, String)>,
    /// Limits on concurrent requests and requests per minute.
    pub limits: Limits,
    /// The maximum number of concurrent requests of all processes together, where they [share](Self::cluster) limits.
    /// Default: none.
    pub slots: Option<u32>,
    /// Limits that are shared with other processes, next to those of this one. Default: none.
    pub cluster: Option<ClusterLimits>,
    /// Timeouts of a call.
    pub timeouts: Timeouts,
    /// Retries of failed calls.
    pub retries: Retries,
    /// The proxies. Default: those of the environment.
    pub proxies: Proxies,
    /// Whether consecutive messages of others are merged into one. Chat templates of many models (Mistral, Gemma)
    /// reject roles that do not alternate.
    pub merge: bool,
    /// Whether replies are streamed. `stream` in a request's extra fields takes precedence.
    pub stream: bool,
    /// Whether `stream_options` requests the usage of a streamed reply, which a few servers reject. Ollama's own API
    /// always reports it.
    pub stream_usage: bool,
    /// Whether the limit on a reply's tokens is sent as `max_completion_tokens`, as OpenAI requires, or as
    /// `max_tokens`, as all other servers do. Ollama's own API calls it `num_predict`.
    pub max_completion_tokens: bool,
    /// Whether requests are marked where the provider caches the prompt, for providers that cache nothing else: the
    /// next request of the same conversation reads it at a fraction of the price, and writing it costs a little more.
    /// Default: `true`. A request of an agent without tools that has not replied yet is never marked.
    pub cache_marks: bool,
    /// The exact number of letters and digits of the ids of calls, if the API requires one. Default: ids are sent as they are
    /// in the log.
    pub call_id_length: Option<usize>,
    /// Which reasoning is sent back to the model that wrote it, by chat completions. Default: none.
    pub reasoning: SendReasoning,
    /// Whether models that reason and do not show it, as the table of models tells, are asked for a summary where
    /// [`Params::thinking`](polylogue_core::Params::thinking) says nothing. They reason no more because of that, and the request has the
    /// same digest. A provider that refuses this, as OpenAI does for accounts that are not verified, is asked again without it. Default:
    /// `false`.
    pub summarize_reasoning: bool,
    /// The deviations from OpenAI's chat completions: fields with other names, and what is refused. Default: none.
    pub deviations: Deviations,
    /// Parameters that requests leave out, because its models refuse them, by the names of [`Params`](polylogue_core::Params): such as
    /// `seed`. Others are left out after they were refused, as long as the endpoint exists. Default: none.
    pub drop_parameters: Vec<&'static str>,
    /// Known capabilities of its models. Unknown ones are tried: after a refusal the model is not tried again for ten
    /// minutes, or as long as [`known`](Self::known) says. [`vision`](Capabilities::vision) is never tried: pictures
    /// that tools return are described in text until it is set.
    pub capabilities: Capabilities,
    /// The file that stores detected capabilities for later processes. Default: none.
    pub known: Option<LearnedCapabilities>,
}

impl Config {
    /// Sets the keys.
    #[must_use]
    pub fn with_keys(self, keys: impl IntoIterator<Item = Key>) -> Self {
        let mut keys = keys.into_iter();
        Self { key: keys.next(), further_keys: keys.collect(), ..self }
    }

    /// The same, for keys of `variables`: one of Vertex AI has another header than an access token.
    #[must_use]
    pub(crate) fn for_keys_of(self, variables: &[&str]) -> Self {
        match self.auth {
            Auth::Google(_) if variables.contains(&crate::google::API_KEY) => {
                Self { auth: Auth::GoogleKey, ..self }
            }
            _ => self,
        }
    }

    /// The name in the table of the model that is called `name` here, if it is known.
    pub(crate) fn listed<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match &self.deployments {
            Some(deployments) => deployments.get(name).map(String::as_str),
            None => Some(name),
        }
    }

    /// Returns whether there is a key, or credentials of another kind.
    pub fn has_credentials(&self) -> bool {
        let has_others = match &self.auth {
            Auth::Aws(aws) => aws.has_credentials(),
            auth => matches!(auth, Auth::Google(Some(_)) | Auth::Azure(_)),
        };
        self.keys().next().is_some() || has_others
    }

    /// Returns why requests have no credentials, if those of Amazon are missing or cannot be read, and there is no key.
    pub fn missing_credentials(&self) -> Option<ModelError> {
        match &self.auth {
            Auth::Aws(aws) if self.key.is_none() => aws.missing(&self.provider),
            _ => None,
        }
    }

    /// Returns whether requests can succeed: with credentials, or at an address that may ask for none.
    pub fn is_usable(&self) -> bool {
        self.has_credentials() || !(self.needs_key || matches!(self.auth, Auth::Aws(_)))
    }

    /// All keys, in the order of use.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.key.iter().chain(&self.further_keys)
    }

    /// Creates the configuration of the OpenAI-compatible endpoint at `base_url`, without a key, streaming, with defaults for
    /// everything else.
    pub fn new(base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let url = Url::parse(&base_url).ok();
        let is_openai = url.as_ref().and_then(Url::host_str).is_some_and(|host| host == "api.openai.com");
        Self {
            provider: "compatible".to_owned(),
            api: Api::ChatCompletions,
            reasoning_api: None,
            embeddings: None,
            base_url,
            list_url: None,
            api_version: None,
            deployments: None,
            auth: Auth::default(),
            key: None,
            further_keys: Vec::new(),
            key_weights: Vec::new(),
            key_variables: Vec::new(),
            needs_key: false,
            headers: Vec::new(),
            limits: Limits::default(),
            slots: None,
            cluster: None,
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            proxies: Proxies::of(&Env::process()),
            merge: true,
            stream: true,
            stream_usage: true,
            max_completion_tokens: is_openai,
            cache_marks: true,
            call_id_length: None,
            reasoning: SendReasoning::Never,
            summarize_reasoning: false,
            deviations: Deviations::NONE,
            drop_parameters: Vec::new(),
            capabilities: Capabilities::default(),
            known: None,
        }
    }

    /// Creates the configuration of the endpoint at `base_url` with this API, without a key, streaming, with defaults for
    /// everything else.
    ///
    /// ```
    /// use polylogue_models::{Api, Config};
    /// assert_eq!(Config::of(Api::Ollama, "gpu").base_url, "http://gpu:11434");
    /// ```
    pub fn of(api: Api, base_url: &str) -> Self {
        match api {
            Api::Ollama => Self::ollama(base_url),
            _ => Self { api, auth: api.http().auth, ..Self::new(base_url) },
        }
    }

    /// Creates the configuration of the Ollama server at `host`, with Ollama's own API: a URL, or a value of `OLLAMA_HOST` such
    /// as `gpu` or `127.0.0.1:11434`.
    ///
    /// ```
    /// use polylogue_models::Config;
    /// assert_eq!(Config::ollama("gpu").base_url, "http://gpu:11434");
    /// assert_eq!(Config::ollama("http://127.0.0.1:11434/v1").base_url, "http://127.0.0.1:11434");
    /// ```
    pub fn ollama(host: &str) -> Self {
        let base_url = of_ollama(host);
        let base_url = Api::Ollama.root(&base_url).to_owned();
        Self { provider: "ollama".to_owned(), api: Api::Ollama, ..Self::new(base_url) }
    }
}

/// Redacts the key, the values of headers, and possible secrets in the address.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let base_url = Url::parse(&self.base_url).map_or_else(|_| "(no URL)".to_owned(), |url| shown(&url));
        f.debug_struct("Config")
            .field("provider", &self.provider)
            .field("api", &self.api)
            .field("base_url", &base_url)
            .field("auth", &self.auth)
            .field("key", &self.key)
            .field("further_keys", &self.further_keys.len())
            .field("headers", &names)
            .field("limits", &self.limits)
            .field("slots", &self.slots)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .field("proxies", &self.proxies)
            .finish_non_exhaustive()
    }
}
