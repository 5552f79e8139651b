//! A proxy to the allowed hosts: the only network access of a sandbox.
//!
//! It listens on the loopback interface of the sandbox, which has no other servers, and connects from outside. So programs cannot
//! reach other hosts.

mod allowed;
mod request;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

pub(crate) use self::allowed::Allowed;
use self::request::Request;

/// The port of the proxy in the sandbox: a usual port of proxies.
pub(crate) const PORT: u16 = 3128;
/// Timeouts of connecting, and of an idle connection.
const CONNECT: Duration = Duration::from_secs(15);
const SILENCE: Duration = Duration::from_secs(300);
/// Maximum number of connections at the same time.
const CONNECTIONS: usize = 64;

/// A running proxy. Dropping it closes all of its connections.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

type Connections = BTreeMap<u64, [TcpStream; 2]>;

struct Shared {
    listener: TcpListener,
    allowed: Allowed,
    /// Both ends of all connections, to close them; `None` when the proxy has ended.
    open: Mutex<Option<Connections>>,
    next: AtomicU64,
}

impl Proxy {
    /// Starts it.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub(crate) fn start(listener: TcpListener, allowed: Allowed) -> io::Result<Self> {
        let open = Mutex::new(Some(Connections::new()));
        let shared = Arc::new(Shared { listener, allowed, open, next: AtomicU64::new(0) });
        let own = Arc::clone(&shared);
        let thread = Builder::new().name("polylogue-proxy".into()).spawn(move || serve(&own))?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        stop_listening(&self.shared.listener);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        let open = self.shared.open().take();
        for [inside, outside] in open.unwrap_or_default().values() {
            cut(inside);
            cut(outside);
        }
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Option<Connections>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection, and returns its number; `None` if the proxy has ended while the connection was made.
    fn add(&self, both: [TcpStream; 2]) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open().as_mut()?.insert(number, both);
        Some(number)
    }

    fn remove(&self, number: u64) {
        if let Some(open) = self.open().as_mut() {
            open.remove(&number);
        }
    }
}

/// Reports to waiting clients that no connection will come.
#[allow(unsafe_code, reason = "the standard library has no name for this")]
fn stop_listening(listener: &TcpListener) {
    use std::os::fd::AsRawFd;
    // SAFETY: a call on numbers.
    unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Closes a connection, which may be closed already.
fn cut(stream: &TcpStream) {
    drop(stream.shutdown(Shutdown::Both));
}

fn serve(shared: &Arc<Shared>) {
    while let Ok((inside, _)) = shared.listener.accept() {
        if Arc::strong_count(shared) > CONNECTIONS + 2 {
            answer(inside, "503 Service Unavailable", "too many connections at the same time");
            continue;
        }
        let own = Arc::clone(shared);
        // Without a thread for it the connection is closed, which says as much.
        drop(Builder::new().name("polylogue-proxy".into()).spawn(move || connection(&own, inside)));
    }
}

/// One connection from beginning to end.
fn connection(shared: &Shared, mut inside: TcpStream) {
    let quiet = inside.set_read_timeout(Some(SILENCE)).and(inside.set_write_timeout(Some(SILENCE)));
    let Ok(request) = quiet.and_then(|()| Request::read(&mut inside)) else {
        return answer(
            inside,
            "400 Bad Request",
            "this proxy takes `CONNECT` and requests of whole `http` addresses",
        );
    };
    let outside = match shared.allowed.connect(&request.host, request.port, CONNECT) {
        Ok(outside) => outside,
        Err(why) => return answer(inside, "403 Forbidden", &why),
    };
    let opened = match &request.head {
        None => inside.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n"),
        Some(head) => (&outside).write_all(head),
    };
    let opened = opened.and_then(|()| (&outside).write_all(&request.rest));
    let both = opened.and_then(|()| Ok([inside.try_clone()?, outside.try_clone()?]));
    let Some(number) = both.ok().and_then(|both| shared.add(both)) else { return };
    relay(inside, outside);
    shared.remove(number);
}

/// Forwards bytes in both directions until both are idle or closed.
fn relay(inside: TcpStream, outside: TcpStream) {
    let quiet = outside.set_read_timeout(Some(SILENCE)).and(outside.set_write_timeout(Some(SILENCE)));
    let (Ok(()), Ok(from), Ok(to)) = (quiet, inside.try_clone(), outside.try_clone()) else { return };
    let upward = Builder::new().name("polylogue-proxy".into()).spawn(move || hand_on(&from, &to));
    hand_on(&outside, &inside);
    // The server has said all: further output of the program is dropped.
    cut(&outside);
    cut(&inside);
    drop(upward.map(JoinHandle::join));
}

fn hand_on(mut from: &TcpStream, mut to: &TcpStream) {
    drop(io::copy(&mut from, &mut to));
    drop(to.shutdown(Shutdown::Write));
}

/// Refuses a request with an HTTP response.
fn answer(mut stream: TcpStream, status: &str, why: &str) {
    let length = why.len() + 1;
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{why}\n"
    );
    // The receiver may be gone.
    drop(stream.write_all(text.as_bytes()));
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
