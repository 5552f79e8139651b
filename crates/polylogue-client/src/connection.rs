//! A connection to one server: where it is, with which token, and how long requests are repeated.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polylogue_http::header::AUTHORIZATION;
use polylogue_http::{HeaderMap, HeaderValue, Key, Proxies, Redactor, Transport};
use polylogue_wire::problem::Problem;
use url::Url;

use crate::error::{ClientError, Kind};

/// The timeout of connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// How long requests are repeated by default while the server cannot be reached.
const PATIENCE: Duration = Duration::from_secs(30);

/// What all requests to a server share.
#[derive(Debug)]
pub(crate) struct Connection {
    transport: Transport,
    base: Url,
    /// The address, as errors show it.
    url: String,
    pub(crate) patience: Duration,
    pub(crate) retries: Retries,
    secrets: Redactor,
}

/// The handler of retries, and whether it was called since the last request that succeeded.
#[derive(Default)]
pub(crate) struct Retries {
    handler: Option<Box<RetryHandler>>,
    was_called: AtomicBool,
}

type RetryHandler = dyn Fn(&ClientError, Duration) + Send + Sync;

impl Retries {
    pub(crate) fn of(handler: impl Fn(&ClientError, Duration) + Send + Sync + 'static) -> Self {
        Self { handler: Some(Box::new(handler)), was_called: AtomicBool::new(false) }
    }

    /// Calls the handler for a request that is sent again, at most until `patience` has passed, unless it was called for an earlier one.
    pub(crate) fn report(&self, error: &ClientError, patience: Duration) {
        if let Some(handler) = &self.handler
            && !self.was_called.swap(true, Ordering::Relaxed)
        {
            handler(error, patience);
        }
    }

    /// Notes that a request has succeeded: the next failure is reported again.
    pub(crate) fn succeeded(&self) {
        self.was_called.store(false, Ordering::Relaxed);
    }
}

impl fmt::Debug for Retries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retries").field("was_called", &self.was_called).finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(url: &str, token: &Key, proxies: &Proxies) -> Result<Self, ClientError> {
        let base = address(url)?;
        let wrong = |why: &str| ClientError::new(Kind::Address { url: shown(url), why: why.into() });
        let bearer = HeaderValue::from_str(&format!("Bearer {}", token.reveal()));
        let mut bearer = bearer.map_err(|_| wrong("cannot be sent this token: it has odd characters"))?;
        bearer.set_sensitive(true);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        let transport = Transport::new(&base, headers, CONNECT, proxies).map_err(|why| wrong(&why))?;
        let secrets = Redactor::new([token.reveal()]);
        let url = base.as_str().trim_end_matches('/').to_owned();
        Ok(Self { transport, base, url, patience: PATIENCE, retries: Retries::default(), secrets })
    }

    /// The address of the server.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) const fn base(&self) -> &Url {
        &self.base
    }

    pub(crate) const fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The error that what responds is not a server of Polylogue.
    pub(crate) fn not_polylogue(&self, why: String) -> ClientError {
        ClientError::new(Kind::NotPolylogue { url: self.url.clone(), why: self.secrets.clean(&why) })
    }

    /// The error for a response that refuses.
    pub(crate) fn refused(&self, status: u16, text: &[u8]) -> ClientError {
        let Ok(mut problem) = serde_json::from_slice::<Problem>(text) else {
            return match status {
                // Of a server in front of it, while it restarts.
                502..=504 => {
                    let (url, why) = (self.url.clone(), format!("status {status}"));
                    ClientError::new(Kind::Unreachable { url, why, was_sent: true })
                }
                _ => self.not_polylogue(format!("status {status}")),
            };
        };
        problem.detail = self.secrets.clean(&problem.detail);
        problem.hint = problem.hint.map(|hint| self.secrets.clean(&hint));
        ClientError::new(Kind::Refused(problem))
    }
}

/// The address of a server that `url` is.
pub(crate) fn address(url: &str) -> Result<Url, ClientError> {
    let wrong = |why: &str| ClientError::new(Kind::Address { url: shown(url), why: why.into() });
    let base: Url = url.parse().map_err(|_| wrong("is not the address of a server"))?;
    if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
        return Err(wrong("is not an address of HTTP"));
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(wrong("has a user name or a password, which a server of Polylogue does not take"));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(wrong("has more than the address of a server"));
    }
    Ok(base)
}

/// An address without what may be a password.
fn shown(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}…{}", url.get(..scheme + 3).unwrap_or_default(), url.get(at..).unwrap_or_default())
        }
        _ => url.to_owned(),
    }
}
