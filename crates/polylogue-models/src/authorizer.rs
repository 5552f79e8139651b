//! Authorizes requests whose headers depend on the time or on the request itself.

use std::path::PathBuf;

use polylogue_http::header::{AUTHORIZATION, DATE};
use polylogue_http::{HeaderMap, HeaderValue, Key, Method, Redactor};
use url::Url;

use crate::auth::Auth;
use crate::aws::{Signer, Unsigned};
use crate::azure::{EntraSource, read_token};
use crate::config::Config;
use crate::failure::{ErrorContext, Failure};
use crate::token_source::{TokenCredentials, TokenSource};

/// Authorizes the requests of an endpoint. Tokens and credentials are kept until they expire.
#[derive(Debug)]
pub(crate) enum Authorizer {
    /// The headers of every request have the key.
    Key,
    /// Signatures.
    Aws(Box<Signer>),
    /// Access tokens.
    Token(Box<TokenSource>),
    /// The access token in a file, which is read for each request.
    TokenFile(PathBuf),
}

/// A request to be authorized.
pub(crate) struct Unauthorized<'a> {
    pub(crate) method: &'a Method,
    pub(crate) url: &'a Url,
    pub(crate) body: &'a [u8],
}

/// What authorized a request.
#[derive(Debug, Default)]
pub(crate) struct Authorized {
    /// The secrets among its headers.
    pub(crate) secrets: Vec<Key>,
    /// How many seconds our clock was corrected by.
    skew: i64,
}

impl Authorized {
    /// What `known` redacts, and its secrets.
    pub(crate) fn redactor(&self, known: &Redactor) -> Redactor {
        known.with(self.secrets.iter().map(Key::reveal))
    }

    /// What `failure` makes of `context`, without its secrets: providers quote the headers of requests, whatever the status.
    pub(crate) fn hidden<T>(
        &self,
        context: &ErrorContext<'_>,
        failure: impl FnOnce(&ErrorContext<'_>) -> T,
    ) -> T {
        let redactor = self.redactor(context.redactor);
        failure(&ErrorContext { redactor: &redactor, ..*context })
    }
}

/// The content type of every request.
pub(crate) const JSON: &str = "application/json";

impl Authorizer {
    pub(crate) fn new(config: &Config) -> Self {
        let tokens = |credentials| {
            let (timeouts, proxies) = (config.timeouts, config.proxies.clone());
            Self::Token(Box::new(TokenSource::new(credentials, timeouts, proxies)))
        };
        match &config.auth {
            Auth::Bearer | Auth::Header(_) | Auth::GoogleKey | Auth::Google(None) => Self::Key,
            Auth::Google(_) | Auth::Azure(_) if config.keys().next().is_some() => Self::Key,
            Auth::Google(Some(credentials)) => tokens(TokenCredentials::Google(credentials.clone())),
            Auth::Azure(credentials) => match &credentials.0 {
                EntraSource::Application(application) => tokens(TokenCredentials::Entra(application.clone())),
                EntraSource::File(file) => Self::TokenFile(file.clone()),
            },
            Auth::Aws(aws) => Self::Aws(Box::new(Signer::new(aws.clone()))),
        }
    }

    /// Adds what authorizes `request` to its `headers`.
    ///
    /// # Errors
    /// When there are no credentials.
    pub(crate) async fn authorize(
        &self,
        request: Unauthorized<'_>,
        headers: &mut HeaderMap,
        context: &ErrorContext<'_>,
    ) -> Result<Authorized, Failure> {
        let unsendable = || context.unauthorized("the credentials cannot be sent", "check their characters");
        let signer = match self {
            Self::Key => return Ok(Authorized::default()),
            // In boxes, as all that most endpoints never do: each call has space for what it may do.
            Self::Token(tokens) => {
                return bearer(Box::pin(tokens.token(context)).await?, headers).ok_or_else(unsendable);
            }
            Self::TokenFile(file) => {
                let hint = "the file must have an access token, which is read for each request";
                let token = read_token(file).map_err(|why| context.unauthorized(&why.to_string(), hint))?;
                return bearer(token, headers).ok_or_else(unsendable);
            }
            Self::Aws(signer) => signer,
        };
        let Unauthorized { method, url, body } = request;
        let unsigned = Unsigned { method: method.as_str(), url, content_type: JSON, body };
        let signed = Box::pin(signer.sign(&unsigned)).await;
        let signed = signed.map_err(|error| context.unauthorized(&error.to_string(), error.hint()))?;
        for (name, value) in &signed.headers {
            headers.insert(*name, secret(value).ok_or_else(unsendable)?);
        }
        Ok(Authorized { secrets: signed.secrets, skew: signed.skew })
    }

    /// Whether a request that was refused with `status` and `headers` is accepted if it is authorized once more, because the
    /// refusal shows how.
    pub(crate) fn corrects(&self, refused: &Authorized, status: u16, headers: &HeaderMap) -> bool {
        let date = headers.get(DATE).and_then(|value| value.to_str().ok());
        match self {
            Self::Key => false,
            Self::Token(tokens) => status == 401 && refused.secrets.iter().any(|token| tokens.forget(token)),
            // It was renewed meanwhile.
            Self::TokenFile(file) => {
                status == 401 && read_token(file).is_ok_and(|token| !refused.secrets.contains(&token))
            }
            Self::Aws(_) if !matches!(status, 400 | 401 | 403) => false,
            Self::Aws(signer) if has_expired(headers) => signer.renews(&refused.secrets),
            Self::Aws(signer) => signer.corrects(refused.skew, date),
        }
    }
}

/// Adds `token` to the `headers` of a request; `None` if it has characters that cannot be sent.
fn bearer(token: Key, headers: &mut HeaderMap) -> Option<Authorized> {
    headers.insert(AUTHORIZATION, secret(&format!("Bearer {}", token.reveal()))?);
    Some(Authorized { secrets: vec![token], skew: 0 })
}

/// Whether an Amazon service says that it does not accept the credentials, or no longer.
fn has_expired(headers: &HeaderMap) -> bool {
    let kind = headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("ExpiredToken") || kind.starts_with("UnrecognizedClient"))
}

/// The value of a header that is not shown, if it can be sent.
fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}
