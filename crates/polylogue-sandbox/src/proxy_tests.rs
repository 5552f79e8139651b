//! What a proxy takes for a request, and where it leads.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::request::Request;
use super::{Allowed, Proxy};

fn allowed(hosts: &[&str]) -> Allowed {
    Allowed::of(&hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>()).unwrap()
}

fn why(hosts: &[&str], host: &str, port: u16) -> String {
    allowed(hosts).connect(host, port, Duration::from_secs(5)).map(drop).unwrap_err()
}

#[test]
fn hosts_are_named_in_three_ways() {
    for wrong in
        ["", "*", "*.", "https://example.org", "example.org/x", "a b", "example.org:", "example.org:0", "a:b"]
    {
        let error = Allowed::of(&[wrong.to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{wrong}` is not a valid host name")), "{error}");
    }
    for right in ["example.org", "*.example.org", "example.org:8080", "127.0.0.1:80", "[::1]:8080", "::1"] {
        allowed(&[right]);
    }
}

#[test]
fn others_are_refused_before_any_agent_is_asked() {
    let hosts = ["example.org", "*.example.com", "example.net:8080"];
    for (host, port) in [
        ("example.org.evil.test", 443),
        ("evil-example.org", 443),
        ("sub.example.org", 443),
        ("example.org", 22),
        ("example.com", 443),
        ("xexample.com", 443),
        (".example.com", 443),
        ("example.net", 443),
        ("127.0.0.1", 443),
    ] {
        let why = why(&hosts, host, port);
        assert!(why.contains("is not among the hosts that code may reach: `example.org`, `*.example.com`, `example.net:8080`"), "{why}");
    }
}

#[test]
fn names_lead_to_the_internet_only() {
    let rule = allowed(&["example.org"]);
    let leads = |address: &str| rule.rule("example.org", 443).unwrap().leads_to(address.parse().unwrap());
    for inner in [
        "127.0.0.1", "127.9.9.9", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "255.255.255.255", "224.0.0.1", "198.18.0.1", "::1", "::", "fe80::1", "fd00::1",
        "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::7f00:1",
        "2001:db8::1",
    ] {
        assert!(!leads(inner), "{inner}");
    }
    for public in ["93.184.216.34", "1.1.1.1", "2606:2800:220:1::1", "::ffff:1.1.1.1"] {
        assert!(leads(public), "{public}");
    }
}

#[test]
fn what_is_inside_is_reached_only_by_its_address() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    assert!(allowed(&[&address]).connect("127.0.0.1", port, Duration::from_secs(5)).is_ok());
    assert!(
        allowed(&[&format!("localhost:{port}")]).connect("LOCALHOST.", port, Duration::from_secs(5)).is_ok()
    );
    let below = why(&[&format!("*.0.0.1:{port}")], "127.0.0.1", port);
    assert!(below.contains("leads to this machine or a private network"), "{below}");
}

#[test]
fn requests_are_read() {
    let read = |text: &str| Request::read(&mut text.as_bytes()).ok();
    let connect = read("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\nhello").unwrap();
    assert_eq!(
        (&*connect.host, connect.port, connect.head, &*connect.rest),
        ("example.org", 443, None, &b"hello"[..])
    );
    let get = read("GET http://user@example.org:81/a?b HTTP/1.1\r\nHost: example.org\r\nProxy-Connection: x\r\nA: b\r\n\r\n").unwrap();
    let head = String::from_utf8(get.head.unwrap()).unwrap();
    assert_eq!((&*get.host, get.port), ("example.org", 81));
    assert_eq!(head, "GET /a?b HTTP/1.1\r\nHost: example.org\r\nA: b\r\nConnection: close\r\n\r\n");
    assert_eq!(
        read("GET http://example.org HTTP/1.0\r\n\r\n").unwrap().head.unwrap(),
        b"GET / HTTP/1.0\r\nConnection: close\r\n\r\n"
    );
    let long = format!("GET http://example.org/ HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(100_000));
    for wrong in [
        "",
        "GET / HTTP/1.1\r\n\r\n",
        "CONNECT example.org HTTP/1.1\r\n\r\n",
        "GET ftp://example.org/ HTTP/1.1\r\n\r\n",
        "\r\n\r\n",
        "é\r\n\r\n",
        "GET http://example.org/ HTTP/1.1\r\n",
        &*long,
    ] {
        assert_eq!(read(wrong), None, "{wrong:.50}");
    }
}

/// A program that sends one byte at a time.
struct Slowly<'a>(&'a [u8]);

impl Read for Slowly<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Read::by_ref(&mut self.0).take(1).read(into)
    }
}

#[test]
fn a_request_can_come_byte_by_byte() {
    let request =
        Request::read(&mut Slowly(b"CONNECT example.org:443 HTTP/1.1\r\nA: b\r\n\r\nrest")).unwrap();
    assert_eq!((&*request.host, request.port, &*request.rest), ("example.org", 443, &b""[..]));
}

#[test]
fn a_connection_that_is_made_while_the_proxy_ends_is_closed() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let both = || [(); 2].map(|()| TcpStream::connect(server.local_addr().unwrap()).unwrap());
    let proxy = Proxy::start(TcpListener::bind("127.0.0.1:0").unwrap(), allowed(&[])).unwrap();
    let shared = Arc::clone(&proxy.shared);
    assert_eq!(shared.add(both()), Some(0));
    drop(proxy);
    assert_eq!(shared.add(both()), None);
}
