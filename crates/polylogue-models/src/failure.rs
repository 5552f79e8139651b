//! Turns failed requests into errors with a cause and a hint.

use std::error::Error;
use std::time::Duration;

use polylogue_core::{FailedAttempt, ModelError, ModelErrorKind as Kind, text};
use polylogue_http::{Broken, HeaderMap, Redactor, SendError, StatusCode, Uri};

use crate::account_error::{AccountError, QUOTA};
use crate::api::Api;
use crate::error_body::{ErrorBody, LARGE, LONG, MESSAGE_KEPT};
use crate::google;
use crate::ollama::{self, Advice};
use crate::provider::Provider;
use crate::rate_headers::{asked, until_reset};
use crate::retry::{RetryAdvice, RetryStop, wait_in_words};
use crate::timeouts::{Limit, Timeouts};
use crate::wire::draft::{DecodeError, EXCERPT};

/// How much of an error's body is stored.
const BODY_KEPT: usize = 2048;

/// How many characters of what cannot be read are quoted.
const UNREADABLE_QUOTED: usize = 100;

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ModelError,
    pub(crate) again: RetryAdvice,
    /// How far it came, which decides what it counts.
    pub(crate) ended: FailedAttempt,
    /// If the provider could not parse a tool call that the model wrote: what the model wrote, as far as the provider says.
    pub(crate) unparsed: Option<String>,
}

impl Failure {
    /// The same for a request that did not reach the server.
    fn unsent(self) -> Self {
        Self { ended: FailedAttempt::Unsent, ..self }
    }
}

/// How far an attempt with this `status` came. Providers bill nothing for what they refuse; a gateway timeout says
/// nothing about the model behind it.
const fn ended_by(status: u16) -> FailedAttempt {
    match status {
        408 | 499 => FailedAttempt::Broken,
        300..=499 | 503 | 529 => FailedAttempt::Refused,
        _ => FailedAttempt::Broken,
    }
}

/// The context of an error: what errors of one model have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorContext<'a> {
    /// The model, as `provider:model`.
    pub(crate) model: &'a str,
    /// The API.
    pub(crate) api: Api,
    /// The base URL without possible secrets.
    pub(crate) base_url: &'a str,
    /// Whether a key was sent.
    pub(crate) has_key: bool,
    /// The variables that can contain the key.
    pub(crate) key_variables: &'a [String],
    /// The proxy, if there is one.
    pub(crate) proxy: Option<&'a Uri>,
    pub(crate) redactor: &'a Redactor,
}

/// A response with an error status.
pub(crate) struct Refusal<'a> {
    pub(crate) status: u16,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    /// Whether the body is longer than what was read.
    pub(crate) is_cut: bool,
}

impl ErrorContext<'_> {
    fn error(&self, kind: Kind, message: &str) -> ModelError {
        ModelError::new(kind, self.model, self.redactor.clean(message))
    }

    fn failure(&self, kind: Kind, message: &str, hint: Option<String>, again: RetryAdvice) -> Failure {
        Failure {
            error: ModelError { hint, ..self.error(kind, message) },
            again,
            ended: FailedAttempt::Broken,
            unparsed: None,
        }
    }

    pub(crate) fn no_key(&self) -> ModelError {
        self.error(Kind::Config, "no API key is set for this provider").hint(self.key_hint())
    }

    /// The failure of a request for which there is nothing that authorizes it.
    pub(crate) fn unauthorized(&self, message: &str, hint: &str) -> Failure {
        self.failure(Kind::Config, message, Some(hint.to_owned()), RetryAdvice::No).unsent()
    }

    /// The failure of a request that would wait for so long because of a limit that processes share.
    pub(crate) fn postponed(&self, wait: Duration) -> Failure {
        let message =
            format!("a limit that all workers share is reached: the next call can begin in {wait:.0?}");
        let failure = self.failure(Kind::Unavailable, &message, Some(RATE.into()), RetryAdvice::No).unsent();
        let error = ModelError { status: Some(429), ..failure.error.postponed_for(wait) };
        Failure { error, ..failure }
    }

    fn key_hint(&self) -> String {
        let names: Vec<String> = self.key_variables.iter().map(|name| format!("`{name}`")).collect();
        match (self.has_key, names.is_empty()) {
            (true, true) => "check the key".to_owned(),
            (true, false) => format!("check the key in {}, and what it is allowed to do", names.join(" or ")),
            (false, true) => "no key was sent; give the endpoint one".to_owned(),
            (false, false) => {
                format!("no key was sent; set {} in the environment or in `.env`", names.join(" or "))
            }
        }
    }

    /// What to do about a key that was refused.
    fn refused_key_hint(&self, says: &ErrorBody) -> String {
        match says.mentions(&["expired"]) {
            true => format!("log in again or make a new key, and {}", self.key_hint()),
            false => self.key_hint(),
        }
    }

    /// The failure for a response with an error status.
    pub(crate) fn refused(&self, refusal: &Refusal<'_>) -> Failure {
        let text = String::from_utf8_lossy(refusal.body);
        let kind = refusal.headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok());
        let says = ErrorBody::of(&text).with_header(kind);
        let body = self.redactor.excerpt(&text, refusal.is_cut, BODY_KEPT);
        let mut failure = match refusal.status {
            300..=399 => self.moved(refusal),
            status => self.by_status(status, &says, asked(refusal.headers).or(says.wait)),
        };
        let should = refusal.headers.get("x-should-retry").and_then(|value| value.to_str().ok());
        failure.again = match (should, failure.again) {
            (Some("false"), RetryAdvice::Yes(_)) => RetryAdvice::No,
            (Some("true"), RetryAdvice::No) => RetryAdvice::Yes(asked(refusal.headers)),
            // A rate limit: its other headers say when it begins again.
            (_, RetryAdvice::Yes(None)) if matches!(refusal.status, 413 | 429) => {
                RetryAdvice::Yes(until_reset(refusal.headers))
            }
            (_, again) => again,
        };
        failure.ended = ended_by(refusal.status);
        failure.error.status = Some(refusal.status);
        failure.error.body = Some(body).filter(|body| !body.trim().is_empty());
        failure
    }

    fn by_status(&self, status: u16, says: &ErrorBody, asked: Option<Duration>) -> Failure {
        // A provider that asks for a wait means a rate limit, whatever it calls it.
        let quota = asked.is_none() && says.is_quota();
        let (kind, hint, again) = match status {
            _ if let Some(error) = AccountError::of(status, says, asked.is_some()) => {
                self.account(error, says)
            }
            400 | 403 if says.is_filtered() => {
                (Kind::ContentFiltered, Some(FILTERED.into()), RetryAdvice::No)
            }
            401 => (Kind::Config, Some(self.refused_key_hint(says)), RetryAdvice::KeyRefused),
            403 => (Kind::Config, Some(self.refused_key_hint(says)), RetryAdvice::No),
            // OpenRouter's limit on what the requests in flight may cost.
            402 if asked.is_some() || says.mentions(&["in_flight_budget"]) => {
                (Kind::Unavailable, Some(IN_FLIGHT.to_owned()), RetryAdvice::Yes(asked))
            }
            402 => (Kind::QuotaExceeded, Some(QUOTA.to_owned()), RetryAdvice::Spent),
            // A server without that API names its path in other words.
            400 | 404 if says.mentions(&["use /v1/responses", "in v1/responses"]) => {
                (Kind::Config, Some(RESPONSES.to_owned()), RetryAdvice::No)
            }
            404 if says.mentions(&["deploymentnotfound"]) => {
                (Kind::Config, Some(NO_DEPLOYMENT.to_owned()), RetryAdvice::No)
            }
            404 | 405 => (Kind::Config, Some(self.address_hint()), RetryAdvice::No),
            407 => (Kind::Config, Some(PROXY.to_owned()), RetryAdvice::No),
            400 | 413 | 422 | 500 if let Some((tokens, limit)) = says.too_long() => {
                (Kind::TooLong { tokens, limit }, Some(LONG.to_owned()), RetryAdvice::No)
            }
            400 if says.refuses_seals() => (Kind::SealsRefused, None, RetryAdvice::No),
            // Groq's limit on tokens per minute.
            413 if says.mentions(&["rate_limit"]) => {
                (Kind::Unavailable, Some(RATE.to_owned()), RetryAdvice::Yes(asked))
            }
            413 => (Kind::Config, Some(LARGE.to_owned()), RetryAdvice::No),
            // The last two are Groq's for a service without capacity, and Google's for a request that it canceled.
            408 | 409 | 424 | 498 | 499 => (Kind::Unavailable, None, RetryAdvice::Yes(asked)),
            429 if quota => (Kind::QuotaExceeded, Some(QUOTA.to_owned()), RetryAdvice::Spent),
            429 => (Kind::Unavailable, Some(RATE.to_owned()), RetryAdvice::Yes(asked)),
            500.. => (Kind::Unavailable, Some(THEIRS.to_owned()), RetryAdvice::Yes(asked)),
            _ if says.is_page => {
                let hint = format!("that is a web page: {}", self.address_hint());
                (Kind::Config, Some(hint), RetryAdvice::No)
            }
            _ => (Kind::Config, says.hint(), RetryAdvice::No),
        };
        let what = self.quoted(says).unwrap_or_else(|| reason(status).to_owned());
        let (hint, again) = match self.advice(Some(status), &what) {
            Some(advice) => (Some(advice.hint), advice.again.unwrap_or(again)),
            None => (hint, again),
        };
        let again = match again {
            RetryAdvice::Yes(None) => RetryAdvice::Yes(wait_in_words(&what)),
            again => again,
        };
        let message = format!("the provider answered with status {status}: {what}");
        let unparsed = says.unparsed().map(|written| self.redactor.clean(written));
        Failure { unparsed, ..self.failure(kind, &message, hint, again) }
    }

    /// What the provider says, without secrets.
    fn quoted(&self, says: &ErrorBody) -> Option<String> {
        // Part of a secret is not recognized as one: these are removed first.
        let clean = says.message.as_deref().map(|message| self.redactor.clean(message))?;
        Some(text::shortened(clean.trim().trim_end_matches('.'), MESSAGE_KEPT))
    }

    /// The kind, hint and retry of a refusal of the key, the account or the model.
    fn account(&self, error: AccountError, says: &ErrorBody) -> (Kind, Option<String>, RetryAdvice) {
        let hint = match error {
            AccountError::Key => self.refused_key_hint(says),
            AccountError::Model => self.address_hint(),
            _ => error.hint().unwrap_or_default().to_owned(),
        };
        let hint = match &says.resets_at {
            Some(time) => format!("{hint}; it begins again at {}", self.redactor.clean(time)),
            None => hint,
        };
        match error.again() {
            RetryAdvice::Spent => (Kind::QuotaExceeded, Some(hint), RetryAdvice::Spent),
            again => (Kind::Config, Some(hint), again),
        }
    }

    /// Known advice for an error of Ollama's own API.
    fn advice(&self, status: Option<u16>, message: &str) -> Option<Advice> {
        let model = self.model.split_once(':').map_or(self.model, |(_, model)| model);
        Some(()).filter(|()| self.api == Api::Ollama).and_then(|()| ollama::advice(status, message, model))
    }

    fn moved(&self, refusal: &Refusal<'_>) -> Failure {
        let location = refusal.headers.get("location").and_then(|value| value.to_str().ok());
        // Only the path is shown: the query may contain secrets.
        let place = location.and_then(|value| value.split(['?', '#']).next()).unwrap_or("an unnamed place");
        let place = text::excerpt(place, 200);
        let message = format!("{} redirects to `{place}`, which is not followed", self.base_url);
        let hint = "a key is only sent where the base URL says: correct it if that place is the right one";
        self.failure(Kind::Config, &message, Some(hint.to_owned()), RetryAdvice::No)
    }

    fn address_hint(&self) -> String {
        let versioned = self.base_url.contains("/v1") || self.base_url.contains("/api");
        let lacks =
            if versioned || self.api != Api::ChatCompletions { "" } else { "; it usually ends in `/v1`" };
        // Models of Anthropic are below another publisher of Vertex AI.
        let model = self.model.split_once(':').map_or(self.model, |(_, model)| model);
        let place = self.base_url.strip_suffix("/publishers/google").filter(|_| google::is_claude(model));
        let base_url = place.unwrap_or(self.base_url);
        // A list of models is of no model.
        let name = if self.model.contains(':') { "the model's name and " } else { "" };
        format!("check {name}the base URL `{base_url}`{lacks}")
    }

    /// The failure of a request that could not be sent, or got no response.
    pub(crate) fn unsent(&self, why: SendError, timeouts: Timeouts) -> Failure {
        match why {
            SendError::NoCertificates(error) => {
                let message = format!("{} cannot be trusted: {}", self.base_url, causes(&error));
                self.failure(Kind::Config, &message, Some(NO_CERTIFICATES.to_owned()), RetryAdvice::No)
                    .unsent()
            }
            SendError::Late => {
                let message = format!("no connection to {} within {:?}", self.there(), timeouts.connect);
                self.failure(Kind::Timeout, &message, Some(self.reach_hint()), RetryAdvice::Yes(None))
                    .unsent()
            }
            SendError::Unreachable(error) => self.unreachable(&*error).unsent(),
            SendError::Broken(error) => self.broken(&error),
        }
    }

    fn unreachable(&self, error: &(dyn Error + 'static)) -> Failure {
        let why = causes(error);
        match chain(error).find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(_)) => {
                let message = format!("the certificate of {} is not trusted: {why}", self.base_url);
                self.failure(Kind::Connection, &message, Some(NOT_TRUSTED.to_owned()), RetryAdvice::No)
            }
            Some(rustls::Error::InvalidMessage(_)) => {
                let message = format!("{} does not answer as HTTPS does: {why}", self.base_url);
                self.failure(Kind::Connection, &message, Some(NO_TLS.to_owned()), RetryAdvice::No)
            }
            _ => {
                let message = format!("cannot connect to {}: {why}", self.there());
                self.failure(Kind::Connection, &message, Some(self.reach_hint()), RetryAdvice::Yes(None))
            }
        }
    }

    /// The base URL, and the proxy if there is one.
    fn there(&self) -> String {
        match self.proxy {
            Some(proxy) => format!("{} through the proxy `{proxy}`", self.base_url),
            None => self.base_url.to_owned(),
        }
    }

    fn reach_hint(&self) -> String {
        match self.proxy {
            Some(_) => PROXY,
            None if self.api == Api::Ollama => ollama::NOT_RUNNING,
            None if Provider::is_published(self.base_url) => NO_NETWORK,
            None if self.base_url.ends_with(".amazonaws.com") => NO_REGION,
            None => "check that the server runs and that the base URL is right",
        }
        .to_owned()
    }

    pub(crate) fn broken(&self, error: &Broken) -> Failure {
        let message = format!("the connection broke: {}", causes(error));
        self.failure(Kind::Connection, &message, None, RetryAdvice::Yes(None))
    }

    pub(crate) fn late(&self, limit: Limit, timeouts: Timeouts) -> Failure {
        let (message, name, again) = match limit {
            Limit::FirstToken => {
                let message = format!("no first piece of a reply within {:?}", timeouts.first_token);
                (message, "first_token", RetryAdvice::Yes(None))
            }
            Limit::Idle => {
                (format!("the reply stalled for {:?}", timeouts.idle), "idle", RetryAdvice::Yes(None))
            }
            Limit::Total => {
                (format!("no complete reply within {:?}", timeouts.total), "total", RetryAdvice::No)
            }
        };
        let hint = format!("allow more time with `--timeout`, or with `{name}` of the timeouts");
        self.failure(Kind::Timeout, &message, Some(hint), again)
    }

    /// The failure of a response that is not a reply.
    pub(crate) fn flawed(&self, flaw: DecodeError, status: u16) -> Failure {
        let mut failure = match flaw {
            DecodeError::Error(json) => return self.error_inside(&json, status),
            // The provider may bill what it wrote, whatever the error is.
            DecodeError::BrokenOff(json) => {
                return Failure { ended: FailedAttempt::Broken, ..self.error_inside(&json, status) };
            }
            DecodeError::Unreadable { why, excerpt } => self.unreadable(&why, &excerpt),
            DecodeError::Empty => {
                let hint = Some(self.address_hint());
                self.failure(Kind::InvalidReply, "the reply is empty", hint, RetryAdvice::No)
            }
            DecodeError::TooLong(what) => self.failure(Kind::InvalidReply, what, None, RetryAdvice::No),
            DecodeError::Cut => {
                let message = "the connection broke: the reply ended before it was finished";
                self.failure(Kind::Connection, message, None, RetryAdvice::Yes(None))
            }
        };
        failure.error.status = Some(status);
        failure
    }

    /// The failure of a reply that cannot be read, of which `excerpt` is the beginning.
    fn unreadable(&self, why: &str, excerpt: &str) -> Failure {
        let is_cut = excerpt.chars().nth(EXCERPT - 1).is_some();
        let body = self.redactor.excerpt(excerpt, is_cut, BODY_KEPT);
        let is_page = excerpt.trim_start().starts_with('<');
        let quoted = text::excerpt(&body, UNREADABLE_QUOTED);
        let message = match is_page || quoted.is_empty() {
            true => format!("the reply cannot be read: {why}"),
            false => format!("the reply cannot be read: {why}: `{quoted}`"),
        };
        let address = self.address_hint();
        let hint = match is_page {
            true => format!("that is a web page: {address}"),
            false => format!("{address}; if the server has another API, set `api` of its endpoint"),
        };
        let mut failure = self.failure(Kind::InvalidReply, &message, Some(hint), RetryAdvice::No);
        failure.error.body = Some(body).filter(|body| !body.is_empty());
        failure
    }

    /// An error with a success status, such as in the middle of a stream.
    fn error_inside(&self, json: &str, status: u16) -> Failure {
        let says = ErrorBody::of(json);
        let like = says.status();
        let mut failure = match like {
            Some(like) => self.by_status(like, &says, says.wait),
            None => {
                let what = self.quoted(&says).unwrap_or_else(|| "it does not say why".to_owned());
                let message = format!("the provider broke off: {what}");
                let hint = self.advice(None, &what).map(|advice| advice.hint).or_else(|| says.hint());
                self.failure(Kind::Unavailable, &message, hint, RetryAdvice::No)
            }
        };
        failure.ended = like.map_or(FailedAttempt::Broken, ended_by);
        failure.error.status = Some(like.unwrap_or(status));
        failure.error.body = Some(self.redactor.excerpt(json, false, BODY_KEPT));
        failure
    }

    /// The error of the last attempt, with why there is no further one.
    pub(crate) fn give_up(error: ModelError, why: &RetryStop) -> ModelError {
        let message = match why {
            RetryStop::Attempts(1) => return error,
            RetryStop::Attempts(made) => format!("{} (tried {made} times)", error.message),
            RetryStop::Time(within) => format!("{} (tried for as long as {within:?} allow)", error.message),
            RetryStop::Wait { asked, allowed } => {
                format!(
                    "{}; it asks to wait {asked:.0?}, but at most {allowed:.0?} are allowed",
                    error.message
                )
            }
        };
        let hint = match why {
            RetryStop::Wait { .. } => {
                Some("try again later, or allow longer waits with `max_wait` of its endpoint".to_owned())
            }
            _ => error.hint.clone(),
        };
        let error = match why {
            RetryStop::Wait { asked, .. } => error.wait_for(*asked),
            _ => error,
        };
        ModelError { message, hint, ..error }
    }
}

const NO_CERTIFICATES: &str = "install the system's certificates, often a package named `ca-certificates`, or name a \
    file of them in `SSL_CERT_FILE`";
const NOT_TRUSTED: &str = "check the base URL; if the server's certificate is self-signed, add it to the \
    system's certificates, or name a file with it in `SSL_CERT_FILE`";
const NO_NETWORK: &str = "check this machine's connection to the internet; a proxy is set with `HTTPS_PROXY`";
const NO_REGION: &str =
    "check the region, such as `us-east-1` in `AWS_REGION`, and this machine's connection to the internet";
const PROXY: &str = "check the proxy, with the name and the password in its address, or name the host in `NO_PROXY` if \
    it is reached directly";
const NO_TLS: &str = "check the base URL: it begins with `http://` if the server does not encrypt";
const IN_FLIGHT: &str = "requests in flight may cost no more than the account has left: limit them with `in_flight`, or add credit";
const RATE: &str = "limit the endpoint's requests with `per_minute` or `in_flight`";
const NO_DEPLOYMENT: &str = "after `azure:` stands the name of a deployment of the resource, not of a model: look it up in the \
    portal; a new deployment takes a few minutes";
const RESPONSES: &str = "the provider has that only in its Responses API: name the model with `openai-responses:`, or set `api: responses` of its \
     endpoint";
const FILTERED: &str = "the provider's content filter refused the prompt: change it, or the filter of the deployment; with `refusal` in \
     `fallback`, the next model is asked";
const THEIRS: &str = "the provider has an internal error: try again later";

/// Why a call failed, in a few words: the status with which `whom` refused it, or what happened. A reply that broke off has the status of
/// one that did not.
pub(crate) fn cause(error: &ModelError, whom: &str) -> String {
    match error.status.filter(|status| *status >= 400) {
        Some(status) => format!("{status} from {whom}"),
        None => error.message.clone(),
    }
}

fn reason(status: u16) -> &'static str {
    let status = StatusCode::from_u16(status).ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or("it does not say why")
}

/// An error and its causes without repetitions, and without URLs, which may contain secrets.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut all: Vec<String> = Vec::new();
    for cause in chain(error) {
        let text = cause.to_string();
        if all.last().is_none_or(|last| !last.contains(&text)) {
            all.push(text);
        }
    }
    all.join(": ")
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        // A system error displays the cause of its inner error, but not the inner error itself.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
        Some(error)
    })
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
