//! A site over real sockets, which answers as a test wants it to.

use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use polylogue_http::{Client, NetworkAccess};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What a site does with a request: the path, and the way back.
pub(crate) type Act = Pin<Box<dyn Future<Output = std::io::Result<()>> + Send>>;

/// A site at this machine. It ends with the test's runtime.
pub(crate) struct Site {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

/// An answer, with the right length.
pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn html(body: &str) -> Vec<u8> {
    answer("200 OK", "content-type: text/html\r\n", body)
}

pub(crate) fn redirect(to: &str) -> Vec<u8> {
    answer("302 Found", &format!("location: {to}\r\n"), "")
}

impl Site {
    /// A site that answers the paths of `answers`, and no other.
    pub(crate) async fn of(answers: &[(&str, Vec<u8>)]) -> Self {
        let answers: Vec<(String, Vec<u8>)> =
            answers.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.clone())).collect();
        Self::acting(move |path, mut stream| {
            let found = answers.iter().find(|(of, _)| *of == path).map(|(_, bytes)| bytes.clone());
            let bytes = found.unwrap_or_else(|| answer("404 Not Found", "", "nothing here"));
            Box::pin(async move { stream.write_all(&bytes).await })
        })
        .await
    }

    /// A site that does what `act` says.
    pub(crate) async fn acting(act: impl Fn(String, TcpStream) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (act, received) = (Arc::new(act), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (act, received) = (Arc::clone(&act), Arc::clone(&received));
                tokio::spawn(serve(stream, act, received));
            }
        });
        Self { port, asked }
    }

    /// The heads of all requests so far, with their bodies.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The paths that were asked for.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked().iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect()
    }

    /// Its address by a name that stands for this machine in [`Site::client`].
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://site.example:{}{path}", self.port)
    }

    /// Who may reach the public web and this site, which it knows as `site.example`.
    pub(crate) fn client(&self) -> Client {
        let reach =
            NetworkAccess::public().allowing([format!("site.example:{}", self.port).parse().unwrap()]);
        Client::new(reach)
            .host("site.example", [IpAddr::from(Ipv4Addr::LOCALHOST)])
            .host("inner.example", ["10.0.0.1".parse().unwrap()])
            .host("metadata.google.internal", ["169.254.169.254".parse().unwrap()])
            .host("local.example", ["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()])
            .host("mapped.example", ["::ffff:127.0.0.1".parse().unwrap()])
            .host("unknown.example", [])
    }
}

async fn serve(
    mut stream: TcpStream,
    act: Arc<impl Fn(String, TcpStream) -> Act + Send + Sync + 'static>,
    received: Arc<Mutex<Vec<String>>>,
) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let Ok(count @ 1..) = stream.read(&mut buffer).await else { return };
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0usize) {
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            received.lock().unwrap().push(text.clone());
            let _ = act(path, stream).await;
            return;
        }
    }
}
