//! Requests access tokens, and keeps them until they expire.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use polylogue_core::{FailedAttempt, ModelErrorKind};
use polylogue_http::header::{AUTHORIZATION, CONTENT_TYPE};
use polylogue_http::{
    HeaderMap, HeaderName, HeaderValue, Key, Method, Proxies, ReadError, Transport, read_up_to,
};

use crate::account_error::AccountError;
use crate::address::shown;
use crate::azure::Application;
use crate::failure::{ErrorContext, Failure, Refusal};
use crate::google::{GoogleCredentials, SCOPE};
use crate::oauth::{AccessToken, TokenCache, TokenError};
use crate::retry::RetryAdvice;
use crate::timeouts::Timeouts;
use url::{Url, form_urlencoded};

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Shows a metadata server that the request was not made by a page or a redirect.
const METADATA_FLAVOR: (HeaderName, HeaderValue) =
    (HeaderName::from_static("metadata-flavor"), HeaderValue::from_static("Google"));

/// How long to connect to a metadata server, which is next to the machine.
const METADATA_CONNECT: Duration = Duration::from_secs(1);

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

    /// The body of the request for a token; `None` for a request to a metadata server.
    fn request(&self, now: SystemTime) -> Result<Option<String>, TokenError> {
        match self {
            Self::Google(credentials) => credentials.request(now),
            Self::Entra(application) => application.request().map(Some),
        }
    }

    /// Where the token is exchanged for one of a service account.
    fn impersonation(&self) -> Option<&Url> {
        match self {
            Self::Google(credentials) => credentials.impersonation(),
            Self::Entra(_) => None,
        }
    }

    fn tokens(&self) -> &TokenCache {
        match self {
            Self::Google(credentials) => credentials.tokens(),
            Self::Entra(application) => application.tokens(),
        }
    }

    /// What to do when they give no token.
    fn hint(&self) -> &'static str {
        match self {
            Self::Google(credentials) if credentials.are_of_machine() => {
                "check the service account of this machine, and `GCE_METADATA_HOST`; or name a file of credentials with `GOOGLE_APPLICATION_CREDENTIALS`"
            }
            Self::Google(credentials) if credentials.are_of_workload() => {
                "check the file that `GOOGLE_APPLICATION_CREDENTIALS` names: its audience, its file with a token, and its service account"
            }
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
        let now = SystemTime::now();
        let unusable = |why: TokenError| context.unauthorized(&why.to_string(), self.credentials.hint());
        let address = self.credentials.address();
        let reply = match self.credentials.request(now).map_err(unusable)? {
            Some(form) => {
                let secrets: Vec<String> = secrets_of(&form);
                let redactor = context.redactor.with(secrets.iter().map(String::as_str));
                let context = ErrorContext { redactor: &redactor, ..*context };
                let headers = [(CONTENT_TYPE, FORM)].into_iter().collect();
                let transport = Transport::new(address, headers, self.timeouts.connect, &self.proxies);
                self.ask(&context, transport, Method::POST, form.into()).await?
            }
            None => {
                // It is on this machine, and no proxy leads to it.
                let headers = [METADATA_FLAVOR].into_iter().collect();
                let connect = self.timeouts.connect.min(METADATA_CONNECT);
                let transport = Transport::new(address, headers, connect, &Proxies::default());
                self.ask(context, transport, Method::GET, Bytes::new()).await?
            }
        };
        let token = AccessToken::parse(&reply, now).map_err(unusable)?;
        match self.credentials.impersonation() {
            Some(address) => self.of_service_account(context, address, &token.token, now).await,
            None => Ok(token),
        }
    }

    /// The token of the service account at `address`, for the one of a workload.
    async fn of_service_account(
        &self,
        context: &ErrorContext<'_>,
        address: &Url,
        token: &Key,
        now: SystemTime,
    ) -> Result<AccessToken, Failure> {
        let (shown, redactor) = (shown(address), context.redactor.with([token.reveal()]));
        let context = ErrorContext { base_url: &shown, redactor: &redactor, ..*context };
        let unusable = |why: TokenError| context.unauthorized(&why.to_string(), self.credentials.hint());
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.reveal()))
            .map_err(|_| unusable(TokenError::Reply))?;
        bearer.set_sensitive(true);
        let headers = [(CONTENT_TYPE, JSON), (AUTHORIZATION, bearer)].into_iter().collect();
        let transport = Transport::new(address, headers, self.timeouts.connect, &self.proxies);
        let body = serde_json::json!({"scope": [SCOPE]}).to_string();
        let reply = self.ask(&context, transport, Method::POST, body.into()).await?;
        AccessToken::of_service_account(&reply, now).map_err(unusable)
    }

    /// The body of the reply to a request for a token.
    async fn ask(
        &self,
        context: &ErrorContext<'_>,
        transport: Result<Transport, String>,
        method: Method,
        body: Bytes,
    ) -> Result<Bytes, Failure> {
        let hint = self.credentials.hint();
        let transport =
            transport.map_err(|why| context.unauthorized(&format!("the address for tokens {why}"), hint))?;
        let sent = transport.ask(method, None, HeaderMap::new(), body).await;
        let mut response = sent.map_err(|why| context.unsent(why, self.timeouts))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let (body, is_cut) = read_up_to(&mut response, MAX_BODY).await.map_err(|error| match error {
            ReadError::Broken(error) => context.broken(&error),
            ReadError::TooLong => context.unauthorized(&TokenError::Reply.to_string(), hint),
        })?;
        match status {
            200..300 => Ok(body),
            _ => Err(context.refused(&Refusal { status, headers: &headers, body: &body, is_cut })),
        }
    }
}

/// Fields of a form whose values prove who asks.
const SECRET_FIELDS: [&str; 5] =
    ["assertion", "client_assertion", "client_secret", "refresh_token", "subject_token"];

/// What of a form must not be shown: a server may quote a request that it refuses.
fn secrets_of(form: &str) -> Vec<String> {
    let fields = form_urlencoded::parse(form.as_bytes());
    let secret = fields.filter(|(name, _)| SECRET_FIELDS.contains(&name.as_ref()));
    secret.map(|(_, value)| value.into_owned()).collect()
}

/// The failure as one of a request for a token. A refusal there is one of the credentials.
fn of_token(failure: Failure, hint: &str) -> Failure {
    let mut failure = failure;
    if matches!(failure.error.status, Some(400 | 401 | 403 | 404)) {
        failure.error.kind = ModelErrorKind::Config;
        failure.again = RetryAdvice::No;
        // Credentials are not wrong because of the time, or of an API that is not enabled.
        let others = [AccountError::Clock.hint(), AccountError::Disabled.hint()];
        if !others.contains(&failure.error.hint.as_deref()) {
            failure.error.hint = Some(hint.to_owned());
        }
    }
    failure.error.message = format!("no access token: {}", failure.error.message);
    // It says nothing about the model's server, which was sent nothing that could be billed.
    failure.error.status = None;
    failure.ended = FailedAttempt::Unsent;
    failure
}

#[cfg(test)]
mod tests {
    use polylogue_core::ModelError;

    use super::*;

    #[test]
    fn a_failure_of_the_token_server_counts_as_no_request_to_the_model() {
        for status in [400, 429, 500, 503] {
            let error = ModelError {
                status: Some(status),
                ..ModelError::new(ModelErrorKind::Unavailable, "m", "no")
            };
            let (again, ended) = (RetryAdvice::Yes(None), FailedAttempt::Broken);
            let failure = of_token(Failure { error, again, ended, unparsed: None }, "check them");
            assert_eq!((failure.ended, failure.error.status), (FailedAttempt::Unsent, None), "{status}");
        }
    }
}
