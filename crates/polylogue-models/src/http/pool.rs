//! Connections that wait for their next request.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Instant, timeout};

/// The right to send requests over a connection, one after the other.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// How long a connection may wait. Servers and what stands before them forget silent connections, often without a word.
const MAX_IDLE: Duration = Duration::from_secs(90);

/// How many connections wait at most, as many as are in flight at most unless that is set otherwise.
const MAX_WAITING: usize = 256;

/// How long a connection may take to be done with what it did before.
const SETTLING: Duration = Duration::from_millis(100);

/// Connections to one address. Those that the other side has closed cost nothing more; they are dropped when they are met.
///
/// Ours and not `hyper_util`'s client, because all of an endpoint's requests go to one address: finding connections by
/// address and a task of its own for each that comes back are half of what a request costs there.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Idle>>);

#[derive(Debug)]
struct Idle {
    sender: Sender,
    since: Instant,
}

impl Pool {
    /// The connection that was used last, if it can be used again.
    pub(super) async fn take(&self) -> Option<Sender> {
        loop {
            let mut sender = self.pop()?;
            // Usually it is ready: then no clock is asked.
            if sender.is_ready() || matches!(timeout(SETTLING, sender.ready()).await, Ok(Ok(()))) {
                return Some(sender);
            }
        }
    }

    /// Keeps a connection whose reply has been read to its end.
    pub(super) fn put(&self, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let now = Instant::now();
        let mut idle = self.idle();
        // The oldest are in front.
        let old = idle.partition_point(|idle| now.duration_since(idle.since) > MAX_IDLE);
        idle.drain(..old);
        if idle.len() < MAX_WAITING {
            idle.push(Idle { sender, since: now });
        }
    }

    fn pop(&self) -> Option<Sender> {
        let mut idle = self.idle();
        while let Some(Idle { sender, since }) = idle.pop() {
            if !sender.is_closed() && since.elapsed() <= MAX_IDLE {
                return Some(sender);
            }
        }
        None
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        // Nothing that is done under the lock can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
