//! A pool of idle connections of HTTP/1.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Instant, timeout};

/// Sends requests over a connection, one after the other.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// How long a connection may be idle. Servers and gateways close idle connections, often without notice.
pub(super) const MAX_IDLE: Duration = Duration::from_secs(90);

/// The maximum number of idle connections: the default limit of requests in flight.
const MAX_WAITING: usize = 256;

/// How long to wait until a connection is ready again.
const SETTLING: Duration = Duration::from_millis(100);

/// Idle connections to one address. Expired ones are dropped when the next request ends; without one, the server
/// closes them, after which they cost nothing more.
///
/// Ours and not `hyper_util`'s client, because all of an endpoint's requests go to one address: finding connections by
/// address and its own task for each that comes back are half of what a request costs there.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<Idle>>);

#[derive(Debug)]
struct Idle {
    sender: Sender,
    since: Instant,
}

impl Pool {
    /// The connection that was used last, if it is ready.
    pub(super) async fn take(&self) -> Option<Sender> {
        loop {
            let mut sender = self.pop()?;
            // Usually it is ready: then no timer is needed.
            if sender.is_ready() || matches!(timeout(SETTLING, sender.ready()).await, Ok(Ok(()))) {
                return Some(sender);
            }
        }
    }

    /// Adds a connection whose response was read to its end.
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
        // Nothing under the lock can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use hyper::client::conn::http1;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    async fn connection() -> (Sender, DuplexStream) {
        let (near, far) = duplex(4096);
        let (sender, connection) = http1::handshake(TokioIo::new(near)).await.unwrap();
        tokio::spawn(connection);
        (sender, far)
    }

    /// Sends a request, and returns whether it arrived at `far`, the other end of the connection.
    async fn leads_to(sender: &mut Sender, far: &mut DuplexStream) -> bool {
        let mut request = hyper::Request::new(Full::default());
        request.headers_mut().insert("host", hyper::header::HeaderValue::from_static("x"));
        let answered = async {
            let mut head = [0; 1024];
            assert_ne!(far.read(&mut head).await.unwrap(), 0);
            far.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            sent = sender.send_request(request) => sent.is_ok(),
            () = answered => false,
            () = tokio::time::sleep(Duration::from_secs(1)) => false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_used_last_is_used_next() {
        let pool = Pool::default();
        assert!(pool.take().await.is_none());
        let ((first, mut at_first), (second, mut at_second)) = (connection().await, connection().await);
        pool.put(first);
        pool.put(second);
        assert!(leads_to(&mut pool.take().await.unwrap(), &mut at_second).await);
        assert!(leads_to(&mut pool.take().await.unwrap(), &mut at_first).await);
        assert!(pool.take().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn closed_and_idle_connections_are_not_reused() {
        let pool = Pool::default();
        let ((old, _at_old), (closed, at_closed)) = (connection().await, connection().await);
        pool.put(old);
        tokio::time::advance(MAX_IDLE + Duration::from_secs(1)).await;
        pool.put(closed);
        assert_eq!(pool.idle().len(), 1, "the old one is dropped");
        drop(at_closed);
        // The connection is a task: it notes the end once it runs.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(pool.take().await.is_none());

        let (waiting, _at_waiting) = connection().await;
        pool.put(waiting);
        tokio::time::advance(MAX_IDLE + Duration::from_secs(1)).await;
        assert!(pool.take().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_still_busy_is_not_waited_for() {
        let pool = Pool::default();
        let (mut busy, _far) = connection().await;
        let mut request = hyper::Request::new(Full::default());
        request.headers_mut().insert("host", hyper::header::HeaderValue::from_static("x"));
        let sending = tokio::spawn(busy.send_request(request));
        pool.put(busy);
        let begun = Instant::now();
        assert!(pool.take().await.is_none());
        assert_eq!(begun.elapsed(), SETTLING);
        sending.abort();
    }

    #[tokio::test]
    async fn no_more_wait_than_are_allowed_to() {
        let pool = Pool::default();
        let mut far = Vec::new();
        for _ in 0..=MAX_WAITING {
            let (sender, end) = connection().await;
            pool.put(sender);
            far.push(end);
        }
        assert_eq!(pool.idle().len(), MAX_WAITING);
    }
}
