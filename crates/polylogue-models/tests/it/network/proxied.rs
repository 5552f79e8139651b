//! Proxies between.

use polylogue_core::{Fault, ModelErrorKind as Kind};
use polylogue_models::{Config, Endpoint, Env, Proxies};
use polylogue_test::server::{Behavior, Server};

use crate::common::{KEY, config, model, reply, text};
use crate::network::child;
use crate::network::proxy::Proxy;
use crate::network::tls::Tls;

fn proxies<const N: usize>(vars: [(&str, &str); N]) -> Proxies {
    Proxies::of(&Env::of(vars))
}

/// `Basic` and what `me:secret word` is as Base64.
const PASSWORD: &str = "Basic bWU6c2VjcmV0IHdvcmQ=";

#[tokio::test]
async fn a_proxy_receives_the_address_of_a_request() {
    let server = Server::start(Behavior::from("through a proxy")).await;
    let proxy = Proxy::start(Some(server.address())).await;
    let config = Config {
        base_url: "http://model.invalid/v1".into(),
        proxies: proxies([("HTTP_PROXY", &proxy.url())]),
        ..config(&server)
    };
    assert_eq!(text(&reply(&model(config)).await.unwrap()), "through a proxy");
    let head = &proxy.heads()[0];
    assert!(head.starts_with("POST http://model.invalid/v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nhost: model.invalid\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nproxy-authorization: {PASSWORD}\r\n")), "{head}");
    assert_eq!(server.requests()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
}

#[tokio::test]
async fn hosts_that_are_named_and_this_machine_are_reached_directly() {
    let server = Server::start(Behavior::from("directly")).await;
    let proxy = Proxy::start(Some(server.address())).await;
    let url = proxy.url();
    // The address of all interfaces leads here too, but it is none that is known to.
    let somewhere = server.base_url().replace("127.0.0.1", "0.0.0.0");
    for (base_url, proxies, passed) in [
        (&somewhere, proxies([("ALL_PROXY", &url)]), 1),
        (&somewhere, proxies([("all_proxy", &url), ("NO_PROXY", "x.example,0.0.0.0")]), 1),
        (&somewhere, proxies([("HTTPS_PROXY", &url)]), 1),
        (&somewhere, Proxies::none(), 1),
        (&server.base_url(), proxies([("ALL_PROXY", &url)]), 1),
    ] {
        let config = Config { base_url: base_url.clone(), proxies, ..config(&server) };
        assert_eq!(text(&reply(&model(config)).await.unwrap()), "directly");
        assert_eq!(proxy.heads().len(), passed, "{base_url}");
    }
    assert_eq!(server.count(), 5);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_is_encrypted_goes_through_a_tunnel() {
    let server = Server::start(Behavior::from("through a tunnel")).await;
    let tls = Tls::start(server.address(), "model.invalid").await;
    let proxy = Proxy::start(Some(tls.address)).await;
    let (authority, url) = (tls.authority(), proxy.url());
    let vars = [("SSL_CERT_FILE", authority.to_str().unwrap()), ("HTTPS_PROXY", &url)];
    assert_eq!(child::ask("https://model.invalid/v1", &vars).await, "through a tunnel");
    let head = &proxy.heads()[0];
    assert!(head.starts_with("CONNECT model.invalid:443 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nProxy-Authorization: {PASSWORD}\r\n")), "{head}");
    assert!(!head.contains(KEY), "{head}");
    assert_eq!(server.requests()[0].header("proxy-authorization"), None);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let server = Server::start(Behavior::from("never")).await;
    let proxy = Proxy::start(None).await;
    for (scheme, kind, fault) in
        [("http", Kind::Config, Fault::Config), ("https", Kind::Connection, Fault::Provider)]
    {
        let config = Config {
            base_url: format!("{scheme}://model.invalid/v1"),
            proxies: proxies([("ALL_PROXY", &proxy.url())]),
            ..config(&server)
        };
        let model = model(config);
        let error = reply(&model).await.unwrap_err();
        assert_eq!((error.kind, error.fault()), (kind, fault), "{error}");
        assert!(error.hint.as_ref().unwrap().contains("`NO_PROXY`"), "{error:?}");
        assert!(scheme == "http" || error.message.contains(&proxy.shown()), "{error}");
        for shown in [format!("{error:?}"), format!("{model:?}")] {
            assert!(!shown.contains("secret") && !shown.contains(PASSWORD), "{shown}");
        }
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_proxy_of_an_unknown_kind_is_refused_before_anything_is_sent() {
    let server = Server::start(Behavior::from("never")).await;
    let config = Config {
        base_url: "http://model.invalid/v1".into(),
        proxies: proxies([("ALL_PROXY", "socks5://me:secret@127.0.0.1:1")]),
        ..config(&server)
    };
    let error = Endpoint::new(config).unwrap_err();
    assert_eq!(error.fault(), Fault::Config);
    assert!(error.message.contains("`socks5://127.0.0.1:1/`"), "{error}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}
