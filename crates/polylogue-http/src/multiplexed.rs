//! Connections of HTTP/2, each of which carries many requests at the same time.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::TokioExecutor;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout};

use crate::connect::Stream;
use crate::pool::MAX_IDLE;

/// The maximum number of requests at the same time on one connection, where the server allows more.
const MOST_STREAMS: usize = 128;

/// How many bytes of one response are received before they are read, and of all responses of a connection: a response that
/// is read slowly holds up no other.
const STREAM_WINDOW: u32 = 512 * 1024;
const CONNECTION_WINDOW: u32 = 128 * STREAM_WINDOW;

/// How many requests a connection takes before the server has said how many it allows.
const BEFORE_SETTINGS: usize = 1;

/// How often it is looked whether the server has said how many requests it allows, and how many times: it may allow
/// exactly [`BEFORE_SETTINGS`].
const LOOK: (Duration, usize) = (Duration::from_millis(2), 250);

/// How long a request waits for a connection that another request is opening, before it opens one of its own.
const PATIENCE: Duration = Duration::from_secs(1);

/// The connections of HTTP/2 to one address, and whether it speaks HTTP/2 at all.
#[derive(Debug)]
pub(super) struct Multiplexed {
    connections: Mutex<Vec<Shared>>,
    /// Whether the last connection spoke HTTP/1: then none is shared, and none is waited for.
    is_http1: AtomicBool,
    opening: Arc<AsyncMutex<()>>,
}

/// The right to open a connection that others wait for, if they do.
#[derive(Debug)]
pub(super) struct Turn(#[expect(dead_code, reason = "others wait until it is dropped")] OwnedMutexGuard<()>);

/// A connection.
#[derive(derive_more::Debug)]
#[debug("Shared {{ in_flight: {in_flight:?}, limit: {limit:?} }}")]
struct Shared {
    sender: SendRequest<Full<Bytes>>,
    /// How many requests the server allows at the same time.
    limit: Arc<AtomicUsize>,
    in_flight: Arc<AtomicUsize>,
    used: Instant,
}

/// One request's place on a connection, until it is dropped.
#[derive(derive_more::Debug)]
#[debug("Place")]
pub(super) struct Place {
    pub(super) sender: SendRequest<Full<Bytes>>,
    in_flight: Arc<AtomicUsize>,
}

impl Multiplexed {
    /// No connections. If `is_http1`, the address is known to speak HTTP/1 only.
    pub(super) fn new(is_http1: bool) -> Self {
        let (connections, opening) = (Mutex::default(), Arc::default());
        Self { connections, is_http1: AtomicBool::new(is_http1), opening }
    }

    /// A place on an open connection that is not full. Closed and idle connections are dropped.
    pub(super) fn take(&self) -> Option<Place> {
        let mut connections = self.connections();
        let now = Instant::now();
        connections.retain(|connection| connection.is_usable(now));
        connections
            .iter_mut()
            .find(|connection| connection.has_place())
            .map(|connection| connection.place(now))
    }

    /// Waits until no other request opens a connection that this one could share: while it is unknown which protocol the
    /// server speaks, and while it speaks HTTP/2.
    pub(super) async fn turn(&self) -> Option<Turn> {
        if self.is_http1.load(Relaxed) {
            return None;
        }
        let turn = timeout(PATIENCE, Arc::clone(&self.opening).lock_owned()).await.ok().map(Turn);
        // Connections of HTTP/1 are opened at the same time.
        turn.filter(|_| !self.is_http1.load(Relaxed))
    }

    /// Notes that a connection spoke HTTP/1: from now on, none is waited for.
    pub(super) fn note_http1(&self) {
        self.is_http1.store(true, Relaxed);
    }

    /// Begins HTTP/2 on `stream`: a place on it. Who waits for `turn` can share the connection as soon as the server has said
    /// how many requests it allows.
    ///
    /// # Errors
    /// When the connection broke.
    pub(super) async fn add(&self, stream: Box<dyn Stream>, turn: Option<Turn>) -> hyper::Result<Place> {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_max_send_streams(BEFORE_SETTINGS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(stream)
            .await?;
        self.is_http1.store(false, Relaxed);
        let limit = Arc::new(AtomicUsize::new(BEFORE_SETTINGS));
        // It ends when the server closes it or all senders are dropped; its errors reach the waiting callers.
        tokio::spawn(drive(connection, Arc::clone(&limit), turn));
        let now = Instant::now();
        let mut shared = Shared { sender, limit, in_flight: Arc::default(), used: now };
        let place = shared.place(now);
        self.connections().push(shared);
        Ok(place)
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Shared>> {
        // Nothing under the lock can be left half done.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn is_usable(&self, now: Instant) -> bool {
        let is_idle = self.in_flight.load(Relaxed) == 0 && now.duration_since(self.used) > MAX_IDLE;
        !self.sender.is_closed() && !is_idle
    }

    fn has_place(&self) -> bool {
        self.in_flight.load(Relaxed) < self.limit.load(Relaxed).min(MOST_STREAMS)
    }

    fn place(&mut self, now: Instant) -> Place {
        self.used = now;
        self.in_flight.fetch_add(1, Relaxed);
        Place { sender: self.sender.clone(), in_flight: Arc::clone(&self.in_flight) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }
}

type Connection = http2::Connection<Box<dyn Stream>, Full<Bytes>, TokioExecutor>;

/// Carries requests until the connection ends, and notes how many the server allows.
async fn drive(mut connection: Connection, limit: Arc<AtomicUsize>, turn: Option<Turn>) {
    let (between, times) = LOOK;
    for _ in 0..times {
        if timeout(between, &mut connection).await.is_ok() {
            return;
        }
        limit.store(connection.current_max_send_streams(), Relaxed);
        if limit.load(Relaxed) != BEFORE_SETTINGS {
            break;
        }
    }
    drop(turn);
    let ended = poll_fn(|context| {
        // The server may change it at any time; it is polled with every request.
        limit.store(connection.current_max_send_streams(), Relaxed);
        Pin::new(&mut connection).poll(context)
    });
    // The errors of a connection reach the requests on it.
    let _ = ended.await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use hyper::server::conn::http2::Builder;
    use hyper::service::service_fn;
    use hyper::{Request, Response, Uri};
    use hyper_util::rt::TokioIo;
    use tokio::io::duplex;
    use tokio::time::{advance, sleep};

    use super::*;

    /// A connection to a server that allows `most` requests at the same time, and a place on it.
    async fn connected(multiplexed: &Multiplexed, most: u32) -> (Place, tokio::task::JoinHandle<()>) {
        let (near, far) = duplex(64 * 1024);
        let server = tokio::spawn(async move {
            let service = service_fn(async |_| {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello"))))
            });
            let mut builder = Builder::new(TokioExecutor::new());
            let _ = builder.max_concurrent_streams(most).serve_connection(TokioIo::new(far), service).await;
        });
        let place = multiplexed.add(Box::new(TokioIo::new(near)), multiplexed.turn().await).await.unwrap();
        // Until what the server allows is known.
        drop(multiplexed.turn().await);
        (place, server)
    }

    async fn answers(place: &mut Place) -> bool {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = Uri::from_static("https://host.example/");
        place.sender.send_request(request).await.is_ok()
    }

    #[tokio::test]
    async fn a_connection_is_shared_by_as_many_requests_as_the_server_allows() {
        let multiplexed = Multiplexed::new(false);
        assert!(multiplexed.take().is_none());
        let (mut first, _server) = connected(&multiplexed, 3).await;
        let (mut second, third) = (multiplexed.take().unwrap(), multiplexed.take().unwrap());
        assert!(multiplexed.take().is_none(), "the server allows three");
        assert!(answers(&mut first).await && answers(&mut second).await);
        drop(third);
        assert!(multiplexed.take().is_some());
    }

    #[tokio::test]
    async fn a_server_that_allows_any_number_is_sent_a_bounded_one() {
        let multiplexed = Multiplexed::new(false);
        let (first, _server) = connected(&multiplexed, u32::MAX).await;
        let places: Vec<Place> = std::iter::from_fn(|| multiplexed.take()).collect();
        assert_eq!(places.len() + 1, MOST_STREAMS);
        drop(first);
    }

    #[tokio::test]
    async fn a_closed_connection_takes_no_request() {
        let multiplexed = Multiplexed::new(false);
        let (place, server) = connected(&multiplexed, 3).await;
        server.abort();
        let _ = server.await;
        // The connection is a task: it notes the end once it runs.
        sleep(Duration::from_millis(50)).await;
        assert!(multiplexed.take().is_none());
        assert!(place.sender.is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_dropped_and_a_busy_one_is_not() {
        let multiplexed = Multiplexed::new(false);
        let (place, _server) = connected(&multiplexed, 3).await;
        advance(MAX_IDLE + Duration::from_secs(1)).await;
        assert!(multiplexed.take().is_some(), "it carries a request");
        drop(place);
        advance(MAX_IDLE + Duration::from_secs(1)).await;
        assert!(multiplexed.take().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn connections_are_opened_in_turn_unless_none_can_be_shared() {
        let multiplexed = Multiplexed::new(false);
        let turn = multiplexed.turn().await;
        assert!(turn.is_some());
        let begun = Instant::now();
        assert!(multiplexed.turn().await.is_none(), "who waits too long opens a connection of its own");
        assert_eq!(begun.elapsed(), PATIENCE);
        multiplexed.note_http1();
        assert!(multiplexed.turn().await.is_none());
        assert_eq!(begun.elapsed(), PATIENCE, "connections of HTTP/1 are opened at the same time");
    }
}
