//! Requests of programs to the proxy.

use std::io::{self, Read};

use super::allowed::apart;

/// Maximum size of the head of a request in bytes.
const HEAD: usize = 32 * 1024;

/// The beginning of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) host: String,
    pub(super) port: u16,
    /// First bytes for the server; none if the program's bytes are forwarded unchanged.
    pub(super) head: Option<Vec<u8>>,
    /// Bytes that the program sent after the head.
    pub(super) rest: Vec<u8>,
}

impl Request {
    /// # Errors
    /// When it is invalid or too long.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        const END: &[u8] = b"\r\n\r\n";
        let mut bytes: Vec<u8> = Vec::new();
        let mut chunk = [0; 4096];
        // Up to here there is no end: programs can send byte by byte.
        let mut searched = 0;
        let end = loop {
            let rest = bytes.get(searched..).unwrap_or_default();
            if let Some(at) = rest.windows(END.len()).position(|window| window == END) {
                break searched + at;
            }
            searched = bytes.len().saturating_sub(END.len() - 1);
            let count = from.read(&mut chunk)?;
            if count == 0 || bytes.len() > HEAD {
                return Err(io::ErrorKind::InvalidData.into());
            }
            bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
        };
        let rest = bytes.split_off(end + END.len());
        let head = std::str::from_utf8(bytes.get(..end).unwrap_or_default()).ok();
        head.and_then(|head| Self::of(head, rest)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn of(head: &str, rest: Vec<u8>) -> Option<Self> {
        let (first, fields) = head.split_once("\r\n").unwrap_or((head, ""));
        let [method, target, version] = first.split(' ').collect::<Vec<_>>().try_into().ok()?;
        if method == "CONNECT" {
            let (host, port) = apart(target)?;
            return Some(Self { host: host.to_owned(), port: port?, head: None, rest });
        }
        let address =
            target.get(.."http://".len()).filter(|scheme| scheme.eq_ignore_ascii_case("http://"))?;
        let address = target.get(address.len()..)?;
        let (place, path) =
            address.split_at_checked(address.find(['/', '?', '#']).unwrap_or(address.len()))?;
        // A name and a password before the host are for the server, which receives them in a header.
        let (host, port) = apart(place.rsplit_once('@').map_or(place, |(_, host)| host))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut text = format!("{method} {slash}{path} {version}\r\n");
        let own = ["connection", "proxy-connection", "proxy-authorization", "keep-alive"];
        for field in fields.split("\r\n").filter(|field| !field.is_empty()) {
            let name = field.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
            if !own.contains(&&*name) {
                text.push_str(field);
                text.push_str("\r\n");
            }
        }
        // A second request on the same connection might be for another host.
        text.push_str("Connection: close\r\n\r\n");
        Some(Self { host: host.to_owned(), port: port.unwrap_or(80), head: Some(text.into_bytes()), rest })
    }
}
