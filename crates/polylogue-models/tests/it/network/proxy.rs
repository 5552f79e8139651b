//! A proxy that notes what it is asked, and passes everything on to one server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// A running proxy.
pub(crate) struct Proxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Passes on to `to`, or refuses everyone if there is no such place.
    pub(crate) async fn start(to: Option<SocketAddr>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, heads) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let notes = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (head, rest) = read_head(&mut stream).await;
                notes.lock().unwrap().push(head.clone());
                tokio::spawn(pass_on(stream, head, rest, to));
            }
        });
        Self { address, heads }
    }

    /// Its address, with a name and a password.
    pub(crate) fn url(&self) -> String {
        format!("http://me:secret%20word@{}", self.address)
    }

    /// Its address as it may be shown.
    pub(crate) fn shown(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The first line and the headers of what each connection asked for first.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// The first line and the headers, and what came with them.
async fn read_head(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return (String::from_utf8(bytes).unwrap(), rest);
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the head ends");
    }
}

async fn pass_on(mut stream: TcpStream, head: String, rest: Vec<u8>, to: Option<SocketAddr>) {
    let Some(to) = to else {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(refusal).await.unwrap();
        return;
    };
    let mut server = TcpStream::connect(to).await.unwrap();
    if head.starts_with("CONNECT ") {
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    } else {
        // `POST http://host/path` becomes `POST /path`.
        let (method, url) = head.split_once(' ').unwrap();
        let path = url.splitn(4, '/').nth(3).unwrap();
        server.write_all(format!("{method} /{path}").as_bytes()).await.unwrap();
        server.write_all(&rest).await.unwrap();
    }
    let _ = copy_bidirectional(&mut stream, &mut server).await;
}
