//! An MCP server over HTTP, of both kinds: with sessions, up to 2025-11-25, and without, since 2026-07-28.
//!
//! The transport is that of `rmcp`, which its authors test with the protocol's conformance suite. What surrounds it checks tokens, names
//! and origins; here it is only made sure that a session serves its owner only.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::Mutex;

use super::handler::Handler;
use super::host::ToolHost;

/// The body of a response: JSON, or an event stream.
pub type HttpBody = BoxBody<Bytes, Infallible>;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";

/// The limits of clients of a server.
#[derive(Debug, Clone, Copy)]
pub struct HttpOptions {
    /// Sessions of one owner at the same time.
    pub sessions_per_owner: usize,
    /// How long a session lasts in which nothing happens.
    pub session_time: Duration,
    /// The time between two comments in an event stream in which nothing happens.
    pub comment_every: Duration,
    /// The time after which clients connect again.
    pub retry: Duration,
    /// The largest body of a request, in bytes.
    pub body_bytes: usize,
}

/// Serves a host over HTTP.
pub struct HttpServer<H: ToolHost> {
    service: StreamableHttpService<Handler<H>, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    config: StreamableHttpServerConfig,
    per_owner: usize,
    owners: Owners,
    /// Held while a session is opened, so that those of an owner are counted.
    opening: Arc<Mutex<()>>,
}

/// Who has opened each session.
type Owners = Arc<Mutex<HashMap<String, String>>>;

impl<H: ToolHost> HttpServer<H> {
    /// Serves `host`, which `about` describes to clients.
    pub fn new(host: H, about: &str, options: HttpOptions) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(options.session_time);
        manager.session_config.sse_retry = Some(options.retry);
        let sessions = Arc::new(manager);
        let config = StreamableHttpServerConfig::default()
            // Names and origins are checked before, by the server's own rules.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_sse_keep_alive(Some(options.comment_every))
            .with_sse_retry(Some(options.retry))
            .with_max_request_body_bytes(options.body_bytes);
        let (host, about): (_, Arc<str>) = (Arc::new(host), about.into());
        let handler = move || Ok(Handler::of_http(Arc::clone(&host), Arc::clone(&about)));
        let service = StreamableHttpService::new(handler, Arc::clone(&sessions), config.clone());
        let (owners, opening, per_owner) = (Owners::default(), Arc::default(), options.sessions_per_owner);
        Self { service, sessions, config, per_owner, owners, opening }
    }

    /// Responds to a request of `owner`, whose session only that owner can use. What the request has as extensions is what
    /// [`Caller::extension`](super::Caller::extension) returns.
    pub async fn respond(&self, request: Request<Bytes>, owner: &str) -> Response<HttpBody> {
        let is_end = request.method() == Method::DELETE;
        let named = session_of(&request);
        if let Some(id) = &named
            && self.owners.lock().await.get(id).is_none_or(|of| of != owner)
        {
            return text(StatusCode::NOT_FOUND, "there is no such session, or it has ended");
        }
        if named.is_none() && opens_session(&request) {
            return self.open(request, owner).await;
        }
        let mut response = self.service.handle(after_last(request).map(Full::new)).await;
        if let Some(id) = named.filter(|_| is_end) {
            self.owners.lock().await.remove(&id);
            if response.status() == StatusCode::ACCEPTED {
                // It has ended, which clients look for.
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
        }
        response
    }

    /// Opens a session of `owner`, if they have room for one. In its own task, which continues when the client disconnects:
    /// otherwise the session would be there without an owner, and no limit would count it.
    async fn open(&self, request: Request<Bytes>, owner: &str) -> Response<HttpBody> {
        let opening = Arc::clone(&self.opening).lock_owned().await;
        if self.open_sessions(owner).await >= self.per_owner {
            return text(StatusCode::TOO_MANY_REQUESTS, "too many sessions are open");
        }
        let (service, owners, owner) = (self.service.clone(), Arc::clone(&self.owners), owner.to_owned());
        let opened = tokio::spawn(async move {
            let response = service.handle(request.map(Full::new)).await;
            if let Some(id) = response.headers().get(SESSION).and_then(|id| id.to_str().ok()) {
                owners.lock().await.insert(id.to_owned(), owner);
            }
            drop(opening);
            response
        });
        let failed = |_| text(StatusCode::INTERNAL_SERVER_ERROR, "the session could not be opened");
        opened.await.unwrap_or_else(failed)
    }

    /// How many sessions of `owner` are open. Forgets those of all owners that have ended: an owner may never come again.
    async fn open_sessions(&self, owner: &str) -> usize {
        let mut owners = self.owners.lock().await;
        let open = self.sessions.sessions.read().await;
        owners.retain(|id, _| open.contains_key(id.as_str()));
        owners.values().filter(|of| *of == owner).count()
    }

    /// Ends all sessions and event streams.
    pub fn close(&self) {
        self.config.cancellation_token.cancel();
    }
}

/// A request to resume a stream: `rmcp` begins with the event that the client names, which it has received.
fn after_last(mut request: Request<Bytes>) -> Request<Bytes> {
    let last = request.headers().get(LAST_EVENT).and_then(|last| last.to_str().ok());
    let next = last.and_then(|last| {
        let (index, stream) = last.split_at(last.find('/').unwrap_or(last.len()));
        let next = index.parse::<usize>().ok()?.checked_add(1)?;
        HeaderValue::from_str(&format!("{next}{stream}")).ok()
    });
    if let Some(next) = next {
        request.headers_mut().insert(LAST_EVENT, next);
    }
    request
}

/// The session that a request names. There are none in the protocol of 2026-07-28 and later.
fn session_of(request: &Request<Bytes>) -> Option<String> {
    let headers = request.headers();
    let id = headers.get(SESSION).filter(|_| !is_stateless(headers) || opens_session(request))?;
    Some(id.to_str().unwrap_or_default().to_owned())
}

/// Whether a request without a session opens one. `initialize` does whatever version it names.
fn opens_session(request: &Request<Bytes>) -> bool {
    #[derive(serde::Deserialize)]
    struct Named {
        method: String,
    }
    let named = serde_json::from_slice::<Named>(request.body());
    named.is_ok_and(|named| named.method == "initialize")
}

fn is_stateless(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
}

fn text(status: StatusCode, text: &'static str) -> Response<HttpBody> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use rmcp::transport::streamable_http_server::session::SessionManager as _;
    use serde_json::{Map, Value, json};

    use super::super::caller::Caller;
    use super::super::host::{InvalidParams, Reply, ServedTool};
    use super::*;

    /// A host without tools.
    struct Bare;

    impl ToolHost for Bare {
        async fn tools(&self, _: &Caller) -> Vec<ServedTool> {
            Vec::new()
        }

        async fn call(&self, _: &str, _: Map<String, Value>, _: &mut Caller) -> Result<Reply, InvalidParams> {
            Err(InvalidParams("there are no tools".to_owned()))
        }
    }

    fn server() -> HttpServer<Bare> {
        let time = Duration::from_secs(3_600);
        let options = HttpOptions {
            sessions_per_owner: 2,
            session_time: time,
            comment_every: time,
            retry: time,
            body_bytes: 1 << 20,
        };
        HttpServer::new(Bare, "", options)
    }

    fn initialize() -> Request<Bytes> {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let request =
            Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream");
        request.body(Bytes::from(body.to_string())).unwrap()
    }

    #[tokio::test]
    async fn a_client_that_disconnects_while_it_opens_a_session_is_its_owner() {
        let server = server();
        let mut opening = Box::pin(server.respond(initialize(), "Ann"));
        while server.sessions.sessions.read().await.is_empty() {
            let is_ready = poll_fn(|cx| Poll::Ready(opening.as_mut().poll(cx).is_ready())).await;
            assert!(!is_ready, "it was answered before it has a session");
            tokio::task::yield_now().await;
        }
        drop(opening);
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.open_sessions("Ann").await, 1);
        assert_eq!(server.respond(initialize(), "Ann").await.status(), StatusCode::OK);
        assert_eq!(server.respond(initialize(), "Ann").await.status(), StatusCode::TOO_MANY_REQUESTS);
    }

    #[tokio::test]
    async fn ended_sessions_are_forgotten_by_any_owner_that_opens_one() {
        let server = server();
        let response = server.respond(initialize(), "Ann").await;
        let id = response.headers().get(SESSION).unwrap().to_str().unwrap();
        server.sessions.close_session(&id.into()).await.unwrap();
        assert_eq!(server.respond(initialize(), "Ben").await.status(), StatusCode::OK);
        assert_eq!(server.owners.lock().await.values().collect::<Vec<_>>(), ["Ben"]);
    }
}
