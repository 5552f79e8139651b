//! Encrypted requests to addresses that others name: whom the other side is, and where the connection goes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod certificates;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use polylogue_http::{Client, HeaderMap, Method, NetworkAccess};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use certificates::{HEARD, certified, child};

/// A server that says hello, with a certificate for `name`: its port, and the certificate of its authority as a file.
async fn server(name: &str) -> (u16, TempDir) {
    let (config, folder) = certified(name);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust the certificate hangs up.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
            let _ = stream.shutdown().await;
        }
    });
    (port, folder)
}

/// What a child that trusts `authority` hears at `port`.
async fn received(port: u16, authority: Option<&TempDir>) -> String {
    let folder = authority.map(TempDir::path);
    child("asks", &[("PORT", port.to_string())], folder).await.remove(0)
}

#[tokio::test]
#[ignore = "run by other tests, in its own process: whom to trust is said by its environment"]
async fn asks() {
    let port = std::env::var("PORT").unwrap();
    let reach = NetworkAccess::public().allowing([format!("site.example:{port}").parse().unwrap()]);
    let client = Client::new(reach).host("site.example", [IpAddr::from(Ipv4Addr::LOCALHOST)]);
    let url = format!("https://site.example:{port}/").parse().unwrap();
    match client.send(Method::GET, &url, HeaderMap::new(), Vec::new().into()).await {
        Ok(mut answer) => {
            let piece = answer.chunk().await.unwrap().unwrap();
            println!("{HEARD}{} {}", answer.status(), String::from_utf8_lossy(&piece));
        }
        Err(error) => println!("{HEARD}{}", error.in_words()),
    }
}

#[tokio::test]
async fn a_certificate_has_to_be_trusted_and_to_be_that_of_the_name() {
    let (port, authority) = server("site.example").await;
    assert_eq!(received(port, Some(&authority)).await, "200 hello");
    let (strange, _) = server("site.example").await;
    let refused = received(strange, Some(&authority)).await;
    assert!(refused.starts_with("connecting failed: invalid peer certificate"), "{refused}");
    // The name counts, and not the address that it stands for.
    let (other, authority) = server("other.example").await;
    let refused = received(other, Some(&authority)).await;
    assert!(
        refused.contains("invalid peer certificate: certificate not valid for name \"site.example\""),
        "{refused}"
    );
}
