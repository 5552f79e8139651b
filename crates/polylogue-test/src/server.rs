//! A model server that replies by script and misbehaves on demand. It speaks the APIs of OpenAI (chat completions and responses),
//! Anthropic, Google, Amazon and Ollama: [`Dialect`].
//!
//! It implements HTTP/1.1 over real sockets, so that it can split, delay, truncate and corrupt at any byte. Every
//! request is checked as by the strictest servers ([`validate`]): one that breaks a rule gets a 400 and is listed in
//! [`Server::violations`]. A test begins with one line and ends with another:
//!
//! ```
//! use polylogue_test::server::{Answer, Playbook, Quirk, Server};
//!
//! # async fn test() {
//! let server = Server::start(Playbook::list([
//!     Answer::status(429).retry_after_secs(0),
//!     Answer::text("It is sunny.").with(Quirk::UsageWithFinish).with(Quirk::SplitEvery(1)),
//! ]))
//! .await;
//! // ... a client of `server.base_url()` ...
//! # if false {
//! assert_eq!(server.violations(), [""; 0]);
//! assert_eq!(server.unused(), 0);
//! # }
//! # }
//! ```
//!
//! A server runs on its own thread: a test that blocks or pauses its time does not affect it. The server's own pauses
//! are real time.

mod answer;
mod anthropic;
mod apis;
mod bedrock;
mod behavior;
mod chunks;
mod completion;
mod dialect;
mod efforts;
mod gemini;
mod http;
mod limits;
mod media;
mod model_lists;
mod ollama;
mod parameters;
mod piece_gate;
mod playbook;
mod quirk;
mod received;
mod record;
mod refusal;
mod response;
mod responses;
mod returned;
mod rules;
mod schemas;
mod script;
mod seal;
mod serve;
mod sse;
mod unique;
mod validate;
mod vendor;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::sync::oneshot;

pub use answer::Answer;
pub use behavior::{Behavior, rendered};
pub use dialect::Dialect;
pub use piece_gate::PieceGate;
pub use playbook::Playbook;
pub use quirk::{Entry, Field, Quirk};
pub use received::Received;
pub use validate::{History, validate, validate_as};
pub use vendor::Vendor;

use record::Record;
use serve::Shared;

/// A running server. Dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    listed: usize,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server on a free port of the loopback interface.
    ///
    /// # Panics
    /// When the machine has no port or thread left, as nothing a test can do would help; [`Server::bind`] returns
    /// the error instead.
    #[expect(clippy::panic, clippy::unused_async, reason = "for tests: an error would only be unwrapped")]
    pub async fn start(behavior: impl Into<Behavior>) -> Self {
        match Self::bind((Ipv4Addr::LOCALHOST, 0).into(), behavior) {
            Ok(server) => server,
            Err(error) => panic!("the scripted server cannot start: {error}"),
        }
    }

    /// Starts a server on this address. Needs no async runtime.
    ///
    /// # Errors
    /// When the address is taken, or the machine has no thread left.
    pub fn bind(address: SocketAddr, behavior: impl Into<Behavior>) -> io::Result<Self> {
        let behavior = behavior.into();
        let listed = match &behavior.play {
            behavior::Play::Book(book) => book.listed(),
            behavior::Play::Raw(_) => 0,
        };
        let shared = Arc::new(Shared { behavior, record: Record::default() });
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let sharing = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("scripted-server".into())
            .spawn(move || run(listener, sharing, stopped, &ready))?;
        is_ready.recv().map_err(io::Error::other)??;
        Ok(Self { address, shared, listed, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the base URL for clients: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the base URL for clients of APIs whose paths do not begin with `/v1`: `http://127.0.0.1:PORT`.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the base URL for clients of Ollama's own API: `http://127.0.0.1:PORT`.
    pub fn ollama_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all requests, in order of arrival, whatever their path.
    pub fn requests(&self) -> Vec<Arc<Received>> {
        self.shared.record.requests()
    }

    /// Returns the number of requests for completions.
    pub fn count(&self) -> usize {
        self.shared.record.asked.load(Ordering::SeqCst)
    }

    /// Returns the rules that requests broke, as `request 3: messages[2] has an empty text`; empty if all were valid and the
    /// script had an answer for each.
    pub fn violations(&self) -> Vec<String> {
        self.shared.record.violations()
    }

    /// Returns the number of complete replies: all bytes written, and the connection not reset by the client.
    pub fn replies(&self) -> usize {
        self.shared.record.replies()
    }

    /// Returns the bodies of requests that got a complete reply more than once: calls that were paid for twice.
    ///
    /// A reply counts when all its bytes were written and the client did not reset the connection, as the system
    /// does for a process that is killed with bytes unread. A client that is killed after it has read the reply, but
    /// before it has stored it, is the one case that counts although asking again is right.
    pub fn duplicates(&self) -> Vec<Value> {
        self.shared.record.duplicates()
    }

    /// Returns the number of unused answers of a [`Playbook::list`].
    pub fn unused(&self) -> usize {
        self.listed.saturating_sub(self.count())
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.record.connections.now()
    }

    /// Returns the maximum number of concurrent requests.
    pub fn most_at_once(&self) -> usize {
        self.shared.record.in_flight.most()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its receiver is gone when the thread is, which is what is wanted.
        let _ = self.stop.take().map(|stop| stop.send(()));
        // A panic of the thread has been printed by then.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The server's thread.
fn run(
    listener: TcpListener,
    shared: Arc<Shared>,
    stopped: oneshot::Receiver<()>,
    ready: &mpsc::Sender<io::Result<()>>,
) {
    let started = (|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        listener.set_nonblocking(true)?;
        let listener = {
            let _guard = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        io::Result::Ok((runtime, listener))
    })();
    let (runtime, listener) = match started {
        Ok(started) => started,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    runtime.block_on(async {
        tokio::spawn(serve::accept(listener, shared));
        let _ = ready.send(Ok(()));
        // Ends with a message, or with the server that would have sent it. The tasks end with the runtime.
        let _ = stopped.await;
    });
}
