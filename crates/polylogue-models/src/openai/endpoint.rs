//! An endpoint: an address, a key, and the limits that all its models share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use polylogue_core::{Deltas, ModelError, ModelErrorKind, Reply, Request, Skills};
use url::Url;

use super::OpenAi;
use super::decode::{Decoder, Flaw};
use super::tail::Style;
use crate::env::Env;
use crate::failure::{Blame, Failure, Refusal};
use crate::http::{Clock, Limit, Proxies, ReadError, Response, Timeouts, Transport, read_all, read_up_to};
use crate::key::{Key, Redactor};
use crate::limits::{Gate, Limits};
use crate::retry::{Jitter, Retries};
use crate::unsupported::Lacks;

/// The longest body of a reply that is not streamed, in bytes.
const MAX_BODY: usize = 64 << 20;

/// The longest streamed body, in bytes: some hundred for each of the longest reply's tokens.
const MAX_STREAM: usize = 256 << 20;

/// How much of an error's body is read.
const MAX_ERROR: usize = 64 << 10;

/// How long usage is waited for once the reply itself is complete.
const AFTER_FINISH: Duration = Duration::from_secs(5);

/// How long the end of a body is waited for once its reply has ended, so that the connection can be used again.
const AFTER_END: Duration = Duration::from_millis(50);

/// How to reach an endpoint.
#[derive(Clone)]
pub struct Config {
    /// What stands before the `:` in the names of its models.
    pub provider: String,
    /// Where `/chat/completions` is, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// Sent as `Authorization: Bearer`.
    pub key: Option<Key>,
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
    /// Whether the usage of a streamed reply is asked for with `stream_options`, which a few servers refuse.
    pub stream_usage: bool,
    /// Whether the limit on a reply's tokens is sent as `max_completion_tokens`, as OpenAI wants it, and not as
    /// `max_tokens`, as everybody else does.
    pub max_completion_tokens: bool,
    /// What its models are known to be able to do, or not. What is not known turns out when it is asked for: a model that
    /// refuses is not asked again for ten minutes.
    pub skills: Skills,
}

impl Config {
    /// The endpoint at `base_url`, without a key, streaming, with everything else as it usually is.
    #[must_use]
    pub fn new(base_url: impl Into<String>) -> Self {
        let base_url = base_url.into();
        let url = Url::parse(&base_url).ok();
        let is_openai = url.as_ref().and_then(Url::host_str).is_some_and(|host| host == "api.openai.com");
        Self {
            provider: "compatible".to_owned(),
            base_url,
            key: None,
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
            skills: Skills::default(),
        }
    }
}

/// Shows neither the key nor the values of headers, nor what may be secret in the address.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let base_url = Url::parse(&self.base_url).map_or_else(|_| "(no URL)".to_owned(), |url| shown(&url));
        f.debug_struct("Config")
            .field("provider", &self.provider)
            .field("base_url", &base_url)
            .field("key", &self.key)
            .field("headers", &names)
            .field("limits", &self.limits)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .field("proxies", &self.proxies)
            .finish_non_exhaustive()
    }
}

/// An endpoint. Cloning shares it: its connections, and its limits.
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
    transport: Transport,
    gate: Gate,
    jitter: Jitter,
    redactor: Redactor,
    lacks: Lacks,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.0.config).finish()
    }
}

impl Endpoint {
    /// Makes ready to reach an endpoint; nothing is sent.
    ///
    /// # Errors
    /// When the base URL is none, or a header or the key cannot be sent.
    pub fn new(config: Config) -> Result<Self, ModelError> {
        let refuse = |message: String| ModelError::new(ModelErrorKind::Config, &*config.provider, message);
        let url = completions_url(&config.base_url).map_err(|why| {
            refuse(format!("the base URL {why}")).hint("it looks like `http://127.0.0.1:8000/v1`")
        })?;
        let headers = headers(&config).map_err(refuse)?;
        let password = url.password().map(str::to_owned);
        let query: Vec<String> = url.query_pairs().map(|(_, value)| value.into_owned()).collect();
        let secrets = config.key.as_ref().map(Key::reveal).into_iter();
        let secrets = secrets.chain(config.headers.iter().map(|(_, value)| value.as_str()));
        let redactor =
            Redactor::new(secrets.chain(password.as_deref()).chain(query.iter().map(String::as_str)));
        let base = Url::parse(config.base_url.trim()).unwrap_or_else(|_| url.clone());
        let transport = Transport::new(&url, headers, config.timeouts.connect, &config.proxies)
            .map_err(|why| refuse(format!("the base URL {why}")))?;
        Ok(Self(Arc::new(Inner {
            shown: shown(&base),
            transport,
            gate: Gate::new(config.limits),
            jitter: Jitter::new(config.retries.seed),
            redactor,
            lacks: Lacks::default(),
            config,
        })))
    }

    /// The model that the endpoint calls `name`, at its list price if that is known.
    #[must_use]
    pub fn model(&self, name: &str) -> OpenAi {
        OpenAi::new(self.clone(), name)
    }

    /// What stands before the `:` in the names of its models.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.0.config.provider
    }

    pub(super) fn lacks(&self) -> &Lacks {
        &self.0.lacks
    }

    pub(super) fn skills(&self) -> Skills {
        self.0.config.skills
    }

    pub(super) fn lacks_key(&self) -> bool {
        self.0.config.needs_key && self.0.config.key.is_none()
    }

    pub(super) fn retries(&self) -> &Retries {
        &self.0.config.retries
    }

    pub(super) fn jitter(&self) -> &Jitter {
        &self.0.jitter
    }

    pub(super) fn style(&self) -> Style {
        let Config { merge, stream, stream_usage, max_completion_tokens, .. } = self.0.config;
        let max_tokens = if max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
        Style { merge, stream, stream_usage, max_tokens }
    }

    pub(super) fn blame<'a>(&'a self, model: &'a str) -> Blame<'a> {
        let Inner { config, shown, redactor, transport, .. } = &*self.0;
        let has_key = config.key.is_some();
        let proxy = transport.proxy();
        Blame { model, base_url: shown, has_key, key_variables: &config.key_variables, proxy, redactor }
    }

    /// Sends `body` once and reads the reply.
    pub(super) async fn attempt(
        &self,
        body: Bytes,
        stream: bool,
        request: &Request<'_>,
        deltas: &mut dyn Deltas,
        blame: &Blame<'_>,
    ) -> Result<Reply, Failure> {
        let _pass = self.0.gate.pass().await;
        let timeouts = self.0.config.timeouts;
        let clock = Clock::start(timeouts);
        let late = |limit| blame.late(limit, timeouts);
        let limit = if stream { Limit::FirstToken } else { Limit::Total };
        let sent = clock.wait(limit, self.0.transport.post(body)).await.map_err(late)?;
        let mut response = sent.map_err(|why| blame.unsent(why, timeouts))?;
        let status = response.status();
        if !(200..300).contains(&status) {
            return Err(refusal(&mut response, &clock, blame).await);
        }
        let reply = if stream {
            read_stream(&mut response, &clock, request, deltas).await
        } else {
            read_whole(&mut response, &clock, request, deltas).await
        };
        reply.map_err(|stop| match stop {
            Stop::Late(limit) => late(limit),
            Stop::Broken(error) => blame.broken(&error),
            Stop::Flaw(flaw) => blame.flawed(flaw, status),
        })
    }
}

/// Why reading a reply stopped.
enum Stop {
    Late(Limit),
    Broken(hyper::Error),
    Flaw(Flaw),
}

impl From<Flaw> for Stop {
    fn from(flaw: Flaw) -> Self {
        Self::Flaw(flaw)
    }
}

async fn read_stream(
    response: &mut Response<'_>,
    clock: &Clock,
    request: &Request<'_>,
    deltas: &mut dyn Deltas,
) -> Result<Reply, Stop> {
    let mut decoder = Decoder::default();
    let mut received = 0_usize;
    while !decoder.finished() {
        let limit = if decoder.began() { Limit::Idle } else { Limit::FirstToken };
        let chunk = clock.wait(limit, response.chunk()).await.map_err(Stop::Late)?;
        let Some(bytes) = chunk.map_err(Stop::Broken)? else { return Ok(decoder.finish(request, deltas)?) };
        received = received.saturating_add(bytes.len());
        if received > MAX_STREAM {
            return Err(Flaw::TooLong("the reply does not end").into());
        }
        decoder.feed(&bytes, deltas)?;
    }
    // The reply is complete: what is still to come is its usage, and nothing that goes wrong now can undo it.
    let rest = clock
        .wait(Limit::Total, tokio::time::timeout(AFTER_FINISH, read_rest(response, &mut decoder, deltas)));
    if let Ok(Ok(Err(flaw))) = rest.await {
        return Err(flaw.into());
    }
    if decoder.ended() {
        let drain = read_up_to(response, MAX_ERROR);
        let _ = tokio::time::timeout(AFTER_END, drain).await;
    }
    Ok(decoder.finish(request, deltas)?)
}

/// Reads on until the mark of the end, or whatever ends the body, within the bounds of an error's.
async fn read_rest(
    response: &mut Response<'_>,
    decoder: &mut Decoder,
    deltas: &mut dyn Deltas,
) -> Result<(), Flaw> {
    let mut received = 0_usize;
    while !decoder.ended() && received < MAX_ERROR {
        let Ok(Some(bytes)) = response.chunk().await else { break };
        received = received.saturating_add(bytes.len());
        decoder.feed(&bytes, deltas)?;
    }
    Ok(())
}

async fn read_whole(
    response: &mut Response<'_>,
    clock: &Clock,
    request: &Request<'_>,
    deltas: &mut dyn Deltas,
) -> Result<Reply, Stop> {
    let body = clock.wait(Limit::Total, read_all(response, MAX_BODY)).await.map_err(Stop::Late)?;
    let body = body.map_err(|error| match error {
        ReadError::TooLong => Stop::Flaw(Flaw::TooLong("the reply does not end")),
        ReadError::Broken(error) => Stop::Broken(error),
    })?;
    Ok(Decoder::default().whole(&body, request, deltas)?)
}

async fn refusal(response: &mut Response<'_>, clock: &Clock, blame: &Blame<'_>) -> Failure {
    let (status, headers) = (response.status(), response.headers().clone());
    // The status says enough: a body that breaks off or does not come is none.
    let read = clock.wait(Limit::Idle, read_up_to(response, MAX_ERROR)).await;
    let (body, is_cut) = read.ok().and_then(Result::ok).unwrap_or_default();
    blame.refused(&Refusal { status, headers: &headers, body: &body, is_cut })
}

/// Where the completions are. A base URL that names them already is understood too.
fn completions_url(base: &str) -> Result<Url, String> {
    const PATH: &str = "/chat/completions";
    let mut url = Url::parse(base.trim()).map_err(|why| format!("cannot be read: {why}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("does not begin with `http://` or `https://`".to_owned());
    }
    let path = url.path().trim_end_matches('/');
    let path = format!("{}{PATH}", path.strip_suffix(PATH).unwrap_or(path));
    url.set_path(&path);
    url.set_fragment(None);
    Ok(url)
}

/// A URL without what may be secret in it: credentials and query.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path().trim_end_matches('/'))
}

fn headers(config: &Config) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if let Some(key) = &config.key {
        let bearer = HeaderValue::from_str(&format!("Bearer {}", key.reveal()));
        let mut bearer =
            bearer.map_err(|_| "the key has characters that no key has, such as a line end".to_owned())?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    for (name, value) in &config.headers {
        let legal = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is no name of a header"))?;
        let value = HeaderValue::from_str(value);
        let mut value = value.map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(legal, value);
    }
    Ok(headers)
}
