//! The known providers.

use polylogue_core::{Capabilities, Capability, ModelError, ModelErrorKind};
use polylogue_http::{Env, Key, Proxies};

use crate::config::{Config, SendReasoning};

/// A provider with an OpenAI-compatible API, or with Ollama's own.
#[derive(Debug)]
pub struct Provider {
    name: &'static str,
    /// Its public address; empty if it is only set by the environment.
    base_url: &'static str,
    /// Variables with a key; the first that is set counts.
    keys: &'static [&'static str],
    /// Variables with another address; the first that is set counts.
    urls: &'static [&'static str],
    locality: Locality,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Locality {
    /// A paid service that needs a key.
    Remote,
    /// The user's own server: free, and usually without a key.
    Local,
    /// Either, depending on the environment.
    Either,
}

use Locality::{Either, Local, Remote};

const fn row(
    name: &'static str,
    base_url: &'static str,
    keys: &'static [&'static str],
    urls: &'static [&'static str],
    locality: Locality,
) -> Provider {
    Provider { name, base_url, keys, urls, locality }
}

/// Ollama's default address.
const OLLAMA: &str = "http://127.0.0.1:11434";

const PROVIDERS: &[Provider] = &[
    row(
        "openai",
        "https://api.openai.com/v1",
        &["OPENAI_API_KEY"],
        &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        Remote,
    ),
    row("ollama", OLLAMA, &["OLLAMA_API_KEY"], &["OLLAMA_HOST"], Local),
    row("ollama-openai", OLLAMA, &["OLLAMA_API_KEY"], &["OLLAMA_HOST"], Local),
    row("anthropic", "https://api.anthropic.com/v1", &["ANTHROPIC_API_KEY"], &[], Remote),
    row("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], &["DEEPSEEK_BASE_URL"], Remote),
    row(
        "qwen",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        &["DASHSCOPE_API_KEY", "QWEN_API_KEY"],
        &["DASHSCOPE_BASE_URL", "QWEN_BASE_URL"],
        Remote,
    ),
    row("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"], &["MISTRAL_BASE_URL"], Remote),
    row("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], &["GROQ_BASE_URL"], Remote),
    row("together", "https://api.together.xyz/v1", &["TOGETHER_API_KEY"], &["TOGETHER_BASE_URL"], Remote),
    row(
        "openrouter",
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_KEY"],
        &["OPENROUTER_BASE_URL"],
        Remote,
    ),
    row("xai", "https://api.x.ai/v1", &["XAI_API_KEY"], &["XAI_BASE_URL"], Remote),
    row(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        &["GEMINI_BASE_URL"],
        Remote,
    ),
    row("vllm", "http://127.0.0.1:8000/v1", &["VLLM_API_KEY"], &["VLLM_BASE_URL"], Local),
    row("llamacpp", "http://127.0.0.1:8080/v1", &["LLAMA_API_KEY"], &["LLAMACPP_BASE_URL"], Local),
    row("lmstudio", "http://127.0.0.1:1234/v1", &["LMSTUDIO_API_KEY"], &["LMSTUDIO_BASE_URL"], Local),
    row("compatible", "", &["OPENAI_API_KEY"], &["OPENAI_BASE_URL"], Either),
];

impl Provider {
    /// All known providers.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        PROVIDERS
    }

    /// The provider named `name`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name.eq_ignore_ascii_case(name))
    }

    /// Its name in `provider:model`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it is the user's own server, which costs nothing.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.locality == Local
    }

    /// The environment variables with its key, or with several keys separated by commas; the first that is set
    /// counts.
    #[must_use]
    pub const fn key_variables(&self) -> &'static [&'static str] {
        self.keys
    }

    /// The environment variables with another address for it; the first that is set counts.
    #[must_use]
    pub const fn url_variables(&self) -> &'static [&'static str] {
        self.urls
    }

    /// Whether `url` is its default address.
    #[must_use]
    pub fn is_at(&self, url: &str) -> bool {
        let plain = |url: &str| url.trim().trim_end_matches('/').to_owned();
        let own = self.config_at(self.base_url).base_url;
        !self.base_url.is_empty() && [plain(self.base_url), plain(&own)].contains(&plain(url))
    }

    /// Whether `url` is at the host of its default address.
    pub(crate) fn has_host_of(&self, url: &str) -> bool {
        let host = |url: &str| {
            url::Url::parse(url.trim()).ok()?.host_str().map(|host| host.trim_end_matches('.').to_owned())
        };
        !self.is_local() && host(self.base_url).is_some_and(|own| host(url) == Some(own))
    }

    /// Its configuration, with addresses and keys from `env`.
    ///
    /// # Errors
    /// When it has no default address and `env` has none.
    pub fn config(&self, env: &Env) -> Result<Config, ModelError> {
        let given = self.urls.iter().find_map(|name| env.address(name));
        let moved = given.is_some();
        let base_url = match given {
            Some(url) => url,
            None if self.base_url.is_empty() => return Err(self.no_address()),
            None => self.base_url.to_owned(),
        };
        let keys = |name: &&'static str| env.get(name).map(|text| Key::several(&text));
        let of = |name: &&'static str| Some((*name, keys(name)?)).filter(|(_, keys)| !keys.is_empty());
        let (from, keys) = self.keys.iter().find_map(of).unzip();
        let names: &[&str] = from.as_ref().map_or(self.keys, std::slice::from_ref);
        Ok(Config {
            key_variables: names.iter().map(|&name| name.to_owned()).collect(),
            // At another address than the provider's own, it is unknown whether a key is required.
            needs_key: self.locality == Remote && !moved,
            proxies: Proxies::of(env),
            ..self.config_at(&base_url)
        }
        .with_keys(keys.unwrap_or_default()))
    }

    /// Its configuration at `base_url` instead of its default address, without a key: a key for one server is sent to
    /// another only if the user says so.
    #[must_use]
    pub fn config_at(&self, base_url: &str) -> Config {
        match self.name {
            "ollama" => Config::ollama(base_url),
            // The same server, with its OpenAI-compatible API.
            "ollama-openai" => {
                let base_url = format!("{}/v1", Config::ollama(base_url).base_url);
                Config { provider: self.name.to_owned(), ..Config::new(base_url) }
            }
            _ => Config {
                provider: self.name.to_owned(),
                // Its API rejects unknown fields, and reports usage without `stream_options`.
                stream_usage: self.name != "mistral",
                capabilities: self.capabilities(),
                reasoning: self.reasoning(),
                // Its API accepts no other ids of calls.
                call_id_length: (self.name == "mistral").then_some(9),
                ..Config::new(base_url)
            },
        }
    }

    /// The documented capabilities of all its models; unknown otherwise.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        match self.name {
            "mistral" => Capabilities::default().without(Capability::UserAfterTool),
            _ => Capabilities::default(),
        }
    }

    /// Which reasoning its API expects back, as documented.
    fn reasoning(&self) -> SendReasoning {
        match self.name {
            "deepseek" => SendReasoning::AlwaysOrEmpty,
            _ => SendReasoning::Never,
        }
    }

    fn no_address(&self) -> ModelError {
        let names: Vec<String> = self.urls.iter().map(|name| format!("`{name}`")).collect();
        let message =
            format!("the provider `{}` has no address: {} is not set", self.name, names.join(" or "));
        ModelError::new(ModelErrorKind::Config, self.name, message)
            .hint("set it to the endpoint's base URL, such as `http://127.0.0.1:8000/v1`")
    }
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
