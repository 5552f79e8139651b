//! The accept loop: connections with bounds on their number, on the time that a head takes to arrive, and on the time that a client
//! takes nothing.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};
use tower_service::Service as _;

use crate::addresses::{Addresses, Entered};
use crate::forwarded::{TrustedProxy, client, is_trusted};
use crate::limits::ServerLimits;
use crate::request::{Peer, Proxied};

/// How long the accept loop rests after an error of the system, such as too many open files.
const REST: Duration = Duration::from_millis(50);

/// How long a connection stays open for what a client still sends of a body that is not read. One that is closed before is reset, and its
/// client, which writes, does not read the response.
const LINGERS: Duration = Duration::from_secs(1);

/// How many bytes of that are taken.
const LINGER_BYTES: usize = 8 << 20;

/// Serves connections until `over` says so, and then those that are open, until they end. Who sends a request is what the `trusted` proxies say.
pub(crate) async fn listen(
    listener: TcpListener,
    router: Router,
    (limits, trusted): (&ServerLimits, Arc<[TrustedProxy]>),
    mut over: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let open = Open::new(limits);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = over.wait_for(|over| *over) => break,
        };
        let Ok((socket, address)) = accepted else {
            sleep(REST).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        // More than the limit are closed at once.
        let Some(permit) = open.permit(address.ip(), is_trusted(&trusted, address.ip())) else { continue };
        // Small frames of event streams are sent at once; without this option, later.
        let _ = socket.set_nodelay(true);
        let peer = (address.ip(), Arc::clone(&trusted));
        let serving = connection(socket, peer, router.clone(), limits.clone(), over.clone());
        connections.spawn(async move {
            serving.await;
            drop(permit);
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection. An error is the client's, and ends it.
async fn connection(
    socket: TcpStream,
    (peer, trusted): (IpAddr, Arc<[TrustedProxy]>),
    router: Router,
    limits: ServerLimits,
    mut over: watch::Receiver<bool>,
) {
    let unread = Arc::new(AtomicBool::new(false));
    let io = TokioIo::new(Patient {
        io: socket,
        time: limits.write_time,
        blocked: None,
        unread: Arc::clone(&unread),
        lingering: None,
    });
    let service = service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        let mut request = request.map(|body| Body::new(ReadBody::new(body, &unread)));
        let sender = client(&trusted, peer, request.headers());
        request.extensions_mut().insert(Peer(sender));
        if sender != peer {
            request.extensions_mut().insert(Proxied(sender));
        }
        async move { Ok::<Response<Body>, Infallible>(router.call(request).await.unwrap_or_else(|e| match e {})) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_headers(limits.header_fields)
        .max_buf_size(limits.head_bytes)
        .serve_connection(io, service);
    let mut serving = pin!(serving);
    tokio::select! {
        _ = serving.as_mut() => return,
        _ = over.wait_for(|over| *over) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

/// The connections that are open.
struct Open {
    all: Arc<Semaphore>,
    by_address: Addresses,
}

/// One open connection.
struct Permit {
    _one: OwnedSemaphorePermit,
    _of_address: Option<Entered>,
}

impl Open {
    fn new(limits: &ServerLimits) -> Self {
        let by_address = Addresses::new(limits.connections_per_address);
        Self { all: Arc::new(Semaphore::new(limits.connections)), by_address }
    }

    /// One more connection from `address`, unless there are too many. A proxy has those of all its clients, whose requests are counted instead.
    fn permit(&self, address: IpAddr, is_proxy: bool) -> Option<Permit> {
        let one = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let of_address = if is_proxy { None } else { Some(self.by_address.enter(address)?) };
        Some(Permit { _one: one, _of_address: of_address })
    }
}

/// The body of a request, which notes whether all of it was read.
struct ReadBody {
    body: Incoming,
    unread: Arc<AtomicBool>,
}

impl ReadBody {
    fn new(body: Incoming, unread: &Arc<AtomicBool>) -> Self {
        unread.store(!body.is_end_stream(), Ordering::Relaxed);
        Self { body, unread: Arc::clone(unread) }
    }
}

impl hyper::body::Body for ReadBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.unread.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket that fails when its other side takes nothing for a time. When it is closed, it takes some of a body that was not read.
struct Patient {
    io: TcpStream,
    time: Duration,
    blocked: Option<Pin<Box<Sleep>>>,
    /// Whether a part of the last body was not read.
    unread: Arc<AtomicBool>,
    lingering: Option<Lingering>,
}

/// What is still taken of a socket that is being closed.
struct Lingering {
    until: Pin<Box<Sleep>>,
    left: usize,
}

impl Lingering {
    fn new() -> Self {
        Self { until: Box::pin(sleep(LINGERS)), left: LINGER_BYTES }
    }

    /// Ready when the other side has closed the connection, too, or no more is taken.
    fn poll(&mut self, io: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        while self.left > 0 && self.until.as_mut().poll(cx).is_pending() {
            let mut bytes = [0; 8 * 1024];
            let mut buffer = ReadBuf::new(&mut bytes);
            match ready!(Pin::new(&mut *io).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    self.left = self.left.saturating_sub(buffer.filled().len());
                }
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl Patient {
    /// Fails if `poll` has been pending for too long.
    fn bounded<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.blocked = None;
            return poll;
        }
        let time = self.time;
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(sleep(time)));
        ready!(blocked.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.bounded(cx, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.io).poll_flush(cx);
        self.bounded(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { io, unread, lingering, .. } = &mut *self;
        if lingering.is_none() {
            ready!(Pin::new(&mut *io).poll_shutdown(cx))?;
        }
        if unread.load(Ordering::Relaxed) {
            ready!(lingering.get_or_insert_with(Lingering::new).poll(io, cx));
        }
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.bounded(cx, poll)
    }
}
