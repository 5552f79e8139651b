//! The known providers.

mod vertex;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use polylogue_core::{Capabilities, Capability, ModelError, ModelErrorKind};
use polylogue_http::{Env, Key, Proxies};

use crate::api::{Api, EmbeddingApi};
use crate::auth::Auth;
use crate::aws::{self, Aws, AwsService};
use crate::azure::{self, AzureCredentials};
use crate::config::Config;
use crate::deviations;
use crate::google;

/// A provider of models.
#[derive(Debug)]
pub struct Provider {
    name: &'static str,
    api: Api,
    /// The API of models that are known to reason, at its public address.
    reasoning_api: Option<Api>,
    /// The API of embeddings, if it is not that of servers with its API.
    embeddings: Option<EmbeddingApi>,
    /// Its name in the table of models.
    table: &'static str,
    /// What its names of models have in front of those of the table.
    prefix: &'static str,
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

/// A paid service with chat completions.
const fn row(
    name: &'static str,
    base_url: &'static str,
    keys: &'static [&'static str],
    urls: &'static [&'static str],
) -> Provider {
    let (api, reasoning_api, embeddings, locality) = (Api::ChatCompletions, None, None, Remote);
    Provider { name, api, reasoning_api, embeddings, table: name, prefix: "", base_url, keys, urls, locality }
}

impl Provider {
    /// The same provider elsewhere than at a paid service.
    const fn at(self, locality: Locality) -> Self {
        Self { locality, ..self }
    }

    /// The same provider with another API than chat completions.
    const fn with(self, api: Api) -> Self {
        Self { api, ..self }
    }

    /// The same provider with another API for models that are known to reason.
    const fn with_reasoning(self, api: Api) -> Self {
        Self { reasoning_api: Some(api), ..self }
    }

    /// The same provider with another API of embeddings.
    const fn with_embeddings(self, api: EmbeddingApi) -> Self {
        Self { embeddings: Some(api), ..self }
    }

    /// The same provider with the models of another one in the table.
    const fn listed_as(self, table: &'static str) -> Self {
        Self { table, ..self }
    }

    /// The same provider, whose names of models begin with `prefix`, unlike those of the table.
    const fn prefixed(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }
}

/// OpenAI by its name, with the API that depends on it.
const fn openai(name: &'static str) -> Provider {
    let urls = &["OPENAI_BASE_URL", "OPENAI_API_BASE"];
    row(name, "https://api.openai.com/v1", &["OPENAI_API_KEY"], urls).listed_as("openai")
}

/// The variable with an access token of Azure, which is sent as `Authorization: Bearer` unlike a key.
const ACCESS_TOKEN: &str = "AZURE_OPENAI_AD_TOKEN";

/// The variables with the version of Azure's API.
const VERSIONS: [&str; 2] = ["AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"];

/// Ollama's default address.
const OLLAMA: &str = "http://127.0.0.1:11434";

/// OpenAI's models at the address of a resource of Azure.
const AZURE: &str = "azure";

/// Claude in Microsoft Foundry, at the address of a resource.
const FOUNDRY: &str = "foundry";

/// The variable with the name of a resource of Microsoft Foundry.
const RESOURCE: &str = "ANTHROPIC_FOUNDRY_RESOURCE";

/// Claude in Amazon Bedrock by Anthropic's API, whose address depends on the region.
const MANTLE: &str = "bedrock-mantle";

/// Gemini at Vertex AI, whose address depends on the project and the region.
const VERTEX: &str = "vertex";

/// Variables with an access token of Google's cloud, which also come from credentials, and the one with an API key of Vertex AI.
const KEYS_OF_VERTEX: &[&str] = &["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN", google::API_KEY];

const PROVIDERS: &[Provider] = &[
    openai("openai").with_reasoning(Api::Responses),
    row("ollama", OLLAMA, &["OLLAMA_API_KEY"], &["OLLAMA_HOST"]).at(Local).with(Api::Ollama),
    row("ollama-openai", OLLAMA, &["OLLAMA_API_KEY"], &["OLLAMA_HOST"]).at(Local),
    row("anthropic", "https://api.anthropic.com", &["ANTHROPIC_API_KEY"], &["ANTHROPIC_BASE_URL"])
        .with(Api::Messages),
    row("bedrock", "", &["AWS_BEARER_TOKEN_BEDROCK"], &["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"])
        .with(Api::Converse),
    row("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], &["DEEPSEEK_BASE_URL"]),
    row(
        "qwen",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        &["DASHSCOPE_API_KEY", "QWEN_API_KEY"],
        &["DASHSCOPE_BASE_URL", "QWEN_BASE_URL"],
    ),
    row("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"], &["MISTRAL_BASE_URL"])
        .with_embeddings(EmbeddingApi::Mistral),
    row(
        "cohere",
        "https://api.cohere.ai/compatibility/v1",
        &["COHERE_API_KEY", "CO_API_KEY"],
        &["COHERE_BASE_URL"],
    )
    .with_embeddings(EmbeddingApi::Cohere),
    row("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], &["GROQ_BASE_URL"]),
    row("together", "https://api.together.xyz/v1", &["TOGETHER_API_KEY"], &["TOGETHER_BASE_URL"]),
    row("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"], &["OPENROUTER_BASE_URL"]),
    row("xai", "https://api.x.ai/v1", &["XAI_API_KEY"], &["XAI_BASE_URL"]),
    row(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_API_KEY"],
        &["FIREWORKS_BASE_URL"],
    ),
    row("deepinfra", "https://api.deepinfra.com/v1/openai", &["DEEPINFRA_API_KEY"], &["DEEPINFRA_BASE_URL"]),
    row("cerebras", "https://api.cerebras.ai/v1", &["CEREBRAS_API_KEY"], &["CEREBRAS_BASE_URL"]),
    row("moonshot", "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY"], &["MOONSHOT_BASE_URL"]),
    row("zai", "https://api.z.ai/api/paas/v4", &["ZAI_API_KEY"], &["ZAI_BASE_URL"]),
    row("nebius", "https://api.tokenfactory.nebius.com/v1", &["NEBIUS_API_KEY"], &["NEBIUS_BASE_URL"]),
    row("sambanova", "https://api.sambanova.ai/v1", &["SAMBANOVA_API_KEY"], &["SAMBANOVA_BASE_URL"]),
    row(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        &["GEMINI_BASE_URL"],
    )
    .with(Api::Gemini),
    row(VERTEX, "", KEYS_OF_VERTEX, &["VERTEX_BASE_URL"])
        .with(Api::Gemini)
        .with_embeddings(EmbeddingApi::Vertex),
    row("vllm", "http://127.0.0.1:8000/v1", &["VLLM_API_KEY"], &["VLLM_BASE_URL"]).at(Local),
    row("llamacpp", "http://127.0.0.1:8080/v1", &["LLAMA_API_KEY"], &["LLAMACPP_BASE_URL"]).at(Local),
    row("sglang", "http://127.0.0.1:30000/v1", &["SGLANG_API_KEY"], &["SGLANG_BASE_URL"]).at(Local),
    row("tgi", "http://127.0.0.1:3000/v1", &["TGI_API_KEY"], &["TGI_BASE_URL"]).at(Local),
    row("lmstudio", "http://127.0.0.1:1234/v1", &["LMSTUDIO_API_KEY"], &["LMSTUDIO_BASE_URL"]).at(Local),
    openai("openai-chat"),
    openai("openai-responses").with(Api::Responses),
    row(AZURE, "", &["AZURE_OPENAI_API_KEY", ACCESS_TOKEN], &["AZURE_OPENAI_ENDPOINT"])
        .with_reasoning(Api::Responses),
    row(FOUNDRY, "", &["ANTHROPIC_FOUNDRY_API_KEY"], &["ANTHROPIC_FOUNDRY_BASE_URL"])
        .with(Api::Messages)
        .listed_as("anthropic"),
    row(MANTLE, "", &["AWS_BEARER_TOKEN_BEDROCK"], &["ANTHROPIC_BEDROCK_MANTLE_BASE_URL"])
        .with(Api::Messages)
        .listed_as("anthropic")
        .prefixed("anthropic."),
    row("compatible", "", &["OPENAI_API_KEY"], &["OPENAI_BASE_URL"]).at(Either),
];

impl Provider {
    /// Returns all known providers.
    pub const fn all() -> &'static [Self] {
        PROVIDERS
    }

    /// Finds the provider named `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name.eq_ignore_ascii_case(name))
    }

    /// Returns the name in `provider:model`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name in the [table of models](crate::KnownModel): `openai` for `openai-chat`.
    pub const fn table_name(&self) -> &'static str {
        self.table
    }

    /// What its names of models have in front of those of the table: `anthropic.` for Claude in Amazon Bedrock.
    pub(crate) const fn prefix(&self) -> &'static str {
        self.prefix
    }

    /// Returns the environment variables that decide where requests go, or what is run: those that
    /// [say where it is](Self::address_variables), and those with the files of the `aws` program, whose profiles can name a program.
    /// A `.env` file must be trusted before it can set them.
    pub fn trusted_variables(&self) -> Vec<&'static str> {
        let files = self.amazon().map(|_| aws::FILES).into_iter().flatten();
        self.address_variables().into_iter().chain(files).collect()
    }

    /// Returns whether it has models by `api`.
    pub fn has_api(&self, api: Api) -> bool {
        api == self.api || self.reasoning_api == Some(api)
    }

    /// Returns whether it is the user's own server, which costs nothing.
    pub fn is_local(&self) -> bool {
        self.locality == Local
    }

    /// Returns the environment variables with its key, or with several keys separated by commas; the first that is set counts.
    pub const fn key_variables(&self) -> &'static [&'static str] {
        self.keys
    }

    /// Returns the environment variables with another address for it; the first that is set counts.
    pub const fn url_variables(&self) -> &'static [&'static str] {
        self.urls
    }

    /// Returns the environment variables of which one says where it is: [those with an address](Self::url_variables), and the
    /// one with the name of a resource of Microsoft Foundry.
    pub fn address_variables(&self) -> Vec<&'static str> {
        let resource = (self.name == FOUNDRY).then_some(RESOURCE);
        self.urls.iter().copied().chain(resource).collect()
    }

    /// Returns whether `url` is its default address.
    pub fn is_at(&self, url: &str) -> bool {
        let plain = |url: &str| url.trim().trim_end_matches('/').to_owned();
        let own = self.config_at(self.base_url).base_url;
        !self.base_url.is_empty() && [plain(self.base_url), plain(&own)].contains(&plain(url))
    }

    /// Whether `url` is the address that a provider publishes, so that it is right.
    pub(crate) fn is_published(url: &str) -> bool {
        PROVIDERS.iter().any(|provider| !provider.is_local() && provider.is_at(url))
    }

    /// Whether `url` is at the host of its default address.
    pub(crate) fn has_host_of(&self, url: &str) -> bool {
        Self::of_host(url).any(|provider| provider.name == self.name)
    }

    /// The providers whose default address is at the host of `url`.
    pub(crate) fn of_host(url: &str) -> impl Iterator<Item = &'static Self> + use<> {
        static HOSTS: LazyLock<Vec<(String, &'static Provider)>> = LazyLock::new(|| {
            let others = PROVIDERS.iter().filter(|provider| !provider.is_local());
            others.filter_map(|provider| Some((host_of(provider.base_url)?, provider))).collect()
        });
        let host = host_of(url);
        HOSTS.iter().filter(move |(own, _)| host.as_ref() == Some(own)).map(|(_, provider)| *provider)
    }

    /// Returns the configuration, with an address from `env`, for keys of `variables` instead of its own: Vertex AI takes its
    /// API keys at another address than access tokens, and in another header. The keys are those of its own variables until
    /// they are replaced.
    ///
    /// # Errors
    /// As [`config`](Self::config).
    pub fn config_for(&self, env: &Env, variables: &[&str]) -> Result<Config, ModelError> {
        match self.name {
            VERTEX => {
                let given = self.urls.iter().find_map(|name| env.address(name));
                self.vertex(env, given, variables.contains(&google::API_KEY))
            }
            _ => self.config(env),
        }
    }

    /// Returns the configuration, with addresses and keys from `env`.
    ///
    /// # Errors
    /// When it has no default address and `env` has none.
    pub fn config(&self, env: &Env) -> Result<Config, ModelError> {
        let given = self.urls.iter().find_map(|name| env.address(name)).or_else(|| self.resource(env));
        let moved = given.is_some();
        if self.name == VERTEX {
            let is_express = self.found_keys(env).is_some_and(|(from, _)| from == google::API_KEY);
            return self.vertex(env, given, is_express);
        }
        let amazon = self.amazon();
        let base_url = match (given, amazon) {
            (Some(url), _) => url,
            (None, Some(service)) => Aws::of(env)?.to(service).address(),
            (None, None) if self.base_url.is_empty() => return Err(self.no_address()),
            (None, None) => self.base_url.to_owned(),
        };
        // At another address than the provider's own, it is unknown whether a key is required.
        let needs_key = self.locality == Remote && (!moved || self.base_url.is_empty());
        let config = self.with_keys(env, Config { needs_key, ..self.config_at(&base_url) });
        if matches!(self.name, AZURE | FOUNDRY) && config.key.is_none() {
            return self.with_entra(env, config);
        }
        let config = match self.api {
            Api::Converse => Config { list_url: env.address("AWS_ENDPOINT_URL_BEDROCK"), ..config },
            _ => config,
        };
        if let Some(service) = amazon.filter(|_| config.key.is_none()) {
            let key_variables = vec!["AWS_ACCESS_KEY_ID".to_owned(), "AWS_PROFILE".to_owned()];
            let auth = Auth::Aws(Aws::of(env)?.to(service));
            return Ok(Config { auth, key_variables, needs_key: false, ..config });
        }
        Ok(config)
    }

    /// The service of Amazon that it is.
    fn amazon(&self) -> Option<AwsService> {
        match self.name {
            MANTLE => Some(AwsService::Mantle),
            _ => (self.api == Api::Converse).then_some(AwsService::Runtime),
        }
    }

    /// The address of the resource that `env` names.
    fn resource(&self, env: &Env) -> Option<String> {
        let name = env.address(RESOURCE).filter(|_| self.name == FOUNDRY)?;
        azure::claude_resource(name.trim())
    }

    /// `config`, which has no key, with the credentials of Microsoft Entra, if `env` has any.
    fn with_entra(&self, env: &Env, mut config: Config) -> Result<Config, ModelError> {
        let hint = "set the variables of the identity together, or use a key";
        let credentials = AzureCredentials::of_env(env)
            .map_err(|why| ModelError::new(ModelErrorKind::Config, self.name, why).hint(hint))?;
        config.key_variables.extend(azure::TOKEN_FILES.map(str::to_owned));
        Ok(match credentials {
            Some(credentials) => Config { auth: Auth::Azure(credentials), needs_key: false, ..config },
            None => config,
        })
    }

    /// The first of its variables that has keys, and the keys.
    fn found_keys(&self, env: &Env) -> Option<(&'static str, Vec<Key>)> {
        let keys = |name: &&'static str| env.get(name).map(|text| Key::several(&text));
        let of = |name: &&'static str| Some((*name, keys(name)?)).filter(|(_, keys)| !keys.is_empty());
        self.keys.iter().find_map(of)
    }

    /// `config` with the keys and proxies of `env`.
    fn with_keys(&self, env: &Env, config: Config) -> Config {
        let (from, keys) = self.found_keys(env).unzip();
        let names: &[&str] = from.as_ref().map_or(self.keys, std::slice::from_ref);
        let key_variables = names.iter().map(|&name| name.to_owned()).collect();
        let config = self.config_with(config, env, from);
        Config { key_variables, proxies: Proxies::of(env), ..config }.with_keys(keys.unwrap_or_default())
    }

    /// `config` with what `env` says besides, for a key of the variable `from`.
    fn config_with(&self, config: Config, env: &Env, from: Option<&str>) -> Config {
        if self.name != AZURE {
            return config;
        }
        let auth = if from == Some(ACCESS_TOKEN) { Auth::Bearer } else { config.auth };
        Config { auth, api_version: VERSIONS.iter().find_map(|name| env.get(name)), ..config }
    }

    /// Returns the configuration at `base_url` instead of its default address, without a key: a key for one server is sent to
    /// another only if the user says so.
    pub fn config_at(&self, base_url: &str) -> Config {
        let row = deviations::of(self.name);
        match self.name {
            // The same server, with its OpenAI-compatible API.
            "ollama-openai" => {
                let base_url = format!("{}/v1", Config::ollama(base_url).base_url);
                Config { provider: self.name.to_owned(), ..Config::new(base_url) }
            }
            AZURE => Config {
                provider: self.name.to_owned(),
                reasoning_api: self.reasoning_api,
                deployments: Some(BTreeMap::new()),
                auth: Auth::Header(azure::API_KEY),
                max_completion_tokens: true,
                deviations: row.fields,
                ..Config::new(azure::base(base_url))
            },
            FOUNDRY => Config {
                provider: self.name.to_owned(),
                auth: Auth::Header(azure::API_KEY),
                capabilities: self.capabilities(),
                ..Config::of(self.api, &azure::claude_base(base_url))
            },
            MANTLE => Config {
                provider: self.name.to_owned(),
                auth: Auth::Bearer,
                deviations: row.fields,
                capabilities: self.capabilities(),
                ..Config::of(self.api, base_url)
            },
            VERTEX => Config {
                provider: self.name.to_owned(),
                auth: Auth::Google(None),
                deviations: row.fields,
                embeddings: self.embeddings,
                ..Config::of(self.api, base_url)
            },
            // Its OpenAI-compatible API.
            "gemini" if base_url.trim().trim_end_matches('/').ends_with("/openai") => {
                Config { provider: self.name.to_owned(), ..Config::new(base_url) }
            }
            _ => Config {
                provider: self.name.to_owned(),
                // Other servers with OpenAI's API rarely have another one than chat completions.
                reasoning_api: self.reasoning_api.filter(|_| self.has_host_of(base_url)),
                embeddings: self.embeddings,
                stream_usage: row.stream_usage,
                capabilities: self.capabilities(),
                reasoning: row.reasoning,
                call_id_length: row.call_id_length,
                deviations: row.fields.at(self.has_host_of(base_url)),
                ..Config::of(self.api, base_url)
            },
        }
    }

    /// Returns the documented capabilities of all its models; unknown otherwise.
    pub fn capabilities(&self) -> Capabilities {
        match self.name {
            // All its models see pictures, and its API takes results and words together.
            "anthropic" | FOUNDRY | MANTLE => Capabilities::default().with(Capability::Vision),
            "mistral" => Capabilities::default().without(Capability::UserAfterTool),
            _ if !deviations::of(self.name).null_content => {
                Capabilities::default().without(Capability::NullContent)
            }
            _ => Capabilities::default(),
        }
    }

    fn no_address(&self) -> ModelError {
        let names: Vec<String> = self.address_variables().iter().map(|name| format!("`{name}`")).collect();
        let message =
            format!("the provider `{}` has no address: {} is not set", self.name, names.join(" or "));
        ModelError::new(ModelErrorKind::Config, self.name, message).hint(match self.name {
            AZURE => "set it to the resource's address, such as `https://NAME.openai.azure.com`",
            FOUNDRY => {
                "set the first to the resource's address, such as `https://NAME.services.ai.azure.com/anthropic`, or the second to `NAME`"
            }
            _ => "set it to the endpoint's base URL, such as `http://127.0.0.1:8000/v1`",
        })
    }
}

fn host_of(url: &str) -> Option<String> {
    url::Url::parse(url.trim()).ok()?.host_str().map(|host| host.trim_end_matches('.').to_owned())
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
