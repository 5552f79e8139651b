//! Encrypted connections, and whom they are trusted to.

use std::net::Ipv4Addr;

use polylogue_core::{Fault, ModelErrorKind as Kind};
use polylogue_models::Config;
use polylogue_test::server::{Behavior, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::common::{config, model, quick, reply};
use crate::network::child;
use crate::network::tls::Tls;

#[tokio::test]
async fn an_untrusted_certificate_is_refused_before_anything_is_sent() {
    let server = Server::start(Behavior::from("never")).await;
    let tls = Tls::start(server.address(), "127.0.0.1").await;
    let base_url = format!("https://{}/v1", tls.address);
    let config = Config { base_url: base_url.clone(), retries: quick(3), ..config(&server) };
    let error = reply(&model(config)).await.unwrap_err();
    assert_eq!((error.kind, error.fault()), (Kind::Connection, Fault::Provider));
    assert!(error.message.starts_with(&format!("the certificate of {base_url} is not trusted: ")), "{error}");
    assert!(!error.message.contains("tried"), "it is not tried again: {error}");
    assert!(error.hint.unwrap().contains("`SSL_CERT_FILE`"));
    assert_eq!(server.count(), 0);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_certificate_whose_authority_is_named_in_the_environment_is_trusted() {
    let server = Server::start(Behavior::from("over an encrypted connection")).await;
    let tls = Tls::start(server.address(), "127.0.0.1").await;
    let authority = tls.authority();
    let trusting = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    let received = child::ask(&format!("https://{}/v1", tls.address), &trusting).await;
    assert_eq!((received.as_str(), server.count()), ("over an encrypted connection", 1));

    // The same authority vouches for no other name.
    let received = child::ask(&format!("https://localhost:{}/v1", tls.address.port()), &trusting).await;
    assert!(received.contains("is not trusted: ") && received.contains("name"), "{received}");
    assert_eq!(server.count(), 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn without_certificates_the_error_says_how_to_install_them() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let received = child::ask("https://127.0.0.1:1/v1", &[("SSL_CERT_FILE", empty.to_str().unwrap())]).await;
    assert!(received.contains("https://127.0.0.1:1/v1 cannot be trusted: "), "{received}");
    assert!(received.contains("`ca-certificates`"), "{received}");
}

#[tokio::test]
async fn a_server_without_encryption_and_an_unreachable_one_are_different_errors() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let base_url = format!("https://{}/v1", listener.local_addr().unwrap());
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // What the client begins with is read, so that closing does not take the answer back.
        let mut hello = vec![0; 16 << 10];
        let _ = stream.read(&mut hello).await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    });
    let server = Server::start(Behavior::from("never")).await;
    let error = reply(&model(Config { base_url, retries: quick(3), ..config(&server) })).await.unwrap_err();
    plain.await.unwrap();
    assert_eq!(error.kind, Kind::Connection);
    assert!(error.message.contains("does not answer as HTTPS does"), "{error}");
    assert!(error.hint.unwrap().contains("`http://`"));
}
