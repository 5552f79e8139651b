//! An endpoint: an address, a key, and the limits that all its models share.

mod embed;
mod key_pool;
mod model;
mod read;
mod served;

use std::fmt;
use std::sync::Arc;

use polylogue_core::{
    Capabilities, Capability, DeltaSink, ModelError, ModelErrorKind, Reply, Request, Seals, SealsSent,
    Verbatim,
};
use polylogue_http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use polylogue_http::{HeaderMap, HeaderName, HeaderValue, Key, Redactor, Transport};
use url::Url;

pub use embed::Embedder;
pub use model::{EndpointModel, Probed};
pub use served::ServedModel;

use crate::address::{chat_url, shown};
use crate::api::Api;
use crate::config::Config;
use crate::failure::{ErrorContext, Failure};
use crate::learned::{Findings, LearnedCapabilities};
use crate::limits::RateLimiter;
use crate::retry::{Jitter, Retries};
use crate::timeouts::{Clock, Limit};
use crate::unsupported::Unsupported;
use crate::wire::draft::Decoded;
use crate::wire::encode::Body;
use crate::wire::protocol::{Protocol, Style};
use key_pool::KeyPool;
use read::{read_stream, read_whole, refusal};

/// A model server. Cloning shares its connections and limits.
///
/// ```
/// use polylogue_core::Model;
/// use polylogue_models::{Config, Endpoint};
/// let endpoint = Endpoint::new(Config { provider: "vllm".into(), ..Config::new("http://127.0.0.1:8000/v1") })?;
/// assert_eq!(endpoint.model("Qwen/Qwen3-8B").name(), "vllm:Qwen/Qwen3-8B");
/// # Ok::<(), polylogue_core::ModelError>(())
/// ```
#[derive(Clone)]
pub struct Endpoint(Arc<Inner>);

struct Inner {
    config: Config,
    /// The base URL as errors show it.
    shown: String,
    key_pool: KeyPool,
    limiter: RateLimiter,
    jitter: Jitter,
    redactor: Redactor,
    unsupported: Unsupported,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.0.config).finish()
    }
}

impl Endpoint {
    /// Prepares an endpoint; nothing is sent.
    ///
    /// # Errors
    /// When the base URL is invalid, or a header or the key cannot be sent.
    pub fn new(config: Config) -> Result<Self, ModelError> {
        let refuse = |message: String| ModelError::new(ModelErrorKind::Config, &*config.provider, message);
        let url = chat_url(config.api, &config.base_url).map_err(|why| {
            refuse(format!("the base URL {why}")).hint("it looks like `http://127.0.0.1:8000/v1`")
        })?;
        let password = url.password().map(str::to_owned);
        let query: Vec<String> = url.query_pairs().map(|(_, value)| value.into_owned()).collect();
        let secrets = config.keys().map(Key::reveal);
        let secrets = secrets.chain(config.headers.iter().map(|(_, value)| value.as_str()));
        let redactor =
            Redactor::new(secrets.chain(password.as_deref()).chain(query.iter().map(String::as_str)));
        let base = Url::parse(config.base_url.trim()).unwrap_or_else(|_| url.clone());
        let transport = |key: Option<&Key>| {
            let headers = headers(&config, key).map_err(refuse)?;
            Transport::new(&url, headers, config.timeouts.connect, &config.proxies)
                .map_err(|why| refuse(format!("the base URL {why}")))
        };
        let mut keys: Vec<Option<&Key>> = config.keys().map(Some).collect();
        if keys.is_empty() {
            keys.push(None);
        }
        let key_pool = KeyPool::new(keys.into_iter().map(transport).collect::<Result<_, _>>()?);
        Ok(Self(Arc::new(Inner {
            shown: shown(&base),
            key_pool,
            limiter: RateLimiter::new(config.limits),
            jitter: Jitter::new(config.retries.seed),
            redactor,
            unsupported: Unsupported::default(),
            config,
        })))
    }

    /// The part before the `:` in the names of its models.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.0.config.provider
    }

    /// The known capabilities of its model `model`: found in earlier calls, and stored in [`Config::known`].
    #[must_use]
    pub fn findings(&self, model: &str) -> Findings {
        self.known().map(|known| known.of(self.shown(), model)).unwrap_or_default()
    }

    /// The API that it uses.
    #[must_use]
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

    fn lacks_key(&self) -> bool {
        self.0.config.needs_key && self.0.config.keys().next().is_none()
    }

    fn retries(&self) -> &Retries {
        &self.0.config.retries
    }

    fn jitter(&self) -> &Jitter {
        &self.0.jitter
    }

    fn style(&self) -> Style {
        let Config { merge, stream, stream_usage, max_completion_tokens, reasoning, call_id_length, .. } =
            self.0.config;
        let vision = self.capabilities().has(Capability::Vision) == Some(true);
        let max_tokens = if max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
        let (fold, omit, bridge) = (false, false, false);
        Style {
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
        }
    }

    fn context<'a>(&'a self, model: &'a str) -> ErrorContext<'a> {
        let Inner { config, shown, redactor, key_pool, .. } = &*self.0;
        let has_key = config.keys().next().is_some();
        let proxy = key_pool.any().and_then(Transport::proxy);
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
        stream: bool,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
        context: &ErrorContext<'_>,
    ) -> Result<Reply, Failure> {
        let _pass = self.0.limiter.pass().await;
        let timeouts = self.0.config.timeouts;
        let clock = Clock::start(timeouts);
        let late = |limit| context.late(limit, timeouts);
        let limit = if stream { Limit::FirstToken } else { Limit::Total };
        let key_pool = &self.0.key_pool;
        let bound = body.seals().and_then(SealsSent::key);
        let (key, transport) = key_pool.next(bound).ok_or_else(|| context.no_credit(key_pool.len()))?;
        let sent = clock.wait(limit, transport.post(body.bytes())).await.map_err(late)?;
        let mut response = sent.map_err(|why| context.unsent(why, timeouts))?;
        let status = response.status();
        if !(200..300).contains(&status) {
            return Err(key_pool.but_for(key, refusal(&mut response, &clock, context).await));
        }
        let reply = if stream {
            read_stream::<P>(&mut response, &clock, request, deltas).await
        } else {
            read_whole::<P>(&mut response, &clock, request, deltas).await
        };
        let decoded = reply.map_err(|stop| key_pool.but_for(key, stop.failure(context, timeouts, status)))?;
        Ok(sealed(decoded, body.seals(), key))
    }
}

/// A reply with its seals, if the request knew of seals: `sent` are those that it had, `key` is the index of its key.
fn sealed(decoded: Decoded, sent: Option<&SealsSent>, key: usize) -> Reply {
    let Decoded { reply, seals: parts } = decoded;
    let Some(sent) = sent.filter(|_| !parts.is_empty()) else { return reply };
    let seals = Seals { by: Arc::clone(sent.by()), before: sent.before(), key: Some(key), parts };
    let verbatim = reply.verbatim.as_deref().cloned().unwrap_or_default();
    Reply { verbatim: Verbatim { seals: Some(seals), ..verbatim }.some().map(Arc::new), ..reply }
}

fn headers(config: &Config, key: Option<&Key>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let streamed = match config.api {
        Api::ChatCompletions => "text/event-stream, application/json",
        Api::Ollama => "application/x-ndjson, application/json",
    };
    headers.insert(ACCEPT, HeaderValue::from_static(streamed));
    if let Some(key) = key {
        let bearer = HeaderValue::from_str(&format!("Bearer {}", key.reveal()));
        let mut bearer =
            bearer.map_err(|_| "the key has characters that no key has, such as a line end".to_owned())?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
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
