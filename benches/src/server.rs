//! An endpoint that responds at once, always the same.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Interval;

use crate::job::{PIECES, Result};

/// How the endpoint responds, by the first segment of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// In one piece, at once.
    Whole,
    /// In one piece, after [`THINKING`], so that many are in flight.
    Slow,
    /// In [`PIECES`] pieces, as fast as they can be sent: they arrive many at a time.
    Burst,
    /// In [`PIECES`] pieces, one a millisecond: each arrives alone, as from a fast model.
    Paced,
}

/// How long [`Way::Slow`] takes.
const THINKING: Duration = Duration::from_millis(20);

/// The text of a reply that is sent in one piece: 300 characters.
pub(crate) const WORDS: &str = "ten chars ten chars ten chars ten chars ten chars ten chars ten chars ten chars \
    ten chars ten chars ten chars ten chars ten chars ten chars ten chars ten chars ten chars ten chars ten chars ten chars \
    ten chars ten chars ten chars ten chars ten chars ten chars ten chars ten chars ten chars ten chars.";

/// The text of one delta of a streamed reply.
pub(crate) const PIECE: &str = "word ";

/// A running endpoint.
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

/// The requests since [`Server::forget`].
#[derive(Default)]
struct Seen {
    requests: AtomicU64,
    bytes: AtomicU64,
    first: Mutex<Option<Instant>>,
}

impl Server {
    /// Starts on a new thread.
    pub(crate) fn start() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let (address, seen) = (listener.local_addr()?, Arc::<Seen>::default());
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || runtime.block_on(accept(listener, shared)));
        Ok(Self { address, seen })
    }

    /// The address for clients.
    pub(crate) fn base_url(&self, way: Way) -> String {
        let path = match way {
            Way::Whole => "whole",
            Way::Slow => "slow",
            Way::Burst => "burst",
            Way::Paced => "paced",
        };
        format!("http://{}/{path}", self.address)
    }

    /// Drops the recorded requests.
    pub(crate) fn forget(&self) {
        self.seen.requests.store(0, Ordering::SeqCst);
        self.seen.bytes.store(0, Ordering::SeqCst);
        *self.seen.first.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The time of the first request.
    pub(crate) fn first(&self) -> Option<Instant> {
        *self.seen.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of request bodies, and their total bytes.
    pub(crate) fn bodies(&self) -> (u64, u64) {
        (self.seen.requests.load(Ordering::SeqCst), self.seen.bytes.load(Ordering::SeqCst))
    }
}

async fn accept(listener: TcpListener, seen: Arc<Seen>) {
    loop {
        // An error is a connection that was closed before it was accepted: the next one counts.
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&seen)));
        }
    }
}

async fn serve(stream: TcpStream, seen: Arc<Seen>) {
    // Otherwise small pieces would wait for each other.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let answer = service_fn(|request| answer(request, &seen));
    // An error is a client that disconnected, which the client itself reports.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

type Answer = Response<Either<Full<Bytes>, Pieces>>;

async fn answer(request: Request<Incoming>, seen: &Seen) -> std::result::Result<Answer, Infallible> {
    seen.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    seen.requests.fetch_add(1, Ordering::SeqCst);
    seen.bytes.fetch_add(body.len() as u64, Ordering::SeqCst);
    let body = match path.split('/').nth(1) {
        Some("burst") => Either::Right(Pieces::new(None)),
        Some("paced") => Either::Right(Pieces::new(Some(Duration::from_millis(1)))),
        way => {
            if way == Some("slow") {
                tokio::time::sleep(THINKING).await;
            }
            Either::Left(Full::new(whole()))
        }
    };
    let kind = if matches!(body, Either::Left(_)) { "application/json" } else { "text/event-stream" };
    let mut answer = Response::new(body);
    answer.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static(kind));
    Ok(answer)
}

fn whole() -> Bytes {
    let head = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":""#;
    let tail = r#""},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":60,"total_tokens":160}}"#;
    Bytes::from([head, WORDS, tail].concat())
}

fn chunk(delta: &str, rest: &str) -> Bytes {
    Bytes::from(format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"bench\",{delta}{rest}}}\n\n"
    ))
}

/// The body of a streamed reply.
struct Pieces {
    sent: usize,
    piece: Bytes,
    pace: Option<Interval>,
}

impl Pieces {
    fn new(pace: Option<Duration>) -> Self {
        let delta = format!(
            "\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{PIECE}\"}},\"finish_reason\":null}}]"
        );
        Self { sent: 0, piece: chunk(&delta, ""), pace: pace.map(tokio::time::interval) }
    }

    fn end() -> Bytes {
        let finish = chunk(r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]"#, "");
        let usage = r#","usage":{"prompt_tokens":100,"completion_tokens":2000,"total_tokens":2100}"#;
        Bytes::from([&finish, &chunk(r#""choices":[]"#, usage), &b"data: [DONE]\n\n"[..]].concat())
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        if self.sent > PIECES {
            return Poll::Ready(None);
        }
        if let Some(pace) = &mut self.pace {
            ready!(pace.poll_tick(cx));
        }
        self.sent += 1;
        let data = if self.sent > PIECES { Self::end() } else { self.piece.clone() };
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_what_they_are_said_to_be() {
        assert_eq!(WORDS.len(), 300);
        let reply: serde_json::Value = serde_json::from_slice(&whole()).unwrap();
        assert_eq!(reply["choices"][0]["message"]["content"], WORDS);
    }

    #[tokio::test]
    async fn a_streamed_reply_has_all_its_pieces() {
        let body = Pieces::new(None).collect().await.unwrap().to_bytes();
        let text = std::str::from_utf8(&body).unwrap();
        let events: Vec<_> = text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
        assert_eq!((events.len(), events.last()), (PIECES + 3, Some(&"[DONE]")));
        let event = |at: usize| serde_json::from_str::<serde_json::Value>(events[at]).unwrap();
        assert_eq!(event(0)["choices"][0]["delta"]["content"], PIECE);
        assert_eq!(event(PIECES)["choices"][0]["finish_reason"], "stop");
        assert_eq!(event(PIECES + 1)["usage"]["completion_tokens"], PIECES);
    }
}
