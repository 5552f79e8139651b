//! Servers of this machine, and everything behind it.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use polylogue_sandbox::Sandbox;

use super::{attempts, bait, held, program};
use crate::{Dir, run, sandbox, text};

attempts! {
    works listening: r"
def listen(domain, address):
    server = socket.socket(domain)
    server.bind(address)
    server.listen()
attempt('all', lambda: listen(socket.AF_INET, ('0.0.0.0', 0)))
attempt('loopback', lambda: listen(socket.AF_INET, ('127.0.0.1', 0)))";
    works asking_the_kernel_about_the_network: r"
attempt('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
attempt('interfaces', lambda: must(len(socket.if_nameindex()) and os.listdir('/sys/class/net')))
attempt('proc', lambda: open('/proc/net/tcp').read())";
    blind names_of_the_internet: r"
attempt('lookup', lambda: socket.getaddrinfo('example.com', 80))
def query(server):
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.sendto(b'\0\1\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1', (server, 53))
for server in ['8.8.8.8', '127.0.0.53', '127.0.0.1']: attempt(server, lambda: query(server))";
    blind raw_sockets: r"
for domain, kind, protocol in [(socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_RAW, 255),
        (socket.AF_INET6, socket.SOCK_RAW, 58), (socket.AF_PACKET, socket.SOCK_RAW, 0x300), (socket.AF_PACKET, socket.SOCK_DGRAM, 0x300)]:
    attempt((domain, kind), lambda: socket.socket(domain, kind, protocol))";
    blind sockets_of_any_family: r"
for domain in range(2, 50):
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET]:
        attempt((domain, kind), lambda: socket.socket(domain, kind))";
    blind sockets_without_the_call_for_them: r"
# By io_uring, whose operations no filter sees.
refused('io_uring_setup', 8, ctypes.create_string_buffer(256))
# A high half of the argument that the kernel does not look at.
attempt('high bits', lambda: must(libc.syscall(ctypes.c_long(41), ctypes.c_long(2 | 1 << 32), ctypes.c_long(1), ctypes.c_long(0)) >= 0)
    if os.uname().machine == 'x86_64' else must(False))";
}

/// Attacks servers that this test made.
fn against(code: &str) {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    bait(&dir.0);
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = dir.0.join("socket");
    let _unix = UnixListener::bind(&path).unwrap();
    let name = format!("polylogue-{}", path.display());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let known = format!(
        "TCP, UDP, PATH, NAME = {}, {}, {:?}, {name:?}\n",
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
        path.display().to_string(),
    );
    let program = program(&dir.0, &format!("{known}{code}"));
    let bare = text(&run(&Sandbox::unsafe_host(sandbox.work()), &program));
    assert!(bare.contains("ESCAPED"), "it does not even work without a sandbox:\n{bare}");
    held(&dir.0, &run(&sandbox, &program));
}

#[test]
fn connecting_to_a_server_of_this_machine() {
    against("attempt('tcp', lambda: socket.create_connection(('127.0.0.1', TCP), 5))");
}

#[test]
fn sending_to_a_server_of_this_machine() {
    against(
        "attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP)))",
    );
}

#[test]
fn sockets_in_the_file_system() {
    against("attempt('unix', lambda: socket.socket(socket.AF_UNIX).connect(PATH))");
}

#[test]
fn sockets_without_a_file() {
    against(
        "
attempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\\0' + NAME))
# Between its own processes sockets are of use.
a, b = socket.socketpair()
a.send(b'x')
assert b.recv(1) == b'x'",
    );
}
