//! A server that issues access tokens.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A server that issues `token-1`, `token-2` and so on, or refuses to.
pub(crate) struct Tokens {
    pub(crate) address: String,
    pub(crate) count: Arc<AtomicUsize>,
    /// The last request.
    pub(crate) last: Arc<Mutex<String>>,
}

impl Tokens {
    /// Replies with `status` to requests that end with the field `last` of a form.
    pub(crate) async fn start(status: u16, last: &'static str) -> Self {
        Self::describing(status, last, "Token has been revoked.").await
    }

    /// The same, and describes what it refuses with `description`.
    pub(crate) async fn describing(status: u16, last: &'static str, description: &'static str) -> Self {
        Self::serving(status, format!("&{last}="), description, issued).await
    }

    /// Replies with `status` to requests without a body, as a metadata server.
    pub(crate) async fn metadata(status: u16) -> Self {
        Self::serving(status, "\r\n\r\n".into(), "no service account", issued).await
    }

    /// Replies with `status` to requests for tokens of a service account, whose bodies end with `}`.
    pub(crate) async fn of_service_account(status: u16) -> Self {
        Self::serving(status, "}".into(), "not allowed for Bearer token-1", generated).await
    }

    /// Ends the connection within each reply, to requests that end with the field `last` of a form.
    pub(crate) async fn breaking(last: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                receive(&mut stream, &format!("&{last}=")).await;
                counted.fetch_add(1, Ordering::Relaxed);
                let _ = stream.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 99\r\n\r\n{").await;
            }
        });
        Self { address, count, last: Arc::default() }
    }

    async fn serving(
        status: u16,
        end: String,
        description: &'static str,
        issued: fn(usize) -> Value,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        let last = Arc::new(Mutex::new(String::new()));
        let (counted, seen) = (Arc::clone(&count), Arc::clone(&last));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let received = receive(&mut stream, &end).await;
                *seen.lock().unwrap() = received;
                let nth = counted.fetch_add(1, Ordering::Relaxed) + 1;
                let body = match status {
                    200 => issued(nth),
                    _ => json!({"error": "invalid_grant", "error_description": description}),
                };
                let body = body.to_string();
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all((head + &body).as_bytes()).await;
            }
        });
        Self { address, count, last }
    }

    /// The text of the last request.
    pub(crate) fn last(&self) -> String {
        self.last.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// A request, up to `end` and what came with it.
async fn receive(stream: &mut TcpStream, end: &str) -> String {
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains(end) {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(length) if length > 0 => received.extend(&piece[..length]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&received).into_owned()
}

fn issued(nth: usize) -> Value {
    json!({"access_token": format!("token-{nth}"), "expires_in": 3599, "token_type": "Bearer"})
}

fn generated(nth: usize) -> Value {
    json!({"accessToken": format!("service-token-{nth}"), "expireTime": "2030-01-01T00:00:00Z"})
}
