//! The accept loop: connections with bounds on their number, on the time that a head takes to arrive, and on the time that a client
//! takes nothing.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
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
    let io = TokioIo::new(Patient { io: socket, time: limits.write_time, blocked: None });
    let service = service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        let mut request = request.map(Body::new);
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

/// A socket that fails when its other side takes nothing for a time.
struct Patient {
    io: TcpStream,
    time: Duration,
    blocked: Option<Pin<Box<Sleep>>>,
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
        Pin::new(&mut self.io).poll_shutdown(cx)
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
