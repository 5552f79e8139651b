//! Connections: direct or through a proxy, encrypted or not.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::rt::{Read, Write};
use hyper::service::Service;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::service::TowerToHyperService;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// A connection for HTTP.
pub(super) trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

/// A connection, and the protocol that both sides speak on it.
pub(super) struct Connected {
    pub(super) stream: Box<dyn Stream>,
    pub(super) is_http2: bool,
}

impl Connected {
    fn new(stream: impl Stream + Connection + 'static) -> Self {
        let is_http2 = stream.connected().is_negotiated_h2();
        Self { stream: Box::new(stream), is_http2 }
    }
}

/// How long a connection is silent before the other side is asked whether it is still there, how long after that it is
/// asked again, and how often: else a reply that takes minutes could wait for a machine that is gone. As reqwest does.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(15), Duration::from_secs(15), 3);

/// How long what was sent may stay unconfirmed: else a request on a connection whose other side is gone would wait until
/// the system gives up, after about 15 minutes.
#[cfg(target_os = "linux")]
const UNCONFIRMED: Duration = Duration::from_secs(60);

/// Connects to one address.
#[derive(Debug)]
pub(super) enum Connector {
    /// To the address itself, or to a proxy that receives the whole address with every request.
    Plain(HttpConnector),
    Encrypted(HttpsConnector<HttpConnector>),
    /// Through a tunneling proxy.
    Tunnel(Box<HttpsConnector<Tunnel<HttpsConnector<HttpConnector>>>>),
}

impl Connector {
    /// A connector to `target`, encrypted or not by its scheme, which offers it `protocols`. Reads the system's certificates
    /// if it is the first one that needs them.
    ///
    /// # Errors
    /// When there are no certificates.
    pub(super) fn new(
        target: &Uri,
        proxy: Option<&Intercept>,
        protocols: &'static [&'static str],
        limit: Duration,
    ) -> Result<Self, rustls::Error> {
        let tcp = tcp(limit);
        let is_secret = |uri: &Uri| uri.scheme_str() == Some("https");
        let Some(proxy) = proxy.filter(|_| is_secret(target)) else {
            let first = proxy.map_or(target, Intercept::uri);
            return Ok(match is_secret(first) {
                // A proxy that reads every request is spoken to in HTTP/1.
                true if proxy.is_some() => Self::Encrypted(HttpsConnector::from((tcp, tls(&HTTP1)?))),
                true => Self::Encrypted(HttpsConnector::from((tcp, tls(protocols)?))),
                false => Self::Plain(tcp),
            });
        };
        let tls = tls(protocols)?;
        // The tunnel is requested by HTTP/1.
        let mut to_proxy = ClientConfig::clone(&tls);
        to_proxy.alpn_protocols = names(&HTTP1);
        let to_proxy = HttpsConnector::from((tcp, Arc::new(to_proxy)));
        let tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
        let tunnel = match proxy.basic_auth() {
            Some(password) => tunnel.with_auth(password.clone()),
            None => tunnel,
        };
        Ok(Self::Tunnel(Box::new(HttpsConnector::from((tunnel, tls)))))
    }

    /// A new connection to `place`.
    pub(super) async fn connect(&self, place: Uri) -> Result<Connected, BoxError> {
        Ok(match self {
            Self::Plain(way) => Connected::new(TowerToHyperService::new(way.clone()).call(place).await?),
            Self::Encrypted(way) => Connected::new(TowerToHyperService::new(way.clone()).call(place).await?),
            Self::Tunnel(way) => {
                let way = HttpsConnector::clone(way);
                Connected::new(TowerToHyperService::new(way).call(place).await?)
            }
        })
    }
}

/// A new connection to one of `addresses`, which the host of `place` resolved to, and to nothing else.
pub(super) async fn to(
    addresses: Vec<SocketAddr>,
    tls: Option<Arc<ClientConfig>>,
    place: Uri,
    limit: Duration,
) -> Result<Box<dyn Stream>, BoxError> {
    let tcp = tuned(HttpConnector::new_with_resolver(Found(addresses)), limit);
    Ok(match tls {
        None => Box::new(TowerToHyperService::new(tcp).call(place).await?),
        Some(tls) => Box::new(TowerToHyperService::new(HttpsConnector::from((tcp, tls))).call(place).await?),
    })
}

/// The resolved addresses of a name.
#[derive(Debug, Clone)]
struct Found(Vec<SocketAddr>);

impl tower_service::Service<Name> for Found {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        ready(Ok(self.0.clone().into_iter()))
    }
}

fn tcp(limit: Duration) -> HttpConnector {
    tuned(HttpConnector::new(), limit)
}

fn tuned<R>(mut tcp: HttpConnector<R>, limit: Duration) -> HttpConnector<R> {
    // Each address of a name gets a share of the time.
    tcp.set_connect_timeout(Some(limit));
    tcp.enforce_http(false);
    // A request is written at once, so there is nothing to wait for.
    tcp.set_nodelay(true);
    let (silence, between, times) = KEEP_ALIVE;
    tcp.set_keepalive(Some(silence));
    tcp.set_keepalive_interval(Some(between));
    tcp.set_keepalive_retries(Some(times));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNCONFIRMED));
    tcp
}

/// The protocols that are offered to servers, the preferred one first.
pub(super) const HTTP1: [&str; 1] = ["http/1.1"];
pub(super) const HTTP2_OR_1: [&str; 2] = ["h2", "http/1.1"];

/// Encryption by the system's certificates, for one of `protocols`. One for the whole process, because reading the certificates takes
/// milliseconds and a worker has connections for each of its conversations; sessions are resumed, too.
pub(super) fn tls(protocols: &'static [&'static str]) -> Result<Arc<ClientConfig>, rustls::Error> {
    static MADE: Mutex<BTreeMap<&[&str], Arc<ClientConfig>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(config) = made.get(protocols) {
        return Ok(Arc::clone(config));
    }
    let config = read_certificates(protocols)?;
    made.insert(protocols, Arc::clone(&config));
    Ok(config)
}

fn read_certificates(protocols: &[&str]) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_platform_verifier()?.with_no_client_auth();
    config.alpn_protocols = names(protocols);
    Ok(Arc::new(config))
}

fn names(protocols: &[&str]) -> Vec<Vec<u8>> {
    protocols.iter().map(|name| name.as_bytes().to_vec()).collect()
}
