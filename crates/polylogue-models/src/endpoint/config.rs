//! How an endpoint is reached and used.

use std::fmt;

use polylogue_core::Capabilities;
use polylogue_http::{Env, Key, Proxies};
use url::Url;

use super::address::shown;
use crate::learned::LearnedCapabilities;
use crate::limits::Limits;
use crate::retry::Retries;
use crate::timeouts::Timeouts;

/// In what way the models of an endpoint are asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Api {
    /// OpenAI's chat completions, which most servers understand.
    #[default]
    ChatCompletions,
    /// Ollama's own API: it alone takes `num_ctx`, `keep_alive` and `think`, and says when a conversation does not fit.
    Ollama,
}

/// How to reach an endpoint.
#[derive(Clone)]
pub struct Config {
    /// What stands before the `:` in the names of its models.
    pub provider: String,
    /// In what way its models are asked.
    pub api: Api,
    /// Where `/chat/completions` is, such as `https://api.openai.com/v1`; of Ollama's own API, where `/api/chat` is.
    pub base_url: String,
    /// Sent as `Authorization: Bearer`.
    pub key: Option<Key>,
    /// Further keys. Requests take them in turn with [`key`](Self::key); one whose account has no credit left is left out from
    /// then on.
    pub further_keys: Vec<Key>,
    /// The environment variables the key came from, or could come from: named in errors.
    pub key_variables: Vec<String>,
    /// Whether calls without a key are refused before anything is sent.
    pub needs_key: bool,
    /// Further headers. Their values are taken out of errors as the key is.
    pub headers: Vec<(String, String)>,
    /// How much is asked of it at once.
    pub limits: Limits,
    /// How long a call may take.
    pub timeouts: Timeouts,
    /// How failed calls are tried again.
    pub retries: Retries,
    /// The proxies that stand between; those of the process's environment unless others are given.
    pub proxies: Proxies,
    /// Whether what several others said in a row becomes one message. Chat templates of many models (Mistral, Gemma)
    /// refuse roles that do not alternate.
    pub merge: bool,
    /// Whether replies are streamed. `stream` among a request's extra fields wins.
    pub stream: bool,
    /// Whether the usage of a streamed reply is asked for with `stream_options`, which a few servers refuse. Ollama's own
    /// API always tells it.
    pub stream_usage: bool,
    /// Whether the limit on a reply's tokens is sent as `max_completion_tokens`, as OpenAI wants it, and not as
    /// `max_tokens`, as everybody else does. Ollama's own API calls it `num_predict`.
    pub max_completion_tokens: bool,
    /// What its models are known to be able to do, or not. What is not known turns out when it is asked for: a model that
    /// refuses is not asked again for ten minutes, or as long as [`known`](Self::known) counts.
    /// [`vision`](Capabilities::vision) alone is never tried: the pictures that tools return are named in words until it is said.
    pub capabilities: Capabilities,
    /// Where it is kept what its models turned out to be able to do, for later processes; nowhere unless it is said.
    pub known: Option<LearnedCapabilities>,
}

impl Config {
    /// The same with these keys, and no others.
    #[must_use]
    pub fn with_keys(self, keys: impl IntoIterator<Item = Key>) -> Self {
        let mut keys = keys.into_iter();
        Self { key: keys.next(), further_keys: keys.collect(), ..self }
    }

    /// All keys, in the order in which they are used.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.key.iter().chain(&self.further_keys)
    }

    /// The OpenAI-compatible endpoint at `base_url`, without a key, streaming, with everything else as it usually is.
    #[must_use]
    pub fn new(base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let url = Url::parse(&base_url).ok();
        let is_openai = url.as_ref().and_then(Url::host_str).is_some_and(|host| host == "api.openai.com");
        Self {
            provider: "compatible".to_owned(),
            api: Api::ChatCompletions,
            base_url,
            key: None,
            further_keys: Vec::new(),
            key_variables: Vec::new(),
            needs_key: false,
            headers: Vec::new(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            proxies: Proxies::of(&Env::process()),
            merge: true,
            stream: true,
            stream_usage: true,
            max_completion_tokens: is_openai,
            capabilities: Capabilities::default(),
            known: None,
        }
    }

    /// The Ollama server at `host`, asked in its own way: a URL, or what `OLLAMA_HOST` may be, such as `gpu` or
    /// `127.0.0.1:11434`.
    ///
    /// ```
    /// use polylogue_models::Config;
    /// assert_eq!(Config::ollama("gpu").base_url, "http://gpu:11434");
    /// assert_eq!(Config::ollama("http://127.0.0.1:11434/v1").base_url, "http://127.0.0.1:11434");
    /// ```
    #[must_use]
    pub fn ollama(host: &str) -> Self {
        let base_url = super::address::of_ollama(host);
        let base_url = Api::Ollama.root(&base_url).to_owned();
        Self { provider: "ollama".to_owned(), api: Api::Ollama, ..Self::new(base_url) }
    }
}

/// Shows neither the key nor the values of headers, nor what may be secret in the address.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let base_url = Url::parse(&self.base_url).map_or_else(|_| "(no URL)".to_owned(), |url| shown(&url));
        f.debug_struct("Config")
            .field("provider", &self.provider)
            .field("api", &self.api)
            .field("base_url", &base_url)
            .field("key", &self.key)
            .field("further_keys", &self.further_keys.len())
            .field("headers", &names)
            .field("limits", &self.limits)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .field("proxies", &self.proxies)
            .finish_non_exhaustive()
    }
}
