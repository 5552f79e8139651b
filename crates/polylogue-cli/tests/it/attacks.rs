//! What clients do to a server that is on a network: its memory stays flat, and others are served. S12, S13, S22, S23.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::home::{Home, until};
use crate::serving::{Serving, TEAM};

/// More than a server may take in addition, whatever its clients send.
const GROWTH_KIB: u64 = 48 * 1024;

/// The most that a client gets rid of before the server has closed the connection: what sockets of this machine buffer.
const BUFFERED: usize = 64 << 20;

fn connect(serving: &Serving) -> TcpStream {
    let socket = TcpStream::connect(serving.address()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

/// The response to a head and as much of what follows as the server takes, and how much that was.
fn attack(serving: &Serving, head: &str, piece: &[u8], pieces: usize) -> (String, usize) {
    let mut socket = connect(serving);
    let mut sent = 0;
    if socket.write_all(head.as_bytes()).is_ok() {
        for _ in 0..pieces {
            match socket.write_all(piece) {
                Ok(()) => sent += piece.len(),
                Err(_) => break,
            }
        }
    }
    let mut response = Vec::new();
    // A connection with unread bytes is reset, possibly before the response is read.
    let _ = socket.read_to_end(&mut response);
    (String::from_utf8_lossy(&response).into_owned(), sent)
}

fn head(serving: &Serving, fields: &str) -> String {
    let (host, token) = (serving.address(), serving.token());
    format!("POST /api/v1/conversations HTTP/1.1\r\nHost: {host}\r\nx-api-key: {token}\r\n{fields}\r\n")
}

#[test]
fn s13_large_deep_and_endless_requests_leave_memory_flat_and_others_served() {
    let home = Home::new();
    let serving = Serving::of(&home, home.file("pair.yaml", TEAM), true);
    // What any server needs for its first requests is not counted.
    assert!(serving.get("/api/v1/teams", serving.token()).contains("pair"));
    let before = serving.peak_kib();
    let json = "Content-Type: application/json\r\n";
    let mebibyte = vec![b'a'; 1 << 20];
    for _ in 0..5 {
        let announced = head(&serving, &format!("{json}Content-Length: 1073741824\r\n"));
        let (response, sent) = attack(&serving, &announced, &mebibyte, 1024);
        assert!(
            sent <= BUFFERED && (response.is_empty() || response.starts_with("HTTP/1.1 413")),
            "{sent} {response}"
        );
        // A body without a length, in pieces of a mebibyte.
        let endless = head(&serving, &format!("{json}Transfer-Encoding: chunked\r\n"));
        let piece = [b"100000\r\n", mebibyte.as_slice(), b"\r\n"].concat();
        let (response, sent) = attack(&serving, &endless, &piece, 1024);
        assert!(
            sent <= BUFFERED && (response.is_empty() || response.starts_with("HTTP/1.1 413")),
            "{sent} {response}"
        );
        let deep = "[".repeat(500_000);
        let of_deep = head(&serving, &format!("{json}Content-Length: {}\r\n", deep.len()));
        let (response, _) = attack(&serving, &of_deep, deep.as_bytes(), 1);
        assert!(response.starts_with("HTTP/1.1 400") && response.contains("64 levels"), "{response}");
        let fields: String = (0..100_000).map(|n| format!("a{n}: b\r\n")).collect();
        let (response, _) = attack(&serving, &head(&serving, &fields), b"", 0);
        assert!(!response.starts_with("HTTP/1.1 2"), "{response}");
        let endless_head = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nx: ", serving.address());
        let (response, sent) = attack(&serving, &endless_head, &mebibyte, 1024);
        assert!(sent <= BUFFERED && !response.starts_with("HTTP/1.1 2"), "{sent} {response}");
        assert!(serving.get("/healthz", "").starts_with("HTTP/1.1 200"));
    }
    let grown = serving.peak_kib().saturating_sub(before);
    assert!(grown < GROWTH_KIB, "{grown} KiB more");
    assert_eq!(serving.end().0, Some(0));
}

#[test]
fn s12_s22_sockets_that_say_half_of_it_or_take_nothing_leave_others_served() {
    let home = Home::new();
    let serving = Serving::of(&home, home.file("pair.yaml", TEAM), true);
    let begin =
        head(&serving, "Content-Type: application/json\r\nConnection: close\r\nContent-Length: 15\r\n");
    let (begun, _) = attack(&serving, &begin, br#"{"team":"pair"}"#, 1);
    assert!(begun.starts_with("HTTP/1.1 201"), "{begun}");
    let id = begun.split_once("\"id\":\"").unwrap().1.split('"').next().unwrap().to_owned();
    let before = serving.peak_kib();
    let mut open = Vec::new();
    for n in 0..48 {
        let mut socket = connect(&serving);
        let text = match n % 4 {
            // Nothing, half a head, half a body, and a stream that no one reads.
            0 => String::new(),
            1 => format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nx-half", serving.address()),
            2 => head(&serving, "Content-Type: application/json\r\nContent-Length: 15\r\n") + "{\"te",
            _ => format!(
                "GET /api/v1/conversations/{id}/events HTTP/1.1\r\nHost: {}\r\nx-api-key: {}\r\nAccept: text/event-stream\r\n\r\n",
                serving.address(),
                serving.token()
            ),
        };
        socket.write_all(text.as_bytes()).unwrap();
        open.push(socket);
    }
    // Within the limit of one address, others are served meanwhile.
    for _ in 0..10 {
        assert!(serving.get("/healthz", "").starts_with("HTTP/1.1 200"));
    }
    // Those that have not said what they want are closed in time, though they stay open here.
    until("half a head is closed", || {
        open[1].set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        !is_waiting(&mut open[1])
    });
    let grown = serving.peak_kib().saturating_sub(before);
    assert!(grown < GROWTH_KIB, "{grown} KiB more");
    drop(open);
    assert_eq!(serving.end().0, Some(0));
}

/// How many clients read one conversation at the same time.
const READERS: u64 = 200;

/// More than the server may hold for each of them.
const READER_KIB: u64 = 512;

/// How long the replies in the conversation are, and how many. The log is longer than what sockets of this machine buffer of a reader that
/// stops, and each byte of a reply is stored twice: as what the model replied, and as the message.
const REPLY: usize = 64 << 10;
const REPLIES: usize = 48;

/// The rest of a tail until its end.
fn rest_of(tail: &mut TcpStream) -> String {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let count = tail.read(&mut piece).unwrap();
        assert_ne!(count, 0, "it is cut off");
        bytes.extend_from_slice(&piece[..count]);
        let end = bytes.len().saturating_sub(count + 4096);
        if bytes[end..].windows(12).any(|part| part == b"\nevent: end\n") {
            return String::from_utf8(bytes).unwrap();
        }
    }
}

#[test]
fn s23_two_hundred_readers_of_a_long_run_leave_memory_flat_and_see_one_order() {
    let home = Home::new();
    let script: String =
        (0..REPLIES).map(|n| format!("  - Ann: '{n} {}'\n", "word ".repeat(REPLY / 5))).collect();
    let team = format!(
        "name: long\ntask: Write.\nagents: [{{name: Ann}}]\n\
         chat: {{participants: [Ann], pattern: round_robin, stop: {{max_turns: {REPLIES}}}, loop_detection: 'off'}}\n\
         script:\n{script}"
    );
    let limits = ["connections_per_address=300", "streams_per_token=300", "request_burst=1000"];
    let mut args = vec![home.file("long.yaml", &team), "--offline", "--listen", "127.0.0.1:0"];
    args.extend(limits.into_iter().flat_map(|limit| ["--limit", limit]));
    let serving = Serving::with(&home, &args, true);
    let begin =
        head(&serving, "Content-Type: application/json\r\nConnection: close\r\nContent-Length: 15\r\n");
    let (begun, _) = attack(&serving, &begin, br#"{"team":"long"}"#, 1);
    let id = begun.split_once("\"id\":\"").unwrap().1.split('"').next().unwrap();
    let path = format!("/api/v1/conversations/{id}");
    until("it has ended", || serving.get(&path, serving.token()).contains("\"state\":\"closed\""));
    let open = || {
        let mut socket = connect(&serving);
        let (host, token) = (serving.address(), serving.token());
        let fields = format!("Host: {host}\r\nx-api-key: {token}\r\nAccept: text/event-stream\r\n\r\n");
        socket.write_all(format!("GET {path}/events HTTP/1.1\r\n{fields}").as_bytes()).unwrap();
        socket
    };
    let ids = |text: &str| {
        let ids = text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok());
        ids.collect::<Vec<usize>>()
    };
    // What the server needs for one reader is not counted.
    let whole = ids(&rest_of(&mut open()));
    assert!(whole.len() > 3 * REPLIES && (0..).zip(&whole).all(|(seq, id)| seq == *id), "{whole:?}");
    let before = serving.peak_kib();
    let mut tails: Vec<TcpStream> = (0..READERS).map(|_| open()).collect();
    for tail in &mut tails {
        let mut status = [0; 12];
        tail.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
    }
    // The first and the last are read to the end, while the others take nothing.
    let (first, last) = (rest_of(&mut tails[0]), rest_of(tails.last_mut().unwrap()));
    assert!(ids(&first) == whole && ids(&last) == whole);
    let grown = serving.peak_kib().saturating_sub(before);
    assert!(grown < READERS * READER_KIB, "{grown} KiB more");
    drop(tails);
    assert_eq!(serving.end().0, Some(0));
}

/// Whether the connection is open, and nothing has come.
fn is_waiting(socket: &mut TcpStream) -> bool {
    let read = socket.read(&mut [0; 1]);
    read.is_err_and(|error| {
        matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
    })
}
