//! A proxy in front of a server, which cuts connections at chosen moments.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// When the connection of an append is cut. 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cut {
    /// The server never gets the statement.
    BeforeSending = 1,
    /// The server gets the statement, and the client no answer.
    AfterSending = 2,
    /// The server has committed, and the client gets no answer.
    AfterCommit = 3,
    /// The server gets the statement when the client has connected again.
    Late = 4,
}

/// Which statements are cut.
const APPEND: &[u8] = b"polylogue.append(";

pub(crate) struct Proxy {
    port: u16,
    cutting: Arc<Cutting>,
}

#[derive(Default)]
struct Cutting {
    next: AtomicU8,
    cuts: AtomicUsize,
    /// Statements that the server has not answered yet, and whose connection to the client is cut.
    late: AtomicUsize,
}

impl Proxy {
    pub(crate) async fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let cutting = Arc::<Cutting>::default();
        let proxy = Self { port: listener.local_addr().unwrap().port(), cutting: cutting.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let cutting = cutting.clone();
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await {
                        forward(client, server, &cutting).await;
                    }
                });
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://polylogue@127.0.0.1:{}/polylogue", self.port)
    }

    /// Cuts the connection of the next append.
    pub(crate) fn cut_next(&self, cut: Cut) {
        self.cutting.next.store(cut as u8, Ordering::SeqCst);
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.cutting.cuts.load(Ordering::SeqCst)
    }

    /// Waits until the server has answered all that was sent late.
    pub(crate) async fn has_sent_all(&self) {
        while self.cutting.late.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn forward(mut client: TcpStream, mut server: TcpStream, cutting: &Cutting) {
    let (mut up, mut down) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(bytes @ 1..) = read else { return };
                let sent = &up[..bytes];
                let is_append = sent.windows(APPEND.len()).any(|part| part == APPEND);
                let cut = if is_append { cutting.next.swap(0, Ordering::SeqCst) } else { 0 };
                if cut != 0 {
                    cutting.late.fetch_add(1, Ordering::SeqCst);
                    cutting.cuts.fetch_add(1, Ordering::SeqCst);
                    cut_off(cut, client, server, sent).await;
                    cutting.late.fetch_sub(1, Ordering::SeqCst);
                    return;
                }
                if server.write_all(sent).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(bytes @ 1..) = read else { return };
                if client.write_all(&down[..bytes]).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn cut_off(cut: u8, client: TcpStream, mut server: TcpStream, sent: &[u8]) {
    if cut == Cut::BeforeSending as u8 {
        return;
    }
    if cut == Cut::Late as u8 {
        drop(client);
        tokio::time::sleep(Duration::from_millis(120)).await;
        let _ = server.write_all(sent).await;
        let _ = server.read(&mut [0; 4096]).await;
        return;
    }
    let _ = server.write_all(sent).await;
    if cut == Cut::AfterCommit as u8 {
        let _ = server.read(&mut [0; 4096]).await;
    }
}
