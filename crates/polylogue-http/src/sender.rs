//! Sending a request by either protocol, in the form that it has there.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, Uri};

use crate::multiplexed::Place;
use crate::pool;

/// Sends a request.
#[derive(Debug)]
pub(super) enum Sender {
    /// On a connection of HTTP/1, which carries nothing else until the response was read.
    Alone(pool::Sender),
    /// On a connection of HTTP/2, which carries other requests too.
    Shared(Place),
}

impl Sender {
    /// Sends `request` in the form of the protocol, and waits for the head of the response.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<hyper::Response<Incoming>, Unsent> {
        match self {
            Self::Alone(sender) => sender.try_send_request(with_host(request)).await,
            Self::Shared(place) => place.sender.try_send_request(with_authority(request)).await,
        }
    }
}

type Unsent = TrySendError<Request<Full<Bytes>>>;

/// `request` for HTTP/2: its host is in its target.
fn with_authority(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let host = request.headers().get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let mut parts = request.uri().clone().into_parts();
    (parts.scheme, parts.authority) = (Some(Scheme::HTTPS), host);
    if let Ok(target) = Uri::from_parts(parts) {
        *request.uri_mut() = target;
        request.headers_mut().remove(HOST);
    }
    request
}

/// `request` for HTTP/1, also if it was to be sent by HTTP/2.
fn with_host(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    if !request.headers().contains_key(HOST) {
        let host = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        host.into_iter().for_each(|host| drop(request.headers_mut().insert(HOST, host)));
        *request.uri_mut() = path(request.uri());
    }
    request
}

/// The target in the first line of a request to `address` itself.
pub(crate) fn path(address: &Uri) -> Uri {
    address.path_and_query().map(|path| Uri::from(path.clone())).unwrap_or_default()
}
