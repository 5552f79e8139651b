//! A remote server, over HTTP; its responses can be streams.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use polylogue_core::text;
use polylogue_http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use polylogue_http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Transport};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tokio::sync::{mpsc, oneshot};
use url::Url;

use crate::declaration::Address;
use crate::output::{Depth, ExceededLimit, SizeLimit};
use crate::settings::Settings;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Timeout of connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// Maximum length of an invalid response in an error message.
const TOLD_BYTES: usize = 300;

/// Number and interval of retries for a broken stream.
const RETRIES: usize = 2;
const PAUSE: Duration = Duration::from_millis(500);

/// A failed request.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failed(String);

type Error = StreamableHttpError<Failed>;

/// A client of a remote server.
#[derive(Clone)]
pub(crate) struct RemoteClient {
    url: Arc<str>,
    transport: Arc<Transport>,
    /// Maximum size of a message in bytes.
    longest: usize,
    /// Stores which limit a message exceeded.
    exceeded: Arc<ExceededLimit>,
}

impl RemoteClient {
    /// # Errors
    /// When the address is invalid; the text follows the name of the server.
    pub(crate) fn new(
        address: &Address,
        settings: &Settings,
        exceeded: &Arc<ExceededLimit>,
    ) -> Result<Self, String> {
        let url = Url::parse(&address.url).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
        let url = url.ok_or("has a `url` that is none of HTTP, such as `https://example.org/mcp`")?;
        let mut headers = HeaderMap::new();
        for (name, value) in &address.headers {
            let name = HeaderName::try_from(name).map_err(|_| format!("has an illegal header `{name}`"))?;
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| format!("has a header `{name}` that cannot be sent"))?;
            value.set_sensitive(name == AUTHORIZATION);
            headers.insert(name, value);
        }
        let transport = Transport::new(&url, headers, CONNECT, &settings.proxies)
            .map_err(|why| format!("cannot be reached: its `url` {why}"))?;
        let (longest, exceeded) = (settings.limits.message_bytes, Arc::clone(exceeded));
        Ok(Self { url: url.as_str().into(), transport: Arc::new(transport), longest, exceeded })
    }

    /// The transport for a client of the protocol.
    pub(crate) fn transport(self) -> StreamableHttpClientTransport<Self> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(Arc::clone(&self.url));
        let mut retries = FixedInterval::default();
        (retries.max_times, retries.duration) = (Some(RETRIES), PAUSE);
        config.retry_config = Arc::new(retries);
        config.max_sse_event_size = self.longest;
        StreamableHttpClientTransport::with_client(self, config)
    }

    async fn ask(
        &self,
        method: Method,
        session: Option<Arc<str>>,
        more: HashMap<HeaderName, HeaderValue>,
        body: Bytes,
    ) -> Result<Answer, Error> {
        let mut headers: HeaderMap = more.into_iter().collect();
        headers.insert(ACCEPT, BOTH);
        if !body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        if let Some(session) = session {
            headers.insert(SESSION, sendable(&session)?);
        }
        let (head, pieces) = self.begin(method, headers, body);
        let head = head.await.map_err(|_| failed("the request was cancelled"))?.map_err(Error::Client)?;
        Ok(Answer { head, pieces })
    }

    /// Sends a request in a separate task that ends when the receiver of its response is dropped.
    fn begin(&self, method: Method, headers: HeaderMap, body: Bytes) -> (Head, Pieces) {
        let (respond, head) = oneshot::channel();
        let (sender, pieces) = mpsc::channel(4);
        let transport = Arc::clone(&self.transport);
        tokio::spawn(async move {
            let mut respond = respond;
            let asked = tokio::select! {
                asked = transport.ask(method, None, headers, body) => asked,
                () = respond.closed() => return,
            };
            let response = match asked {
                Ok(response) => response,
                Err(error) => return drop(respond.send(Err(Failed(in_words(&error))))),
            };
            if respond.send(Ok((response.status(), response.headers().clone()))).is_ok() {
                forward(response, sender).await;
            }
        });
        (head, pieces)
    }

    /// The events of a response, each within the size limit.
    fn events(&self, pieces: Pieces) -> BoxStream<'static, Result<Sse, SseError>> {
        let (longest, exceeded) = (self.longest, Arc::clone(&self.exceeded));
        let bounded =
            stream::unfold((pieces, Event::default(), false), move |(mut pieces, mut event, over)| {
                let exceeded = Arc::clone(&exceeded);
                async move {
                    let piece = if over { None } else { pieces.recv().await }?;
                    let piece = piece.and_then(|piece| {
                        let Some(flaw) = event.flaw(&piece, longest) else { return Ok(piece) };
                        exceeded.note(flaw);
                        Err(Failed(format!("it {}", exceeded.in_words(longest).unwrap_or_default())))
                    });
                    let over = piece.is_err();
                    Some((piece, (pieces, event, over)))
                }
            });
        SseStream::from_bytes_stream(bounded.boxed()).boxed()
    }
}

type Head = oneshot::Receiver<Result<(u16, HeaderMap), Failed>>;
type Pieces = mpsc::Receiver<Result<Bytes, Failed>>;

/// Sends the chunks of a body to its reader.
async fn forward(mut response: Response<'_>, to: mpsc::Sender<Result<Bytes, Failed>>) {
    loop {
        let piece = tokio::select! {
            piece = response.chunk() => piece,
            () = to.closed() => return,
        };
        let sent = match piece {
            Ok(Some(piece)) => to.send(Ok(piece)).await,
            Ok(None) => return,
            Err(error) => return drop(to.send(Err(Failed(in_words(&error)))).await),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// A response whose body is not read yet.
struct Answer {
    head: (u16, HeaderMap),
    pieces: Pieces,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head.0
    }

    fn is_of(&self, kind: &str) -> bool {
        let content_type =
            self.head.1.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(kind)
    }

    fn session(&self) -> Option<String> {
        Some(self.head.1.get(SESSION)?.to_str().ok()?.to_owned())
    }

    /// The whole body, of at most `longest` bytes.
    async fn body(&mut self, longest: usize) -> Result<Bytes, Error> {
        let mut all = BytesMut::new();
        while let Some(piece) = self.pieces.recv().await {
            all.extend_from_slice(&piece.map_err(Error::Client)?);
            if all.len() > longest {
                return Err(Error::ResponseBodyTooLarge { max_size: longest });
            }
        }
        Ok(all.freeze())
    }

    /// Why a response is invalid, with the beginning of its body.
    async fn refusal(mut self) -> Error {
        let status = self.status();
        let what = match status {
            401 | 403 => "it does not know who asks: set a header such as `Authorization`".to_owned(),
            404 | 405 => "no MCP server answers at this address, or one with an older transport".to_owned(),
            300..=399 => "it has moved".to_owned(),
            _ => {
                let body = self.body(64 * 1024).await.unwrap_or_default();
                let text = String::from_utf8_lossy(&body).trim().to_owned();
                text::head(&text, TOLD_BYTES).to_owned()
            }
        };
        failed(&format!("HTTP {status}: {what}"))
    }
}

/// The length and nesting of the event that is being read.
#[derive(Default)]
struct Event {
    bytes: usize,
    line: usize,
    depth: Depth,
}

impl Event {
    /// The limit that an event in `piece` exceeds. An empty line ends an event.
    fn flaw(&mut self, piece: &[u8], longest: usize) -> Option<SizeLimit> {
        for byte in piece {
            self.bytes += 1;
            match byte {
                b'\n' if self.line == 0 => (self.bytes, self.depth) = (0, Depth::default()),
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line += 1,
            }
            if self.bytes > longest {
                return Some(SizeLimit::Length);
            }
            if !self.depth.admits(*byte) {
                return Some(SizeLimit::Depth);
            }
        }
        None
    }
}

fn sendable(text: &str) -> Result<HeaderValue, Error> {
    HeaderValue::try_from(text).map_err(|_| failed("the server's name for the session cannot be sent"))
}

fn failed(why: &str) -> Error {
    Error::Client(Failed(why.to_owned()))
}

/// An error and its causes, outermost first.
fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        inner = error.source();
    }
    text
}

impl StreamableHttpClient for RemoteClient {
    type Error = Failed;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let has_session = session.is_some();
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let mut answer = self.ask(Method::POST, session, headers, body).await?;
        let session = answer.session();
        match answer.status() {
            202 | 204 => Ok(StreamableHttpPostResponse::Accepted),
            404 if has_session => Err(Error::SessionExpired),
            200..=299 if answer.is_of(EVENTS) => {
                Ok(StreamableHttpPostResponse::Sse(self.events(answer.pieces), session))
            }
            200..=299 if answer.is_of(JSON) && is_request => {
                let body = answer.body(self.longest).await.inspect_err(|error| {
                    if matches!(error, Error::ResponseBodyTooLarge { .. }) {
                        self.exceeded.note(SizeLimit::Length);
                    }
                })?;
                let message: ServerJsonRpcMessage = serde_json::from_slice(&body)?;
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            200..=299 if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            200..=299 => Err(failed("the answer is neither JSON nor a stream of events")),
            400..=599 if answer.is_of(JSON) && ![401, 403].contains(&answer.status()) => {
                let status = answer.status();
                let body = answer.body(self.longest).await?;
                match serde_json::from_slice(&body) {
                    Ok(message @ ServerJsonRpcMessage::Error(_)) if is_request => {
                        Ok(StreamableHttpPostResponse::Json(message, session))
                    }
                    _ => {
                        let text = String::from_utf8_lossy(&body);
                        Err(failed(&format!("HTTP {status}: {}", text::head(&text, TOLD_BYTES))))
                    }
                }
            }
            _ => Err(answer.refusal().await),
        }
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        // Whether the server ends the session does not matter.
        self.ask(Method::DELETE, Some(session), headers, Bytes::new()).await.map(drop)
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        if let Some(last) = last_event {
            headers.insert(LAST_EVENT, sendable(&last)?);
        }
        let answer = self.ask(Method::GET, session, headers, Bytes::new()).await?;
        match answer.status() {
            405 => Err(Error::ServerDoesNotSupportSse),
            200..=299 if answer.is_of(EVENTS) => Ok(self.events(answer.pieces)),
            _ => Err(answer.refusal().await),
        }
    }
}
