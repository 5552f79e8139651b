//! Requests to one address: its proxy, the headers of every request, and idle connections.

use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Method, Request, Uri};
use hyper_util::client::proxy::matcher::Intercept;
use percent_encoding::percent_decode_str;
use url::{Position, Url};

use crate::address::not_public;
use crate::connect::{BoxError, Connector, HTTP2_OR_1};
use crate::multiplexed::Multiplexed;
use crate::pool::Pool;
use crate::sender::{Sender, path};
use crate::{Proxies, Response, USER_AGENT_TEXT};

/// The reason why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No certificate can be checked: the system's certificates cannot be read.
    #[error("the certificates of this machine cannot be read")]
    NoCertificates(#[source] rustls::Error),
    /// Connecting timed out.
    #[error("connecting timed out")]
    Late,
    /// Connecting failed.
    #[error("connecting failed")]
    Unreachable(#[source] BoxError),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] hyper::Error),
}

/// Sends requests to one address.
#[derive(Debug)]
pub struct Transport {
    /// The target in the first line of a request.
    target: Uri,
    headers: HeaderMap,
    /// The target of connections: the address, or a proxy that reads every request.
    place: Uri,
    address: Uri,
    proxy: Option<Intercept>,
    connect: Duration,
    /// Created with the first connection, which may have to read the system's certificates.
    connector: OnceLock<Connector>,
    /// Connections of HTTP/1 that carry no request.
    pool: Pool,
    /// Connections of HTTP/2.
    multiplexed: Multiplexed,
}

impl Transport {
    /// Creates a transport to `url`, which adds `headers` to every request.
    ///
    /// # Errors
    /// The reason, if requests cannot be sent there.
    pub fn new(url: &Url, headers: HeaderMap, connect: Duration, proxies: &Proxies) -> Result<Self, String> {
        let address = uri(url)?;
        let proxy = if is_loopback(url) { None } else { proxies.before(&address) };
        let mut headers = with_defaults(headers, url)?;
        let (mut target, mut place) = (path(&address), address.clone());
        if let Some(proxy) = &proxy {
            check_proxy(proxy)?;
            // What is encrypted goes through a tunnel, in which the proxy reads nothing.
            if url.scheme() == "http" {
                (target, place) = (address.clone(), proxy.uri().clone());
                let password = proxy.basic_auth().cloned();
                password.into_iter().for_each(|password| drop(headers.insert(PROXY_AUTHORIZATION, password)));
            }
        }
        let (connector, pool) = (OnceLock::new(), Pool::default());
        // HTTP/2 is agreed upon when encryption begins, so that what is not encrypted is HTTP/1.
        let multiplexed = Multiplexed::new(url.scheme() == "http");
        Ok(Self { target, headers, place, address, proxy, connect, connector, pool, multiplexed })
    }

    /// Returns the proxy, if there is one.
    pub fn proxy(&self) -> Option<&Uri> {
        self.proxy.as_ref().map(Intercept::uri)
    }

    /// Sends a request and waits for the head of the response. It goes to `url`, which has the host and the scheme of the
    /// transport, or else to the transport's own; `headers` replace those of every request with the same names. Redirects
    /// are not followed: a key must not reach another host, and a moved endpoint is a setting to correct.
    ///
    /// Only connecting has a timeout: the caller limits how long it waits for the head, and for each piece of the body. Dropping the
    /// future cancels the request.
    ///
    /// # Errors
    /// When no connection can be opened, or the connection broke before the head arrived. [`SendError::Broken`] does not tell whether the
    /// server has acted on the request.
    pub fn ask(
        &self,
        method: Method,
        url: Option<&Url>,
        headers: HeaderMap,
        body: Bytes,
    ) -> impl Future<Output = Result<Response<'_>, SendError>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        request.headers_mut().clone_from(&self.headers);
        request.headers_mut().extend(headers);
        let target = url.map_or_else(|| Ok(self.target.clone()), |url| self.target_of(url));
        async move {
            *request.uri_mut() = target.map_err(|why| SendError::Unreachable(why.into()))?;
            self.send(request).await
        }
    }

    /// The target of a request to `url` at the same host: the same but for its path and query.
    fn target_of(&self, url: &Url) -> Result<Uri, hyper::http::Error> {
        let mut parts = self.target.clone().into_parts();
        parts.path_and_query = Some(url[Position::BeforePath..Position::AfterQuery].parse()?);
        Ok(Uri::from_parts(parts)?)
    }

    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response<'_>, SendError> {
        if let Some(mut sender) = self.open_already().await {
            match sender.send(request).await {
                Ok(response) => return Ok(Response::new(response, sender, &self.pool)),
                // A connection that was closed returns the request that it did not begin to send.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(SendError::Broken(error.into_error())),
                },
            }
        }
        // In a box, because it is seldom and large: what waits for replies is kept small.
        let mut sender = Box::pin(self.open_or_share()).await?;
        let response = sender.send(request).await.map_err(|error| SendError::Broken(error.into_error()))?;
        Ok(Response::new(response, sender, &self.pool))
    }

    /// A connection that is open and can take a request.
    async fn open_already(&self) -> Option<Sender> {
        match self.multiplexed.take() {
            Some(place) => Some(Sender::Shared(place)),
            None => self.pool.take().await.map(Sender::Alone),
        }
    }

    /// A new connection, or one that another request has opened meanwhile.
    async fn open_or_share(&self) -> Result<Sender, SendError> {
        let turn = self.multiplexed.turn().await;
        if let Some(place) = self.multiplexed.take() {
            return Ok(Sender::Shared(place));
        }
        let connecting = tokio::time::timeout(self.connect, self.connector()?.connect(self.place.clone()));
        let connected = connecting.await.map_err(|_| SendError::Late)?.map_err(SendError::Unreachable)?;
        if connected.is_http2 {
            let place = self.multiplexed.add(connected.stream, turn).await.map_err(SendError::Broken)?;
            return Ok(Sender::Shared(place));
        }
        self.multiplexed.note_http1();
        drop(turn);
        let (sender, connection) = http1::handshake(connected.stream).await.map_err(SendError::Broken)?;
        // It ends when the server closes it or all senders are dropped; its errors reach the waiting caller.
        tokio::spawn(connection);
        Ok(Sender::Alone(sender))
    }

    fn connector(&self) -> Result<&Connector, SendError> {
        if let Some(connector) = self.connector.get() {
            return Ok(connector);
        }
        let made = Connector::new(&self.address, self.proxy.as_ref(), &HTTP2_OR_1, self.connect);
        let made = made.map_err(SendError::NoCertificates)?;
        Ok(self.connector.get_or_init(|| made))
    }
}

/// `url` without credentials and fragment.
pub(crate) fn uri(url: &Url) -> Result<Uri, String> {
    let (before, after) =
        (&url[..Position::BeforeUsername], &url[Position::BeforeHost..Position::AfterQuery]);
    format!("{before}{after}").parse().map_err(|why| format!("cannot be sent a request: {why}"))
}

pub(crate) fn check_proxy(proxy: &Intercept) -> Result<(), String> {
    match proxy.uri().scheme_str() {
        Some("http" | "https") => Ok(()),
        _ => Err(format!("is reached through the proxy `{}`, whose kind is not known", proxy.uri())),
    }
}

/// The headers of every request besides the configured ones.
fn with_defaults(mut headers: HeaderMap, url: &Url) -> Result<HeaderMap, String> {
    let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
    let host = host.map_err(|_| "has a host that cannot be sent".to_owned())?;
    headers.entry(HOST).or_insert(host);
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT_TEXT));
    if let Some(password) = basic(url) {
        headers.entry(AUTHORIZATION).or_insert(password);
    }
    Ok(headers)
}

/// The credentials in `url` as an `Authorization` header.
fn basic(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut plain: Vec<u8> = percent_decode_str(url.username()).collect();
    plain.push(b':');
    plain.extend(percent_decode_str(url.password().unwrap_or_default()));
    let encoded = base64::engine::general_purpose::STANDARD.encode(plain);
    let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns whether `url` is on this machine, which is reached without a proxy.
pub fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_end_matches('.');
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_named = host == "localhost" || host.ends_with(".localhost");
    address.map_or(is_named, |address| address.to_canonical().is_loopback())
}

/// Returns whether `url` is on this machine or in a private network, as far as its host tells: an address that is not public, a
/// name without a dot, or one below a domain that is for private use (RFC 6761, RFC 6762, RFC 8375, and ICANN's `internal`).
///
/// ```
/// use polylogue_http::is_private;
/// use url::Url;
/// let private = |url| is_private(&Url::parse(url).unwrap());
/// assert!(private("http://192.168.1.7:8000") && private("http://ollama:11434") && private("http://gpu.internal"));
/// assert!(!private("https://example.com") && !private("http://8.8.8.8"));
/// ```
pub fn is_private(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return not_public(address).is_some();
    }
    let host = host.trim_end_matches('.');
    let domains = ["localhost", "local", "internal", "lan", "home.arpa"];
    !host.contains('.')
        || domains.iter().any(|domain| host.strip_suffix(domain).is_some_and(|name| name.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_known() {
        for (url, expected) in [
            ("http://localhost:8000/v1", true),
            ("http://127.0.0.1/v1", true),
            ("http://127.9.9.9/v1", true),
            ("http://[::1]:1/v1", true),
            ("http://[::ffff:127.0.0.1]:1/v1", true),
            ("http://localhost.:8000/v1", true),
            ("http://model.localhost/v1", true),
            ("http://localhost.example.com/v1", false),
            ("http://10.0.0.1/v1", false),
            ("https://api.example.com/v1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
