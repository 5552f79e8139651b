//! Endpoints of models.

mod requests;

use std::collections::BTreeMap;
use std::time::Duration;

use polylogue_config::{At, OneOrMany, Same};
use polylogue_core::{ModelError, ModelErrorKind};
use polylogue_models::{self as models, Config, Env, Key, Provider, Proxies, SendReasoning};

pub use self::requests::OptionalParameter;
use self::requests::SendReasoningWord;
use crate::duration::Time;
use crate::text::{HeaderText, UrlText, VariableText};

/// A model endpoint: a custom one, or a known provider with other settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, polylogue_config::Config)]
pub struct Endpoint {
    /// API of the endpoint.
    #[key(as = Option<ApiKey>, none = "`chat_completions`; for a known provider its API")]
    pub api: Option<models::Api>,
    /// Base address: before `/chat/completions`, such as `http://127.0.0.1:8000/v1`, before `/api/chat` of Ollama, such
    /// as `http://127.0.0.1:11434`, before `/v1/messages` of Anthropic, such as `https://api.anthropic.com`, before `/models` of
    /// Gemini, such as `https://generativelanguage.googleapis.com/v1beta`, or before `/model` of Amazon Bedrock. Of `vertex` it is the
    /// host, with the path before `/v1` if it has one; the project and the region of the environment follow, unless it names
    /// a publisher (`/publishers/google`).
    #[key(as = Option<UrlText>, none = "the known provider's address", nonempty)]
    pub base_url: Option<String>,
    /// Version of Azure's API, such as `2024-10-21`, sent as `api-version`.
    #[key(none = "none, for the v1 API; for `azure` the value of `AZURE_OPENAI_API_VERSION`", nonempty)]
    pub api_version: Option<String>,
    /// Models behind deployments of Azure, by deployment, such as `{prod: gpt-4o}`: they have the price, the limits and the API
    /// of the model.
    pub deployments: BTreeMap<String, String>,
    /// Environment variable that holds the API key, or a list of variables: their keys are used in turn. A team file cannot
    /// contain the key itself.
    #[key(as = OneOrMany<Same<KeyVariable>>, none = "no key; for a known provider its usual variable", nonempty, unique)]
    pub key: Vec<KeyVariable>,
    /// Further headers of each request, by name.
    pub headers: BTreeMap<String, At<Header>>,
    /// Maximum number of concurrent requests of all agents together; with a store in Postgres, of all processes.
    #[key(none = "256", range = 1..=100_000)]
    pub in_flight: Option<u32>,
    /// Maximum number of requests of all agents together in any 60 seconds; with a store in Postgres, of all processes.
    #[key(none = "none", range = 1..=1_000_000)]
    pub per_minute: Option<u32>,
    /// Time limits of a model call.
    pub timeouts: Timeouts,
    /// Maximum number of retries after a failed call.
    #[key(none = "4", range = 0..=100)]
    pub retries: Option<u32>,
    /// Longest wait before a retry. If a provider asks for a longer one, the call fails.
    #[key(none = "1 min")]
    pub max_wait: Option<Time>,
    /// Merges consecutive messages of other participants into one, which many models need.
    #[key(none = "`true`")]
    pub merge: Option<bool>,
    /// Marks requests where the provider caches the prompt (Anthropic, and Amazon Bedrock for models that take marks), so that the
    /// next request reads it for less. Writing to the cache costs more than other input.
    #[key(none = "`true`")]
    pub prompt_cache: Option<bool>,
    /// Capabilities of the models besides text: `text` for none, or a mapping.
    #[key(none = "probed on first use")]
    pub capabilities: Option<CapabilityKeys>,
    /// Reasoning that is sent back to the model that wrote it, by chat completions.
    #[key(as = Option<SendReasoningWord>, none = "`never`; for a known provider what it expects")]
    pub send_reasoning: Option<SendReasoning>,
    /// Parameters of agents that requests leave out, because the models refuse them. The log says so.
    #[key(unique)]
    pub drop_parameters: Vec<OptionalParameter>,
}

/// Capabilities of models besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, polylogue_config::Config)]
#[config(name = "CapabilitiesValue", by_shape)]
pub enum CapabilityKeys {
    /// No capabilities besides text.
    Text(OnlyText),
    /// These capabilities.
    Of(CapabilitySet),
}

/// The word `text`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, polylogue_config::Config)]
pub enum OnlyText {
    /// Text only.
    Text,
}

/// Capabilities of models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, polylogue_config::Config)]
#[config(name = "Capabilities", nonempty)]
pub struct CapabilitySet {
    /// Supports function calls.
    #[key(none = "probed on first use")]
    pub tools: Option<bool>,
    /// Supports replies constrained by a JSON Schema.
    #[key(none = "probed on first use")]
    pub schema: Option<bool>,
    /// Supports JSON mode: replies constrained to any JSON.
    #[key(none = "probed on first use")]
    pub json: Option<bool>,
    /// Accepts images in tool results.
    #[key(none = "`false`")]
    pub vision: Option<bool>,
    /// Accepts the `system` role. Otherwise the system message becomes part of the first user message.
    #[key(none = "probed on first use")]
    pub system_role: Option<bool>,
    /// Accepts `null` as the content of a message that only calls tools. Otherwise the content is omitted.
    #[key(none = "probed on first use")]
    pub null_content: Option<bool>,
    /// Accepts a user message directly after a tool result. Otherwise `Noted.` is inserted between them.
    #[key(none = "probed on first use")]
    pub user_after_tool: Option<bool>,
}

impl CapabilityKeys {
    /// Returns these settings, with those of `usual` where they are omitted.
    #[must_use]
    pub fn or(self, usual: polylogue_core::Capabilities) -> polylogue_core::Capabilities {
        match self {
            Self::Text(OnlyText::Text) => polylogue_core::Capabilities::TEXT,
            Self::Of(set) => {
                let set = polylogue_core::Capabilities {
                    tools: set.tools,
                    schema: set.schema,
                    json: set.json,
                    vision: set.vision,
                    system_role: set.system_role,
                    null_content: set.null_content,
                    user_after_tool: set.user_after_tool,
                };
                set.or(usual)
            }
        }
    }
}

/// API of an endpoint.
#[derive(polylogue_config::Config)]
#[config(name = "Api", for = models::Api)]
enum ApiKey {
    /// OpenAI chat completions, which most servers support.
    ChatCompletions,
    /// OpenAI Responses.
    Responses,
    /// Gemini's native API: `generateContent`.
    Gemini,
    /// Ollama's native API.
    Ollama,
    /// Anthropic's Messages API.
    Messages,
    /// Amazon Bedrock's Converse API.
    Converse,
}

/// Value of a header.
#[derive(Debug, Clone, PartialEq, Eq, polylogue_config::Config)]
#[config(by_shape)]
pub enum Header {
    /// A text that is not a secret.
    #[key(as = HeaderText)]
    Text(String),
    /// The value of an environment variable.
    Variable(FromEnv),
}

/// Environment variable that holds an API key, or several keys with commas between them.
#[derive(Debug, Clone, PartialEq, Eq, polylogue_config::Config)]
#[config(shorthand = "env")]
pub struct KeyVariable {
    /// Name of the environment variable.
    #[key(as = VariableText)]
    pub env: String,
    /// Share of the requests that each of its keys gets, next to the keys of other variables.
    #[key(default = 1, range = 1..=1000)]
    pub weight: u32,
}

/// Value of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, polylogue_config::Config)]
pub struct FromEnv {
    /// Name of the environment variable.
    #[key(as = VariableText)]
    pub env: String,
}

/// Time limits of the phases of a model call, such as `10 s`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, polylogue_config::Config)]
pub struct Timeouts {
    /// Time until the connection is established.
    #[key(none = "10 s")]
    pub connect: Option<Time>,
    /// Time until the first token of a reply.
    #[key(none = "3 min")]
    pub first_token: Option<Time>,
    /// Time between two tokens.
    #[key(none = "1 min")]
    pub idle: Option<Time>,
    /// Time for the whole reply.
    #[key(none = "10 min")]
    pub total: Option<Time>,
}

impl Timeouts {
    fn or(self, usual: models::Timeouts) -> models::Timeouts {
        let set = |time: Option<Time>, usual| time.map_or(usual, Duration::from);
        models::Timeouts {
            connect: set(self.connect, usual.connect),
            first_token: set(self.first_token, usual.first_token),
            idle: set(self.idle, usual.idle),
            total: set(self.total, usual.total),
        }
    }
}

/// What to do where a provider that is known is to be asked in another way.
const OTHER_WAY: &str =
    "leave out `api`, or give the endpoint its own name; `ollama-openai` is Ollama asked as OpenAI";

impl Endpoint {
    /// Whether what is known of the models of a provider may not hold of those here, and not only how they are asked: limits, keys and
    /// timeouts change nothing of that.
    pub(crate) fn is_other_server(&self) -> bool {
        let Self { api, base_url, api_version, deployments, capabilities, .. } = self;
        let says = api.is_some() || base_url.is_some() || api_version.is_some() || capabilities.is_some();
        says || !deployments.is_empty()
    }

    /// Returns the configuration of the endpoint under `name`, with keys and secret headers out of `env`.
    ///
    /// A key that is not set is not an error yet: it is one of the first call. The key of a provider that is known goes to
    /// another address only when `key` names it.
    ///
    /// # Errors
    /// When the variable of a header is not set, when there is no address, and when a provider that is known is to be
    /// asked in another way.
    ///
    /// ```
    /// use polylogue_models::Env;
    /// use polylogue_team::{Endpoint, KeyVariable};
    /// let house = Endpoint {
    ///     base_url: Some("http://127.0.0.1:8000/v1".into()),
    ///     key: vec![KeyVariable { env: "HOUSE_KEY".into(), weight: 1 }],
    ///     in_flight: Some(4),
    ///     ..Endpoint::default()
    /// };
    /// let config = house.config("house", &Env::of([("HOUSE_KEY", "secret")]))?;
    /// assert_eq!((config.provider.as_str(), config.limits.in_flight), ("house", Some(4)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn config(&self, name: &str, env: &Env) -> Result<Config, ModelError> {
        let mut config = self.reached(name, env)?;
        if !self.key.is_empty() {
            let of = |variable: &KeyVariable| Some((Key::several(&env.get(&variable.env)?), variable.weight));
            let keys = self.key.iter().filter_map(of);
            let keys = keys.flat_map(|(keys, weight)| keys.into_iter().map(move |key| (key, weight)));
            let (keys, weights): (Vec<Key>, Vec<u32>) = keys.unzip();
            config = config.with_keys(keys);
            config.key_weights = weights;
            config.key_variables = self.key.iter().map(|variable| variable.env.clone()).collect();
            config.needs_key = true;
        }
        for (header, value) in &self.headers {
            config.headers.push((header.clone(), value.resolve(name, header, env)?));
        }
        // Some endpoints know who asks by another header than that of keys.
        config.needs_key &= !self.key.is_empty() || self.variables().next().is_none();
        let usual = config.limits;
        let in_flight = self.in_flight.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        config.limits.in_flight = in_flight.or(usual.in_flight);
        config.slots = self.in_flight;
        config.limits.per_minute = self.per_minute.or(usual.per_minute);
        config.timeouts = self.timeouts.or(config.timeouts);
        if let Some(retries) = self.retries {
            config.retries.attempts = retries.saturating_add(1);
        }
        if let Some(longest) = self.max_wait.map(Duration::from) {
            config.retries = config.retries.waiting(longest);
        }
        config.proxies = Proxies::of(env);
        config.merge = self.merge.unwrap_or(config.merge);
        config.api_version = self.api_version.clone().or(config.api_version);
        config.deployments = self.deployments(name, config.deployments)?;
        config.cache_marks = self.prompt_cache.unwrap_or(config.cache_marks);
        if let Some(capabilities) = self.capabilities {
            config.capabilities = capabilities.or(config.capabilities);
        }
        config.reasoning = self.send_reasoning.unwrap_or(config.reasoning);
        config.drop_parameters.extend(self.drop_parameters.iter().map(|parameter| parameter.name()));
        Ok(config)
    }

    fn reached(&self, name: &str, env: &Env) -> Result<Config, ModelError> {
        let provider = Provider::find(name);
        let config = match (provider, &self.base_url) {
            (Some(provider), None) if self.key.is_empty() => provider.config(env),
            (Some(provider), None) => provider.config_for(env, &self.key_variables()),
            (Some(provider), Some(url)) => provider.config_moved(env, url, &self.key_variables()),
            (None, Some(url)) => {
                let api = self.api.unwrap_or_default();
                Ok(Config { provider: name.to_owned(), ..Config::of(api, url) })
            }
            (None, None) => {
                let message = format!("the endpoint `{name}` has no address");
                Err(ModelError::new(ModelErrorKind::Config, name, message).hint("give it a `base_url`"))
            }
        }?;
        let Some(api) = self.api else { return Ok(config) };
        if api != config.api && !provider.is_some_and(|provider| provider.has_api(api)) {
            let message = format!("`{name}` is asked in another way than `api` says");
            return Err(ModelError::new(ModelErrorKind::Config, name, message).hint(OTHER_WAY));
        }
        Ok(Config { api, reasoning_api: None, ..config })
    }

    fn key_variables(&self) -> Vec<&str> {
        self.key.iter().map(|variable| variable.env.as_str()).collect()
    }

    /// The models behind deployments, each of which is in the table.
    fn deployments(
        &self,
        name: &str,
        usual: Option<BTreeMap<String, String>>,
    ) -> Result<Option<BTreeMap<String, String>>, ModelError> {
        let is_unknown = |model: &&String| models::KnownModel::find(canonical(name), model).is_none();
        if let Some(model) = self.deployments.values().find(is_unknown) {
            let message = format!("the table of models has no `{model}` of `{name}`");
            let hint = format!(
                "`polylogue models {name} --offline` lists them; leave the deployment out if there is none"
            );
            return Err(ModelError::new(ModelErrorKind::Config, name, message).hint(hint));
        }
        Ok(if self.deployments.is_empty() { usual } else { Some(self.deployments.clone()) })
    }

    /// Returns the environment variables that it names, those of keys first: what they hold is sent to it.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.values().filter_map(|header| match &header.value {
            Header::Text(_) => None,
            Header::Variable(from) => Some(from.env.as_str()),
        });
        self.key.iter().map(|variable| variable.env.as_str()).chain(headers)
    }
}

impl Header {
    fn resolve(&self, endpoint: &str, header: &str, env: &Env) -> Result<String, ModelError> {
        let from = match self {
            Self::Text(text) => return Ok(text.clone()),
            Self::Variable(from) => from,
        };
        let value = env.get(&from.env).map(|value| value.trim().to_owned());
        value.ok_or_else(|| {
            let message =
                format!("the header `{header}` of `{endpoint}` is in `{}`, which is not set", from.env);
            let hint = format!("set `{}`, in the environment or in `.env`", from.env);
            ModelError::new(ModelErrorKind::Config, endpoint, message).hint(hint)
        })
    }
}

/// What an endpoint is called everywhere: providers that are known are so in any letters.
pub(crate) fn canonical(name: &str) -> &str {
    match Provider::find(name) {
        Some(provider) => provider.name(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(json: &str) -> Endpoint {
        crate::text::read(json)
    }

    #[test]
    fn every_setting_of_an_endpoint_reaches_its_model() {
        let house = endpoint(
            r#"{"base_url": "http://h/v1", "headers": {"X-A": "a", "X-B": {"env": "B"}}, "in_flight": 3, "per_minute": 60,
                "timeouts": {"connect": "1 s", "first_token": "2 s", "idle": "3 s", "total": "1 min"},
                "retries": 0, "merge": false}"#,
        );
        let config = house.config("house", &Env::of([("B", " b\n")])).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(config.headers, [pair("X-A", "a"), pair("X-B", "b")]);
        assert_eq!(config.limits, models::Limits { in_flight: Some(3), per_minute: Some(60) });
        assert_eq!(config.slots, Some(3));
        let seconds = Duration::from_secs;
        let timeouts = models::Timeouts {
            connect: seconds(1),
            first_token: seconds(2),
            idle: seconds(3),
            total: seconds(60),
        };
        assert_eq!((config.timeouts, config.retries.attempts, config.merge), (timeouts, 1, false));
        assert!(!config.needs_key && config.key.is_none());
    }

    #[test]
    fn longer_waits_give_retries_more_time() {
        let env = Env::of::<&str, &str>([]);
        for (settings, max_wait, within) in [
            (r#""max_wait": "5 s""#, 5, 300),
            (r#""max_wait": "10 min""#, 600, 3000),
            (r#""max_wait": "10 min", "retries": 1"#, 600, 1200),
        ] {
            let json = format!(r#"{{"base_url": "http://h/v1", {settings}}}"#);
            let retries = endpoint(&json).config("house", &env).unwrap().retries;
            let times = [retries.max_wait, retries.within].map(|time| time.as_secs());
            assert_eq!(times, [max_wait, within], "{settings}");
        }
    }

    #[test]
    fn capabilities_of_models_can_be_declared() {
        let env = Env::of::<&str, &str>([]);
        let capabilities = |json: &str| endpoint(json).config("house", &env).unwrap().capabilities;
        assert_eq!(capabilities(r#"{"base_url": "http://h/v1"}"#), polylogue_core::Capabilities::default());
        assert_eq!(
            capabilities(r#"{"base_url": "http://h/v1", "capabilities": "text"}"#),
            polylogue_core::Capabilities::TEXT
        );
        let some =
            capabilities(r#"{"base_url": "http://h/v1", "capabilities": {"tools": false, "vision": true}}"#);
        assert_eq!((some.tools, some.schema, some.vision), (Some(false), None, Some(true)));
        let plain = capabilities(
            r#"{"base_url": "http://h/v1", "capabilities": {"system_role": false, "null_content": false}}"#,
        );
        assert_eq!((plain.system_role, plain.null_content, plain.tools), (Some(false), Some(false), None));
    }

    #[test]
    fn omitted_settings_of_an_endpoint_have_their_defaults() {
        let env = Env::of([("OPENAI_API_KEY", "secret")]);
        let (set, usual) = (
            endpoint("{}").config("OpenAI", &env).unwrap(),
            Provider::find("openai").unwrap().config(&env).unwrap(),
        );
        assert_eq!(format!("{set:?} {}", set.merge), format!("{usual:?} {}", usual.merge));
        assert_eq!((set.key, set.retries), (usual.key, usual.retries));
    }

    #[test]
    fn ollama_is_asked_in_its_own_way_under_any_name() {
        let env = Env::of::<&str, &str>([]);
        let gpu = endpoint(r#"{"base_url": "http://gpu:11434/v1", "api": "ollama"}"#);
        let config = gpu.config("gpu", &env).unwrap();
        assert_eq!((config.api, &*config.base_url), (models::Api::Ollama, "http://gpu:11434"));
        assert_eq!(config.provider, "gpu");
        assert_eq!(gpu.config("ollama", &env).unwrap().api, models::Api::Ollama);
        for name in ["openai", "ollama-openai"] {
            let error = gpu.config(name, &env).unwrap_err();
            assert!(error.message.contains("another way") && error.hint.is_some(), "{error:?}");
        }
        let usual = endpoint(r#"{"base_url": "http://gpu/v1", "api": "chat_completions"}"#);
        assert_eq!(usual.config("gpu", &env).unwrap().api, models::Api::ChatCompletions);
        assert!(usual.config("ollama", &env).is_err());
    }

    #[test]
    fn a_providers_key_goes_to_another_address_only_when_it_is_named() {
        let env = Env::of([("OPENAI_API_KEY", "secret")]);
        let moved = endpoint(r#"{"base_url": "http://h/v1"}"#).config("openai", &env).unwrap();
        assert_eq!((moved.key, moved.needs_key, moved.max_completion_tokens), (None, false, false));
        let named = endpoint(r#"{"base_url": "http://h/v1", "key": "OPENAI_API_KEY"}"#);
        assert_eq!(named.config("openai", &env).unwrap().key, Key::new("secret"));
        // Several are taken in turn; those of the provider's own variable are none of them.
        let env = Env::of([("OPENAI_API_KEY", "a, b"), ("MINE", "c,d")]);
        let mine = endpoint(r#"{"key": "MINE"}"#).config("openai", &env).unwrap();
        assert_eq!((mine.key, mine.further_keys), (Key::new("c"), Key::several("d")));
        let ours = endpoint(r#"{"key": ["OPENAI_API_KEY", "UNSET", {"env": "MINE", "weight": 3}]}"#);
        let ours = ours.config("openai", &env).unwrap();
        let all: Vec<Key> = ours.key.into_iter().chain(ours.further_keys).collect();
        assert_eq!((all, ours.key_weights), (Key::several("a,b,c,d"), vec![1, 1, 3, 3]));
        assert_eq!(ours.key_variables, ["OPENAI_API_KEY", "UNSET", "MINE"]);
    }

    #[test]
    fn a_secret_header_is_in_for_a_key_and_has_to_be_set() {
        let team = endpoint(r#"{"headers": {"Authorization": {"env": "TOKEN"}}}"#);
        assert!(!team.config("openai", &Env::of([("TOKEN", "Bearer x")])).unwrap().needs_key);
        let error = team.config("openai", &Env::of([("", "")])).unwrap_err();
        assert_eq!(error.message, "the header `Authorization` of `openai` is in `TOKEN`, which is not set");
    }
}
