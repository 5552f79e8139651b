//! An endpoint: an address, a key, and the limits that all its models share.

mod bedrock_models;
mod embed;
mod exchange;
mod key_pool;
mod model;
mod of_process;
mod permit;
mod read;
mod served;

use std::sync::Arc;

use polylogue_core::{
    Capabilities, DeltaSink, ModelError, ModelErrorKind, Reply, Request, Seals, SealsSent, Verbatim,
};
use polylogue_http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use polylogue_http::{HeaderMap, HeaderName, HeaderValue, Key, Method, Redactor, Transport};
use url::Url;

pub use embed::Embedder;
pub use model::{EndpointModel, Probed};
pub use served::ServedModel;

use crate::accepts::Accepts;
use crate::address::{self, base, place, shown};
use crate::api::{Api, BETA};
use crate::auth::{Auth, GOOGLE_KEY};
use crate::authorizer::{Authorizer, JSON};
use crate::azure;
use crate::cluster::EndpointLimiters;
use crate::config::Config;
use crate::failure::{ErrorContext, Failure};
use crate::learned::{Findings, LearnedCapabilities};
use crate::limits::RateLimiter;
use crate::media_limits::MediaLimits;
use crate::refused_parameters::RefusedParameters;
use crate::retry::{Jitter, Retries};
use crate::timeouts::{Clock, Limit};
use crate::unsupported::Unsupported;
use crate::wire::draft::Decoded;
use crate::wire::encode::Body;
use crate::wire::protocol::{Protocol, Style};
use exchange::{Exchanged, Outgoing};
use key_pool::KeyPool;
use read::{Stop, read_stream, read_whole};

/// The limit on the tokens of a reply, those of reasoning included, in chat completions of OpenAI.
const COMPLETION_LIMIT: &str = "max_completion_tokens";

/// A model server. Cloning shares its connections and limits.
///
/// ```
/// use polylogue_core::Model;
/// use polylogue_models::{Config, Endpoint};
/// let endpoint = Endpoint::new(Config { provider: "vllm".into(), ..Config::new("http://127.0.0.1:8000/v1") })?;
/// assert_eq!(endpoint.model("Qwen/Qwen3-8B").name(), "vllm:Qwen/Qwen3-8B");
/// # Ok::<(), polylogue_core::ModelError>(())
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("Endpoint({:?})", self.0.config)]
pub struct Endpoint(Arc<Inner>);

struct Inner {
    config: Config,
    base: Url,
    /// The base URL as errors show it.
    shown: String,
    key_pool: KeyPool,
    limiter: RateLimiter,
    shared_limiters: Option<EndpointLimiters>,
    jitter: Jitter,
    redactor: Redactor,
    unsupported: Unsupported,
    refused_parameters: RefusedParameters,
}

impl Endpoint {
    /// Prepares an endpoint; nothing is sent.
    ///
    /// # Errors
    /// When the base URL is invalid, or a header or the key cannot be sent.
    pub fn new(config: Config) -> Result<Self, ModelError> {
        let refuse = |message: String| ModelError::new(ModelErrorKind::Config, &*config.provider, message);
        let base = base(&config.base_url).map_err(|why| {
            refuse(format!("the base URL {why}")).hint("it looks like `http://127.0.0.1:8000/v1`")
        })?;
        let url = place(config.api, &base, config.api.http().chat);
        let in_url = address::secrets(&url);
        let secrets = config.keys().map(Key::reveal);
        let secrets = secrets.chain(config.headers.iter().map(|(_, value)| value.as_str()));
        let secrets = secrets.chain(config.auth.secrets()).chain(in_url.iter().map(String::as_str));
        // A gateway may quote keys of its own.
        let redactor = Redactor::new(secrets).with_key_formats();
        let transport = |key: Option<&Key>| {
            let headers = headers(&config, key).map_err(refuse)?;
            Transport::new(&url, headers, config.timeouts.connect, &config.proxies)
                .map_err(|why| refuse(format!("the base URL {why}")))
        };
        let weights = config.key_weights.iter().copied().chain(std::iter::repeat(1));
        let mut keys = config.keys().map(Some).zip(weights);
        let weighted = |(key, weight)| transport(key).map(|transport| (transport, weight));
        let first = weighted(keys.next().unwrap_or((None, 1)))?;
        let further = keys.map(weighted).collect::<Result<_, _>>()?;
        let key_pool = KeyPool::new(first, further, url, Authorizer::new(&config));
        Ok(Self(Arc::new(Inner {
            limiter: RateLimiter::new(config.limits),
            shared_limiters: EndpointLimiters::new(&config, &shown(&base)),
            shown: shown(&base),
            base,
            key_pool,
            jitter: Jitter::new(config.retries.seed),
            redactor,
            unsupported: Unsupported::default(),
            refused_parameters: RefusedParameters::default(),
            config,
        })))
    }

    /// Returns the provider: the part before the `:` in the names of its models.
    pub fn provider(&self) -> &str {
        &self.0.config.provider
    }

    /// Returns the known capabilities of its model `model`: found in earlier calls, and stored in [`Config::known`].
    pub fn findings(&self, model: &str) -> Findings {
        self.known().map(|known| known.of(self.shown(), model)).unwrap_or_default()
    }

    /// Returns the API that it uses.
    pub fn api(&self) -> Api {
        self.0.config.api
    }

    pub(crate) fn unsupported(&self) -> &Unsupported {
        &self.0.unsupported
    }

    fn capabilities(&self) -> Capabilities {
        self.0.config.capabilities
    }

    fn known(&self) -> Option<&LearnedCapabilities> {
        self.0.config.known.as_ref()
    }

    fn shown(&self) -> &str {
        &self.0.shown
    }

    /// The URL of `target`, a path below the base URL that may have a query.
    fn place(&self, target: &str) -> Url {
        place(self.api(), &self.0.base, target)
    }

    fn lacks_key(&self) -> bool {
        self.0.config.needs_key && !self.0.config.has_credentials()
    }

    fn retries(&self) -> &Retries {
        &self.0.config.retries
    }

    fn jitter(&self) -> &Jitter {
        &self.0.jitter
    }

    fn style(&self) -> Style {
        let Config {
            merge,
            stream,
            stream_usage,
            max_completion_tokens,
            reasoning,
            call_id_length,
            deviations,
            ..
        } = self.0.config;
        let max_tokens = if max_completion_tokens { COMPLETION_LIMIT } else { "max_tokens" };
        let (vision, fold, omit, bridge) = (false, false, false, false);
        let vertex = self.0.config.auth.is_vertex();
        Style {
            vertex,
            merge,
            stream,
            stream_usage,
            max_tokens,
            vision,
            fold,
            omit,
            bridge,
            reasoning,
            call_id_length,
            marks: self.0.config.cache_marks,
            long_marks: false,
            marks_system: false,
            names_prefix: self.0.config.cache_marks && deviations.prompt_cache_key,
            deviations,
            lacks_reasoning: false,
            accepts: Accepts::UNKNOWN,
            media: &MediaLimits::NONE,
        }
    }

    /// Removes the headers that the configuration has, too. Lists are joined.
    fn give_way(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.0.config.headers {
            let Some(of_request) = headers.remove(name) else { continue };
            if BETA.as_str().eq_ignore_ascii_case(name)
                && let Ok(all) =
                    HeaderValue::from_str(&format!("{value},{}", of_request.to_str().unwrap_or_default()))
            {
                headers.insert(BETA, all);
            }
        }
    }

    fn context<'a>(&'a self, model: &'a str) -> ErrorContext<'a> {
        let Inner { config, shown, redactor, key_pool, .. } = &*self.0;
        let has_key = config.has_credentials();
        let proxy = key_pool.any().proxy();
        ErrorContext {
            model,
            api: config.api,
            base_url: shown,
            has_key,
            key_variables: &config.key_variables,
            proxy,
            redactor,
        }
    }

    /// Sends `body` once and reads the reply.
    async fn attempt<P: Protocol>(
        &self,
        body: &Body,
        url: Option<&Url>,
        style: &Style,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
        context: &ErrorContext<'_>,
    ) -> Result<Answer, Failure> {
        let bound = body.seals().and_then(SealsSent::key);
        let (_pass, permit) = self.admitted(bound, estimate(&body.bytes(), request), context).await?;
        let timeouts = self.0.config.timeouts;
        let clock = Clock::start(timeouts);
        let mut headers = HeaderMap::new();
        P::headers(&mut headers, request, style);
        self.give_way(&mut headers);
        let limit = if style.stream { Limit::FirstToken } else { Limit::Total };
        let outgoing = Outgoing { method: Method::POST, url, headers, body: body.bytes() };
        let Exchanged { key, mut response, authorized } =
            self.0.key_pool.exchange(outgoing, &permit, (&clock, limit), context).await?;
        let reply = if style.stream {
            read_stream::<P>(&mut response, &clock, request, deltas).await
        } else {
            read_whole::<P>(&mut response, &clock, request, deltas).await
        };
        let failed = |stop: Stop| {
            authorized.hidden(context, |context| stop.failure(context, timeouts, response.status()))
        };
        let decoded = reply.map_err(|stop| self.0.key_pool.but_for(key, failed(stop)))?;
        self.0.key_pool.succeeded(key);
        permit.settle(&decoded.reply.usage);
        Ok(sealed(decoded, body.seals(), request, key))
    }
}

/// About how many tokens a request takes, until its usage is known.
fn estimate(body: &[u8], request: &Request<'_>) -> u64 {
    let input = u64::try_from(body.len() / 4).unwrap_or(u64::MAX);
    input.saturating_add(request.params.max_tokens.map_or(500, u64::from).min(4_000))
}

/// What a request was answered with.
struct Answer {
    reply: Reply,
    /// What the same request is sent with to have the rest of the reply, if the provider paused it so.
    continuation: Option<String>,
    /// The model that replied, as the provider names it.
    model: Option<Box<str>>,
}

/// The answer, its reply with its seals if the request knew of seals: `sent` are those that it had, `key` is the index of its
/// key.
fn sealed(decoded: Decoded, sent: Option<&SealsSent>, request: &Request<'_>, key: usize) -> Answer {
    let Decoded { reply, seals: parts, continuation, model } = decoded;
    let Some(sent) = sent.filter(|_| !parts.is_empty()) else {
        return Answer { reply, continuation, model };
    };
    let seals =
        Seals { by: Arc::clone(sent.by()), before: sent.before(request.entries), key: Some(key), parts };
    let verbatim = reply.verbatim.as_deref().cloned().unwrap_or_default();
    let verbatim = Verbatim { seals: Some(seals), ..verbatim }.some().map(Arc::new);
    Answer { reply: Reply { verbatim, ..reply }, continuation, model }
}

/// The headers of every request with `key`.
fn headers(config: &Config, key: Option<&Key>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.insert(ACCEPT, HeaderValue::from_static(config.api.http().accept));
    for (name, value) in config.api.headers() {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = key {
        let (name, value) = match &config.auth {
            Auth::Bearer | Auth::Google(_) => {
                (AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {}", key.reveal())))
            }
            Auth::Header(name) => (name.clone(), HeaderValue::from_str(key.reveal())),
            Auth::GoogleKey => (GOOGLE_KEY, HeaderValue::from_str(key.reveal())),
            Auth::Azure(_) => (azure::API_KEY, HeaderValue::from_str(key.reveal())),
            Auth::Aws(_) => return Err("a key is set besides the credentials that sign requests".to_owned()),
        };
        let mut value =
            value.map_err(|_| "the key has characters that no key has, such as a line end".to_owned())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &config.headers {
        let legal = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is not a valid header name"))?;
        let value = HeaderValue::from_str(value);
        let mut value = value.map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(legal, value);
    }
    Ok(headers)
}
