//! What clients can take: S12, S13, and rates.

use std::time::Duration;

use polylogue_server::{NewToken, Scope, ServerLimits, ServerOptions};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::client::{Request, Stream};
use crate::conversations::{PATH, begin};
use crate::world::{World, generous, loopback, place};

/// Writes `text` and reads until the server closes the connection.
async fn until_closed(world: &World, text: &str) -> String {
    let mut socket = TcpStream::connect(world.address).await.unwrap();
    socket.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A connection with unread bytes is reset.
    let _ = socket.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn s12_slow_heads_and_bodies_end_while_others_are_served() {
    let time = Duration::from_millis(100);
    let world = World::with(ServerLimits { head_time: time, body_time: time, ..generous() }).await;
    let head = "POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\n";
    let body = format!(
        "{head}Authorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{",
        world.token
    );
    let (of_head, of_body, other) =
        tokio::join!(until_closed(&world, head), until_closed(&world, &body), world.get("/api/v1/teams"));
    assert_eq!(other.status, 200);
    assert!(!of_head.contains("200"), "{of_head}");
    assert!(of_body.starts_with("HTTP/1.1 408"), "{of_body}");
}

#[tokio::test]
async fn s13_a_large_body_is_refused_before_it_is_read() {
    let world = World::with(ServerLimits { body_bytes: 1000, file_bytes: 1000, ..generous() }).await;
    // Only its length is sent.
    for path in ["/api/v1/tokens", "/v1/chat/completions", "/mcp"] {
        let head = world.request("POST", path).header("Content-Type", "application/json");
        let announced = head.header("Content-Length", "1073741824");
        let response = announced.send(world.address).await;
        assert_eq!((response.status, &response.problem()["type"]), (413, &json!("/problems/too-large")));
    }
    // Without a length, it is read up to the limit.
    let chunked = format!(
        "POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n{}\r\n5\r\naaaaa\r\n",
        world.token,
        "a".repeat(1000)
    );
    let mut socket = TcpStream::connect(world.address).await.unwrap();
    socket.write_all(chunked.as_bytes()).await.unwrap();
    assert_eq!(Stream::read_head(BufReader::new(socket)).await.status, 413);
}

/// It sends all of it before it reads.
#[tokio::test]
async fn s13_a_client_that_sends_a_large_body_reads_why_it_is_refused() {
    let world = World::with(ServerLimits { body_bytes: 1000, ..generous() }).await;
    // More than sockets buffer, and less than the server takes.
    let body = vec![b'a'; 6 << 20];
    for (token, status) in [(world.token.as_str(), 413), ("ply_wrong", 401)] {
        let head = format!(
            "POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut socket = TcpStream::connect(world.address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(&body).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

#[tokio::test]
async fn deep_json_and_many_header_fields_are_refused() {
    let world = World::new().await;
    let mut deep = world.request("POST", "/api/v1/tokens").json(&json!({}));
    deep.body = format!("{{\"name\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes();
    let response = world.send(deep).await;
    assert_eq!(response.status, 400);
    assert!(response.problem()["detail"].as_str().unwrap().contains("64 levels"));
    for text in ["", "[]", "{", "null"] {
        let mut request = world.request("POST", "/api/v1/tokens").json(&json!({}));
        request.body = text.into();
        let response = world.send(request).await;
        assert_eq!(response.status, 400, "`{text}`");
        response.problem();
    }
    let fields: String = (0..100_000).map(|n| format!("a{n}: b\r\n")).collect();
    let answer =
        until_closed(&world, &format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(world.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn too_many_requests_and_wrong_tokens_are_refused_for_a_time() {
    let slow = ServerLimits {
        requests_per_second: 1,
        request_burst: 2,
        failed_logins_per_minute: 2,
        ..ServerLimits::default()
    };
    let world = World::with(slow).await;
    let (_, other) = world.new_token("local", &[Scope::Read]);
    for path in ["/api/v1/teams", "/v1/models"] {
        let mut last = world.get(path).await;
        // More of them than a second has.
        while last.status == 200 {
            last = world.get(path).await;
        }
        assert_eq!((last.status, last.header("retry-after")), (429, Some("1")), "{path}");
        last.problem();
    }
    let get = |token: &str| Request::new("GET", "/api/v1/teams").token(token);
    assert_eq!(get(&other).send(world.address).await.status, 200, "each token has its own rate");
    for _ in 0..2 {
        assert_eq!(get("ply_wrong").send(world.address).await.status, 401);
    }
    let response = get("ply_wrong").send(world.address).await;
    assert_eq!(response.status, 429);
    response.problem();
    // Others may share the address, such as that of a proxy.
    let (_, valid) = world.new_token("local", &[Scope::Read]);
    assert_eq!(get(&valid).send(world.address).await.status, 200, "a valid token is never locked out");
    let link = world.tokens().create_link(NewToken::local("page")).unwrap();
    let login = |code: &str| {
        let request = Request::new("POST", "/api/v1/session").json(&json!({"code": code}));
        request.header("Sec-Fetch-Site", "same-origin")
    };
    assert_eq!(login("wrong").send(world.address).await.status, 429);
    assert_eq!(login(link.reveal()).send(world.address).await.status, 201, "and neither is a link");
}

#[tokio::test]
async fn connections_of_one_address_are_counted() {
    let world = World::with(ServerLimits { connections_per_address: 2, ..generous() }).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut socket = TcpStream::connect(world.address).await.unwrap();
        socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        // Served, and kept open.
        let mut first = [0; 12];
        socket.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        open.push(socket);
    }
    let refused = until_closed(&world, "").await;
    assert_eq!(refused, "");
    drop(open);
    // The server has to notice that they are closed.
    loop {
        let mut socket = TcpStream::connect(world.address).await.unwrap();
        let _ = socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        let mut first = [0; 12];
        if socket.read_exact(&mut first).await.is_ok() {
            break;
        }
        tokio::task::yield_now().await;
    }
}

/// A server behind a proxy on this machine, if it trusts `proxies`.
async fn behind_a_proxy(proxies: &[&str], limits: ServerLimits) -> World {
    let dir = tempfile::tempdir().unwrap();
    let trusted_proxies = proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
    let options =
        ServerOptions { trusted_proxies, limits, ..ServerOptions::new(loopback(), place(dir.path())) };
    World::start(dir, options).await
}

#[tokio::test]
async fn limits_on_addresses_are_those_of_the_clients_of_a_trusted_proxy() {
    let limits = || ServerLimits { failed_logins_per_minute: 2, connections_per_address: 1, ..generous() };
    let wrong = async |world: &World, header: &str, from: &str| {
        let request = Request::new("GET", "/api/v1/teams").token("ply_wrong").header(header, from);
        request.send(world.address).await.status
    };
    let world = behind_a_proxy(&["127.0.0.0/8"], limits()).await;
    for _ in 0..2 {
        assert_eq!(wrong(&world, "X-Forwarded-For", "203.0.113.9").await, 401);
    }
    assert_eq!(wrong(&world, "X-Forwarded-For", "203.0.113.9").await, 429);
    assert_eq!(wrong(&world, "Forwarded", "for=203.0.113.9:80;proto=https").await, 429, "the same client");
    assert_eq!(wrong(&world, "X-Forwarded-For", "198.51.100.1").await, 401, "another client");
    // What a client writes in front of its address is not believed.
    assert_eq!(wrong(&world, "X-Forwarded-For", "192.0.2.1, 203.0.113.9").await, 429);
    // The connections of a proxy are those of many clients.
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut socket = TcpStream::connect(world.address).await.unwrap();
        socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut first = [0; 12];
        socket.read_exact(&mut first).await.unwrap();
        open.push(socket);
    }
    // Of each client, its requests are counted, until their responses are sent.
    let id = begin(&world, &json!({"team": "ask"})).await;
    let get = async |from: &str| {
        world.request("GET", PATH).header("X-Forwarded-For", from).send(world.address).await
    };
    for _ in 0..3 {
        assert_eq!(get("203.0.113.7").await.status, 200);
    }
    let stream =
        world.tail_request(&id, 0).header("X-Forwarded-For", "203.0.113.7").open(world.address).await;
    assert_eq!(stream.status, 200);
    let refused = get("203.0.113.7").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{}", refused.body);
    refused.problem();
    assert_eq!(get("203.0.113.8").await.status, 200, "another client");
    drop(stream);
    // Of a server that does not trust its peer, the headers say nothing.
    let world =
        behind_a_proxy(&["10.0.0.0/8"], ServerLimits { connections_per_address: 9, ..limits() }).await;
    for from in ["203.0.113.9", "198.51.100.1"] {
        assert_eq!(wrong(&world, "X-Forwarded-For", from).await, 401);
    }
    assert_eq!(wrong(&world, "X-Forwarded-For", "192.0.2.1").await, 429, "all are of one address");
}
