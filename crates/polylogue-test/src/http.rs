//! Requests to servers that are other processes.

use std::io::{self, BufReader, Write as _};
use std::net::TcpStream;

/// Sends one request with a `token` over a socket of its own, with a `body` of JSON unless it is empty. `fields` are further ones of the
/// head, each with its end of line. Returns the response, as it arrives.
///
/// # Errors
/// When the server cannot be reached.
pub fn send(
    address: &str,
    token: &str,
    (method, path): (&str, &str),
    fields: &str,
    body: &str,
) -> io::Result<BufReader<TcpStream>> {
    let mut socket = TcpStream::connect(address)?;
    let media = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nx-api-key: {token}\r\n\
         {fields}{media}Content-Length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes())?;
    Ok(BufReader::new(socket))
}
