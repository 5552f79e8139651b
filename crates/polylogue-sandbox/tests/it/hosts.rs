//! A network of hosts that were named, and of nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use polylogue_sandbox::{Cancellation, ExitReason, Limits, Network, Sandbox};

use crate::{Dir, python, run, sandbox, text};

/// A server that says over which path it was asked, and of which host.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut first = String::new();
            if reader.read_line(&mut first).is_err() {
                continue;
            }
            let text = format!("asked: {}", first.trim());
            let reply = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
            drop(reader.get_mut().write_all(reply.as_bytes()));
        }
    });
    port
}

fn reaching(sandbox: Sandbox, hosts: &[String]) -> Sandbox {
    sandbox.network(Network::Hosts(hosts.to_vec()))
}

const FETCH: &str = r"
import urllib.request, urllib.error
def fetch(url):
    try: print(urllib.request.urlopen(url, timeout=20).read().decode())
    except urllib.error.HTTPError as error: print(error.code, error.read().decode().strip())
    except OSError as error: print('failed', error)
";

#[test]
fn a_host_that_was_named_is_reached() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let port = server();
    let sandbox = reaching(sandbox, &[format!("localhost:{port}")]);
    assert_eq!(sandbox.warning(), None);
    let ended = run(&sandbox, &python(&format!("{FETCH}\nfetch('http://localhost:{port}/a?b')")));
    assert_eq!((ended.how, &*text(&ended)), (ExitReason::Exited(0), "asked: GET /a?b HTTP/1.1\n"));
}

#[test]
fn a_tunnel_leads_to_a_host_that_was_named() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let port = server();
    let sandbox = reaching(sandbox, &[format!("127.0.0.1:{port}")]);
    let code = format!(
        r"
import http.client
connection = http.client.HTTPConnection('127.0.0.1', 3128)
connection.set_tunnel('127.0.0.1', {port})
connection.request('GET', '/tunnel')
print(connection.getresponse().read().decode())"
    );
    assert_eq!(text(&run(&sandbox, &python(&code))), "asked: GET /tunnel HTTP/1.1\n");
}

#[test]
fn no_other_host_is_reached() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let (port, other) = (server(), server());
    let sandbox = reaching(sandbox, &[format!("localhost:{port}"), "example.org".into()]);
    let code = format!(
        r"{FETCH}
import socket
fetch('http://localhost:{other}/')
fetch('http://127.0.0.1:{port}/')
fetch('http://169.254.169.254/latest/meta-data')
def attempt(what, action):
    try: print('ESCAPED', what, action())
    except OSError as error: print('stopped', what)
for port in [{port}, {other}, 22, 53]:
    attempt('direct', lambda: socket.create_connection(('127.0.0.1', port), 5))
for address in ['1.1.1.1', '10.0.0.1', '169.254.169.254', '::ffff:1.1.1.1']:
    attempt(address, lambda: socket.create_connection((address, 80), 5))
    attempt(address, lambda: socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (address, 53)))
attempt('name', lambda: socket.getaddrinfo('localhost.example.org', 80))
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
attempt('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
# In its own network a program may listen and connect as it likes.
server = socket.create_server(('127.0.0.1', 0))
socket.create_connection(server.getsockname()).close()
print('done')"
    );
    let output = text(&run(&sandbox, &python(&code)));
    let lines: Vec<_> = output.lines().collect();
    assert!(
        lines[0].starts_with(&format!("403 `localhost` at port {other} is not among the hosts")),
        "{output}"
    );
    assert!(
        lines[1].starts_with(&format!("403 `127.0.0.1` at port {port} is not among the hosts")),
        "{output}"
    );
    assert!(lines[2].starts_with("403 `169.254.169.254` at port 80"), "{output}");
    assert!(output.ends_with("done\n") && !output.contains("ESCAPED"), "{output}");
}

#[test]
fn certificates_are_readable_and_private_keys_are_not() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let code = "import os, ssl\nprint([p for p in ['/etc/ssl/private', '/etc/pki/tls/private', '/etc/resolv.conf', '/etc/hosts', '/etc/shadow'] if os.path.exists(p)])\nprint(os.path.isdir('/etc/ssl/certs'))";
    let there = std::path::Path::new("/etc/ssl/certs").is_dir();
    let expected = format!("[]\n{}\n", if there { "True" } else { "False" });
    assert_eq!(text(&run(&reaching(sandbox, &["example.org".into()]), &python(code))), expected);
}

#[test]
fn an_invalid_request_to_the_proxy_is_answered() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let code = r"
import os, socket
for text in [b'\0' * 100 + b'\r\n\r\n', b'GET / HTTP/1.1\r\n\r\n', b'x' * 100000, b'CONNECT localhost HTTP/1.1\r\n\r\n']:
    with socket.create_connection(('127.0.0.1', 3128), 20) as proxy:
        try:
            proxy.sendall(text)
            print(proxy.recv(100).split(b'\r\n')[0].decode())
        except ConnectionError: print('HTTP/1.1 400 Bad Request')";
    let output = text(&run(&reaching(sandbox, &["example.org".into()]), &python(code)));
    assert_eq!(output, "HTTP/1.1 400 Bad Request\n".repeat(4));
}

#[test]
fn connections_end_with_their_program() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let limits = Limits { time: Duration::from_secs(1), ..*sandbox.limits() };
    let sandbox = reaching(sandbox, &[format!("127.0.0.1:{port}")]).limited(limits);
    let code = format!(
        "import socket, time\ns = socket.create_connection(('127.0.0.1', 3128))\ns.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n')\ns.recv(100)\ntime.sleep(60)"
    );
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0);
        });
        assert_eq!(run(&sandbox, &python(&code)).how, ExitReason::TimedOut);
    });
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_invalid_host_is_refused_before_the_run() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let sandbox = reaching(sandbox, &["https://example.org".into()]);
    let error = sandbox.run(&python(""), &Cancellation::new()).unwrap_err().to_string();
    assert!(error.starts_with("`https://example.org` is not a valid host name"), "{error}");
}
