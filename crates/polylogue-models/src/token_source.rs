//! Requests access tokens, and keeps them until they expire.

use std::time::SystemTime;

use bytes::Bytes;
use polylogue_core::ModelErrorKind;
use polylogue_http::header::CONTENT_TYPE;
use polylogue_http::{HeaderMap, HeaderValue, Key, Method, Proxies, Transport, read_up_to};

use crate::account_error::AccountError;
use crate::address::shown;
use crate::azure::Application;
use crate::failure::{ErrorContext, Failure, Refusal};
use crate::google::GoogleCredentials;
use crate::oauth::{AccessToken, TokenCache, TokenError};
use crate::retry::RetryAdvice;
use crate::timeouts::Timeouts;
use url::Url;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// How much of a reply of the token server is read, in bytes.
const MAX_BODY: usize = 64 << 10;

/// Credentials that are exchanged for access tokens.
#[derive(Debug, Clone)]
pub(crate) enum TokenCredentials {
    Google(GoogleCredentials),
    Entra(Application),
}

impl TokenCredentials {
    /// Where tokens are issued.
    fn address(&self) -> &Url {
        match self {
            Self::Google(credentials) => credentials.address(),
            Self::Entra(application) => application.address(),
        }
    }

    /// The body of the request for a token.
    fn request(&self, now: SystemTime) -> Result<String, TokenError> {
        match self {
            Self::Google(credentials) => credentials.request(now),
            Self::Entra(application) => application.request(),
        }
    }

    fn tokens(&self) -> &TokenCache {
        match self {
            Self::Google(credentials) => credentials.tokens(),
            Self::Entra(application) => application.tokens(),
        }
    }

    /// What to do when they give no token.
    const fn hint(&self) -> &'static str {
        match self {
            Self::Google(_) => {
                "check the credentials; `gcloud auth application-default login` writes new ones"
            }
            Self::Entra(_) => {
                "check `AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, and `AZURE_FEDERATED_TOKEN_FILE` or `AZURE_CLIENT_SECRET`"
            }
        }
    }
}

/// The access tokens of an endpoint.
#[derive(Debug)]
pub(crate) struct TokenSource {
    credentials: TokenCredentials,
    timeouts: Timeouts,
    proxies: Proxies,
}

impl TokenSource {
    pub(crate) const fn new(credentials: TokenCredentials, timeouts: Timeouts, proxies: Proxies) -> Self {
        Self { credentials, timeouts, proxies }
    }

    /// A token that is valid: the last one, or else another.
    ///
    /// # Errors
    /// When the token server cannot be reached, or refuses.
    pub(crate) async fn token(&self, context: &ErrorContext<'_>) -> Result<Key, Failure> {
        let address = shown(self.credentials.address());
        let context = ErrorContext { base_url: &address, ..*context };
        let request = async || self.request(&context).await;
        let hint = self.credentials.hint();
        self.credentials.tokens().token(request).await.map_err(|failure| of_token(failure, hint))
    }

    /// Forgets `token`, which a server refused, unless it replaced one that was refused, too. Returns whether the next
    /// request has another.
    pub(crate) fn forget(&self, token: &Key) -> bool {
        self.credentials.tokens().forget(token)
    }

    async fn request(&self, context: &ErrorContext<'_>) -> Result<AccessToken, Failure> {
        let (now, hint) = (SystemTime::now(), self.credentials.hint());
        let unusable = |why: TokenError| context.unauthorized(&why.to_string(), hint);
        let body = Bytes::from(self.credentials.request(now).map_err(unusable)?);
        let headers = [(CONTENT_TYPE, FORM)].into_iter().collect();
        let transport =
            Transport::new(self.credentials.address(), headers, self.timeouts.connect, &self.proxies)
                .map_err(|why| context.unauthorized(&format!("the address for tokens {why}"), hint))?;
        let sent = transport.ask(Method::POST, None, HeaderMap::new(), body).await;
        let mut response = sent.map_err(|why| context.unsent(why, self.timeouts))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let (body, is_cut) =
            read_up_to(&mut response, MAX_BODY).await.map_err(|_| unusable(TokenError::Reply))?;
        match status {
            200..300 => AccessToken::parse(&body, now).map_err(unusable),
            _ => Err(context.refused(&Refusal { status, headers: &headers, body: &body, is_cut })),
        }
    }
}

/// The failure as one of a request for a token. A refusal there is one of the credentials.
fn of_token(failure: Failure, hint: &str) -> Failure {
    let mut failure = failure;
    if matches!(failure.error.status, Some(400 | 401 | 403)) {
        failure.error.kind = ModelErrorKind::Config;
        failure.again = RetryAdvice::No;
        // Credentials are not wrong because of the time.
        if failure.error.hint.as_deref() != AccountError::Clock.hint() {
            failure.error.hint = Some(hint.to_owned());
        }
    }
    failure.error.message = format!("no access token: {}", failure.error.message);
    // It says nothing about the model's server.
    failure.error.status = None;
    failure
}
