//! Requests access tokens of Google's cloud, and keeps them until they expire.

use std::time::SystemTime;

use bytes::Bytes;
use polylogue_core::ModelErrorKind;
use polylogue_http::header::CONTENT_TYPE;
use polylogue_http::{HeaderMap, HeaderValue, Key, Method, Proxies, Transport, read_up_to};

use crate::address::shown;
use crate::failure::{ErrorContext, Failure, Refusal};
use crate::google::{AccessToken, GoogleCredentials, TokenError};
use crate::retry::RetryAdvice;
use crate::timeouts::Timeouts;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// How much of a reply of the token server is read, in bytes.
const MAX_BODY: usize = 64 << 10;

/// What to do when credentials give no token.
const HINT: &str = "check the credentials; `gcloud auth application-default login` writes new ones";

/// The access tokens of an endpoint.
#[derive(Debug)]
pub(crate) struct TokenSource {
    credentials: GoogleCredentials,
    timeouts: Timeouts,
    proxies: Proxies,
}

impl TokenSource {
    pub(crate) const fn new(credentials: GoogleCredentials, timeouts: Timeouts, proxies: Proxies) -> Self {
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
        self.credentials.token(request).await.map_err(of_token)
    }

    /// Forgets `token`, which a server refused, unless it replaced one that was refused, too. Returns whether the next
    /// request has another.
    pub(crate) fn forget(&self, token: &Key) -> bool {
        self.credentials.forget(token)
    }

    async fn request(&self, context: &ErrorContext<'_>) -> Result<AccessToken, Failure> {
        let now = SystemTime::now();
        let unusable = |why: TokenError| context.unauthorized(&why.to_string(), HINT);
        let body = Bytes::from(self.credentials.request(now).map_err(unusable)?);
        let headers = [(CONTENT_TYPE, FORM)].into_iter().collect();
        let transport =
            Transport::new(self.credentials.address(), headers, self.timeouts.connect, &self.proxies)
                .map_err(|why| context.unauthorized(&format!("the address for tokens {why}"), HINT))?;
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
fn of_token(failure: Failure) -> Failure {
    let mut failure = failure;
    if matches!(failure.error.status, Some(400 | 401 | 403)) {
        failure.error.kind = ModelErrorKind::Config;
        failure.again = RetryAdvice::No;
        failure.error.hint = Some(HINT.to_owned());
    }
    failure.error.message = format!("no access token: {}", failure.error.message);
    // It says nothing about the model's server.
    failure.error.status = None;
    failure
}
