//! Single requests to addresses from models and pages.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, USER_AGENT};
use hyper::{Method, Request, Uri};
use hyper_util::client::proxy::matcher::Intercept;
use url::{Host, Position, Url};

use crate::connect::{self, Connector, HTTP1, Stream};
use crate::network_access::{NetworkAccess, Refusal};
use crate::sender::path;
use crate::transport::{SendError, check_proxy, is_loopback, uri};
use crate::{Proxies, USER_AGENT_TEXT};

/// The maximum size of a response's head, in bytes.
const LARGEST_HEAD: usize = 64 * 1024;

/// Sends single requests to addresses from models and pages, restricted by a [`NetworkAccess`], by HTTP/1.
///
/// A name is resolved once for each request. Only allowed addresses are used, and the connection goes to exactly
/// those: later DNS changes have no effect. Redirects are not followed; a caller that follows one sends a new
/// request, which is checked like the first.
///
/// With a proxy, the proxy connects and resolves names. Then a name is also refused if any address that it resolves to here is
/// forbidden; a name that does not resolve here is left to the proxy.
#[derive(Debug, Default)]
pub struct Client {
    reach: NetworkAccess,
    proxies: Proxies,
    connect: Option<Duration>,
    hosts: BTreeMap<String, Vec<IpAddr>>,
}

/// The reason why a request got no response.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The request was not sent, because it is not allowed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The name of the host cannot be resolved: it does not exist, or its server of names does not answer.
    #[error("the host `{host}` cannot be resolved")]
    Unresolved {
        /// The host.
        host: String,
        /// What the system says.
        source: io::Error,
    },
    /// The request could not be sent, or there was no response.
    #[error(transparent)]
    SendError(#[from] SendError),
}

impl RequestError {
    /// Returns the error and its causes, in one line.
    pub fn in_words(&self) -> String {
        let mut innermost: &dyn Error = self;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        match (self.to_string(), innermost.to_string()) {
            (whole, why) if whole == why => whole,
            (whole, why) => format!("{whole}: {why}"),
        }
    }
}

/// A response whose body is not read yet. Dropped before its end, it closes its connection.
#[derive(Debug)]
pub struct Answer {
    inner: hyper::Response<Incoming>,
    _sender: http1::SendRequest<Full<Bytes>>,
}

impl Client {
    /// Creates a client that connects directly to what `reach` allows.
    pub fn new(reach: NetworkAccess) -> Self {
        Self { reach, ..Self::default() }
    }

    /// Sets the proxies.
    #[must_use]
    pub fn proxies(self, proxies: Proxies) -> Self {
        Self { proxies, ..self }
    }

    /// Sets the timeout of connecting. Default: 10 s.
    #[must_use]
    pub fn connect(self, limit: Duration) -> Self {
        Self { connect: Some(limit), ..self }
    }

    /// Resolves `host` to `addresses` without DNS. `reach` is still checked.
    #[must_use]
    pub fn host(mut self, host: &str, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.hosts.insert(host.to_ascii_lowercase(), addresses.into_iter().collect());
        self
    }

    /// Returns the allowed addresses.
    pub const fn reach(&self) -> &NetworkAccess {
        &self.reach
    }

    /// Sends a request and waits for the head of the response.
    ///
    /// Only [connecting](Self::connect) has a timeout, which includes resolving the name: the caller limits how long it waits for the head,
    /// and how much of the body it reads. Dropping the future cancels the request.
    ///
    /// # Errors
    /// When `url` is not allowed, or cannot be reached.
    pub async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, RequestError> {
        self.reach.check_url(url)?;
        let address = uri(url).map_err(unsendable)?;
        let proxy = if is_loopback(url) { None } else { self.proxies.before(&address) };
        let limit = self.connect.unwrap_or(Duration::from_secs(10));
        let opening = async {
            match &proxy {
                None => self.open(url, &address, limit).await,
                Some(proxy) => self.open_by(proxy, url, &address, limit).await,
            }
        };
        let stream = tokio::time::timeout(limit, opening).await.map_err(|_| SendError::Late)??;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(LARGEST_HEAD);
        let (mut sender, connection) = builder.handshake(stream).await.map_err(SendError::Broken)?;
        // It ends when the response is read or dropped; its errors reach the reader.
        tokio::spawn(connection);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.headers_mut() = with_defaults(headers, url)?;
        *request.uri_mut() = path(&address);
        if let Some(proxy) = proxy.filter(|_| url.scheme() == "http") {
            // A proxy that does not tunnel needs the whole address.
            *request.uri_mut() = address;
            let password = proxy.basic_auth().cloned();
            password
                .into_iter()
                .for_each(|password| drop(request.headers_mut().insert(PROXY_AUTHORIZATION, password)));
        }
        let inner = sender.send_request(request).await.map_err(SendError::Broken)?;
        Ok(Answer { inner, _sender: sender })
    }

    /// A connection to one of the allowed addresses of `url`.
    async fn open(&self, url: &Url, address: &Uri, limit: Duration) -> Result<Box<dyn Stream>, RequestError> {
        let host = url.host_str().unwrap_or_default();
        let unresolved = |source| RequestError::Unresolved { host: host.to_owned(), source };
        let resolved = self.resolve(url).await.map_err(unresolved)?;
        let (mut allowed, mut refusal) = (Vec::new(), None);
        for address in resolved {
            match self.reach.check(host, address) {
                Ok(()) => allowed.push(address),
                Err(why) => refusal = refusal.or(Some(why)),
            }
        }
        if allowed.is_empty() {
            return Err(refusal.map_or_else(
                || unresolved(io::Error::new(io::ErrorKind::NotFound, "it has no address")),
                RequestError::Refused,
            ));
        }
        let tls = match url.scheme() {
            "https" => Some(connect::tls(&HTTP1).map_err(SendError::NoCertificates)?),
            _ => None,
        };
        Ok(connect::to(allowed, tls, address.clone(), limit).await.map_err(SendError::Unreachable)?)
    }

    async fn open_by(
        &self,
        proxy: &Intercept,
        url: &Url,
        address: &Uri,
        limit: Duration,
    ) -> Result<Box<dyn Stream>, RequestError> {
        check_proxy(proxy).map_err(unsendable)?;
        // The proxy chooses among the addresses of a name, so that all of them must be allowed. What does not resolve here is left to it.
        for resolved in self.resolve(url).await.unwrap_or_default() {
            self.reach.check(url.host_str().unwrap_or_default(), resolved)?;
        }
        let place = if url.scheme() == "http" { proxy.uri().clone() } else { address.clone() };
        let connector = Connector::new(address, Some(proxy), &HTTP1, limit);
        let connector = connector.map_err(SendError::NoCertificates)?;
        Ok(connector.connect(place).await.map_err(SendError::Unreachable)?.stream)
    }

    /// The addresses of `url`, allowed or not.
    async fn resolve(&self, url: &Url) -> io::Result<Vec<SocketAddr>> {
        let port = url.port_or_known_default().unwrap_or(80);
        let host = url.host_str().unwrap_or_default();
        Ok(match url.host() {
            Some(Host::Ipv4(address)) => vec![SocketAddr::new(address.into(), port)],
            Some(Host::Ipv6(address)) => vec![SocketAddr::new(address.into(), port)],
            _ => match self.hosts.get(host) {
                Some(known) => known.iter().map(|address| SocketAddr::new(*address, port)).collect(),
                None => tokio::net::lookup_host((host, port)).await?.collect(),
            },
        })
    }
}

fn unsendable(why: String) -> Refusal {
    Refusal::new(format!("the address {why}"))
}

fn with_defaults(mut headers: HeaderMap, url: &Url) -> Result<HeaderMap, RequestError> {
    let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
    headers.insert(HOST, host.map_err(|_| unsendable("has a host that cannot be sent".into()))?);
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT_TEXT));
    Ok(headers)
}

impl Answer {
    /// Returns the status of the response, such as 200.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// Returns the headers of the response.
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Returns a header as text, if it is one.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// Returns the next piece of the body, or `None` at its end.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn chunk(&mut self) -> hyper::Result<Option<Bytes>> {
        while let Some(frame) = self.inner.body_mut().frame().await.transpose()? {
            // What is not data are trailers.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::Env;

    /// The address of a proxy that answers each request itself.
    async fn proxy() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            }
        });
        address
    }

    #[tokio::test]
    async fn a_proxy_receives_no_name_with_a_forbidden_address() {
        let proxies = Proxies::of(&Env::of([("HTTP_PROXY", proxy().await)]));
        let url = "http://some.example/".parse().unwrap();
        for (second, is_refused) in [("1.0.0.1", false), ("169.254.169.254", true), ("127.0.0.1", true)] {
            let addresses = ["1.1.1.1", second].map(|address| address.parse().unwrap());
            let client = Client::new(NetworkAccess::public()).host("some.example", addresses);
            let client = client.proxies(proxies.clone());
            let answer = client.send(Method::GET, &url, HeaderMap::new(), Bytes::new()).await;
            match answer {
                Ok(answer) => assert!(!is_refused && answer.status() == 200, "{second}"),
                Err(why) => assert!(is_refused && matches!(why, RequestError::Refused(_)), "{second}: {why}"),
            }
        }
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_resolved_is_named_with_the_reason() {
        let client = Client::new(NetworkAccess::public()).host("empty.example", []);
        let url = "http://empty.example/".parse().unwrap();
        let why = client.send(Method::GET, &url, HeaderMap::new(), Bytes::new()).await.unwrap_err();
        assert_eq!(why.in_words(), "the host `empty.example` cannot be resolved: it has no address");
    }
}
