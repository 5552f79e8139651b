//! Many requests to one encrypted server: by HTTP/2 where it offers that, else by HTTP/1.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod certificates;

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use polylogue_http::{HeaderMap, Method, Proxies, Transport, read_all};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use certificates::{HEARD, certified, child};

/// How a server behaves.
#[derive(Debug, Clone, Copy)]
struct Manner {
    protocols: &'static [&'static str],
    /// How many requests at the same time it allows on a connection.
    most: u32,
    /// After how many requests it ends a connection.
    ends_after: usize,
}

const HTTP2: Manner = Manner { protocols: &["h2", "http/1.1"], most: 100, ends_after: usize::MAX };

/// What a server has seen.
#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    requests: AtomicUsize,
    /// The largest number of requests at the same time on one connection.
    most: AtomicUsize,
    versions: Mutex<Vec<Version>>,
    /// Endless responses whose reader has gone.
    ended: Arc<AtomicUsize>,
}

/// One of `requests` is over when it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// `/endless` streams until its reader has gone. Anything else takes 20 ms and repeats the request's host, path and body; first
/// it says how many endless responses have ended.
async fn answer(request: Request<Incoming>, seen: Arc<Seen>, here: Arc<AtomicUsize>) -> Response<Body> {
    seen.requests.fetch_add(1, SeqCst);
    seen.versions.lock().unwrap().push(request.version());
    if request.uri().path() == "/endless" {
        let counted = Counted(Arc::clone(&seen.ended));
        let pieces = futures_util::stream::unfold(counted, |counted| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((Ok(Frame::data(Bytes::from_static(b"more "))), counted))
        });
        return Response::new(UnsyncBoxBody::new(StreamBody::new(pieces)));
    }
    seen.most.fetch_max(here.fetch_add(1, SeqCst) + 1, SeqCst);
    tokio::time::sleep(Duration::from_millis(20)).await;
    here.fetch_sub(1, SeqCst);
    let host = request.uri().authority().map(ToString::to_string);
    let host = host.or_else(|| Some(request.headers().get("host")?.to_str().ok()?.to_owned()));
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let (ended, body) = (seen.ended.load(SeqCst), String::from_utf8_lossy(&body));
    let text = format!("{ended} ended {} {path} {body}", host.unwrap_or_default());
    Response::new(UnsyncBoxBody::new(Full::new(text.into())))
}

async fn serve(manner: Manner) -> (u16, Arc<Seen>, TempDir) {
    let (mut config, folder) = certified("localhost");
    config.alpn_protocols = manner.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (port, seen) = (listener.local_addr().unwrap().port(), Arc::new(Seen::default()));
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            shared.connections.fetch_add(1, SeqCst);
            tokio::spawn(one(stream, manner, Arc::clone(&shared)));
        }
    });
    (port, seen, folder)
}

/// Serves one connection.
async fn one(
    stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream>,
    manner: Manner,
    seen: Arc<Seen>,
) {
    let (here, total, over) = (Arc::default(), Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let end = Arc::clone(&over);
    let service = service_fn(move |request| {
        let (seen, here) = (Arc::clone(&seen), Arc::clone(&here));
        if total.fetch_add(1, SeqCst) + 1 == manner.ends_after {
            end.notify_one();
        }
        async move { Ok::<_, Infallible>(answer(request, seen, here).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(manner.most);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = over.notified() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

fn transport() -> Transport {
    let port = std::env::var("PORT").unwrap();
    let url = format!("https://localhost:{port}/base").parse().unwrap();
    Transport::new(&url, HeaderMap::new(), Duration::from_secs(10), &Proxies::none()).unwrap()
}

async fn ask(transport: &Transport, nth: usize) -> Result<String, Box<dyn std::error::Error>> {
    let body = Bytes::from(format!("request {nth}"));
    let mut response = transport.ask(Method::POST, None, HeaderMap::new(), body).await?;
    Ok(String::from_utf8(read_all(&mut response, 1024).await?.to_vec())?)
}

#[tokio::test]
#[ignore = "run by other tests, in its own process: whom to trust is said by its environment"]
async fn many() {
    let transport = transport();
    let count: usize = std::env::var("COUNT").unwrap().parse().unwrap();
    let port = std::env::var("PORT").unwrap();
    let at_once = std::env::var("AT_ONCE").unwrap().parse().unwrap();
    for begin in (0..count).step_by(at_once) {
        let all = (begin..count.min(begin + at_once)).map(|nth| ask(&transport, nth));
        for (nth, text) in (begin..).zip(futures_util::future::join_all(all).await) {
            assert_eq!(text.unwrap(), format!("0 ended localhost:{port} /base request {nth}"));
        }
    }
    println!("{HEARD}all");
}

/// Sends `count` requests, `at_once` at the same time, each of which is answered.
async fn sends(count: usize, at_once: usize, port: u16, folder: &TempDir) {
    let variables =
        [("PORT", port.to_string()), ("COUNT", count.to_string()), ("AT_ONCE", at_once.to_string())];
    assert_eq!(child("many", &variables, Some(folder.path())).await, ["all"]);
}

#[tokio::test]
async fn a_server_that_offers_http_2_receives_all_requests_on_one_connection() {
    let (port, seen, folder) = serve(HTTP2).await;
    sends(120, 60, port, &folder).await;
    assert_eq!((seen.connections.load(SeqCst), seen.requests.load(SeqCst)), (1, 120));
    assert!(seen.versions.lock().unwrap().iter().all(|version| *version == Version::HTTP_2));
}

#[tokio::test]
async fn a_server_that_offers_http_1_only_receives_http_1() {
    let (port, seen, folder) = serve(Manner { protocols: &["http/1.1"], ..HTTP2 }).await;
    sends(40, 20, port, &folder).await;
    assert_eq!(seen.requests.load(SeqCst), 40);
    assert!(seen.connections.load(SeqCst) <= 21, "{seen:?}");
    assert!(seen.versions.lock().unwrap().iter().all(|version| *version == Version::HTTP_11));
}

#[tokio::test]
async fn a_connection_carries_no_more_requests_than_the_server_allows() {
    let (port, seen, folder) = serve(Manner { most: 8, ..HTTP2 }).await;
    sends(80, 40, port, &folder).await;
    assert_eq!((seen.most.load(SeqCst), seen.requests.load(SeqCst)), (8, 80));
    assert!((2..=10).contains(&seen.connections.load(SeqCst)), "{seen:?}");
}

#[tokio::test]
async fn connections_that_the_server_ends_are_replaced() {
    let (port, seen, folder) = serve(Manner { ends_after: 5, ..HTTP2 }).await;
    sends(23, 1, port, &folder).await;
    assert_eq!(seen.requests.load(SeqCst), 23);
    assert!(seen.connections.load(SeqCst) >= 4, "{seen:?}");
}

#[tokio::test]
#[ignore = "run by other tests, in its own process: whom to trust is said by its environment"]
async fn stops_listening() {
    let transport = transport();
    let endless = format!("https://localhost:{}/endless", std::env::var("PORT").unwrap()).parse().unwrap();
    let mut response =
        transport.ask(Method::GET, Some(&endless), HeaderMap::new(), Bytes::new()).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "more ");
    drop(response);
    // On the same connection: it is open, and the server knows that the response is not read.
    for _ in 0..500 {
        if ask(&transport, 1).await.unwrap().starts_with("1 ended") {
            println!("{HEARD}ended");
            break;
        }
    }
}

#[tokio::test]
async fn a_response_that_is_dropped_ends_and_its_connection_continues() {
    let (port, seen, folder) = serve(HTTP2).await;
    let heard = child("stops_listening", &[("PORT", port.to_string())], Some(folder.path())).await;
    assert_eq!(heard, ["ended"]);
    assert_eq!(seen.connections.load(SeqCst), 1);
}
