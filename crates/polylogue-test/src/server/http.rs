//! The server's end of HTTP/1.1: reading requests.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Room for every header a client of ours sends, many times over.
const MAX_HEAD: usize = 64 * 1024;
/// As large as the largest conversation in a test, pictures included.
const MAX_BODY: usize = 256 * 1024 * 1024;
/// How much is read at once.
const READ: usize = 16 * 1024;

/// Why there is no request.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The client closed the connection, having read everything.
    Closed,
    /// The connection broke: the client went without reading everything.
    Broken,
    /// What came is not a request that this server understands.
    Bad(u16, &'static str),
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// A request's header, unparsed.
#[derive(Debug)]
pub(super) struct Head(String);

impl Head {
    /// Method, path and version.
    pub(super) fn request_line(&self) -> Option<(&str, &str, &str)> {
        let mut words = self.0.lines().next()?.split(' ');
        Some((words.next()?, words.next()?, words.next()?))
    }

    /// Names and values.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name, value.trim()))
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.fields().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Whether the client wants the connection closed after the response.
    pub(super) fn closes(&self) -> bool {
        let old = self.request_line().is_some_and(|(_, _, version)| version == "HTTP/1.0");
        match self.field("connection") {
            Some(value) if value.eq_ignore_ascii_case("close") => true,
            Some(value) if value.eq_ignore_ascii_case("keep-alive") => false,
            _ => old,
        }
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.field(name).is_some_and(|known| known.eq_ignore_ascii_case(value))
    }
}

/// A connection of a client.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    /// What was read and not used.
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) const fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Returns when the client has closed its end.
    pub(super) async fn gone(&mut self) {
        // A client that sends without reading is detected by a full buffer.
        while self.buffer.len() < MAX_HEAD && matches!(self.fill().await, Ok(read) if read > 0) {}
    }

    /// Closes the connection so that the client gets everything that was written.
    pub(super) async fn close(&mut self) -> Result<(), ReadError> {
        self.stream.shutdown().await?;
        loop {
            self.buffer.clear();
            if self.fill().await? == 0 {
                return match self.end() {
                    ReadError::Closed => Ok(()),
                    broken => Err(broken),
                };
            }
        }
    }

    /// What the end of the connection means. A client that went before everything was sent to it has ended the
    /// connection in good order, as far as reading goes; that it refused the rest shows only in the socket's error.
    fn end(&self) -> ReadError {
        match self.stream.take_error() {
            Ok(None) if self.buffer.is_empty() => ReadError::Closed,
            _ => ReadError::Broken,
        }
    }

    /// Breaks the connection: the client gets an error, and what it has not read is lost.
    pub(super) fn reset(self) {
        // It fails only on a socket that is broken already, which is what is wanted.
        let _ = self.stream.set_zero_linger();
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.buffer.reserve(READ);
        self.stream.read_buf(&mut self.buffer).await
    }

    /// Reads more; the end of the connection is an error here.
    async fn more(&mut self) -> Result<(), ReadError> {
        if self.fill().await? == 0 { Err(ReadError::Broken) } else { Ok(()) }
    }

    /// The header of the next request.
    pub(super) async fn head(&mut self) -> Result<Head, ReadError> {
        let mut searched: usize = 0;
        loop {
            let unsearched = self.buffer.get(searched..).unwrap_or_default();
            if let Some(at) = unsearched.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = self.take(searched + at);
                self.take(4);
                let head =
                    String::from_utf8(head).map_err(|_| ReadError::Bad(400, "the header is not text"))?;
                return Ok(Head(head));
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(ReadError::Bad(400, "the header is too long"));
            }
            searched = self.buffer.len().saturating_sub(3);
            if self.fill().await? == 0 {
                return Err(self.end());
            }
        }
    }

    /// The body that belongs to `head`.
    pub(super) async fn body(&mut self, head: &Head) -> Result<Vec<u8>, ReadError> {
        if head.is("expect", "100-continue") {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        if head.is("transfer-encoding", "chunked") {
            return self.chunked().await;
        }
        match head.field("content-length").map(str::parse) {
            None => Ok(Vec::new()),
            Some(Ok(length)) => self.exactly(length).await,
            Some(Err(_)) => Err(ReadError::Bad(400, "`content-length` is not a number")),
        }
    }

    async fn chunked(&mut self) -> Result<Vec<u8>, ReadError> {
        let mut body = Vec::new();
        loop {
            let line = self.line().await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16);
            let size = size.map_err(|_| ReadError::Bad(400, "the size of a chunk is not a number"))?;
            if size == 0 {
                break;
            }
            body.extend(self.exactly(size).await?);
            if body.len() > MAX_BODY {
                return Err(ReadError::Bad(413, "the body is too large"));
            }
            self.line().await?;
        }
        // Trailers, up to the empty line.
        while !self.line().await?.is_empty() {}
        Ok(body)
    }

    async fn line(&mut self) -> Result<String, ReadError> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line = self.take(end);
                self.take(2);
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(ReadError::Bad(400, "a line is too long"));
            }
            self.more().await?;
        }
    }

    async fn exactly(&mut self, length: usize) -> Result<Vec<u8>, ReadError> {
        if length > MAX_BODY {
            return Err(ReadError::Bad(413, "the body is too large"));
        }
        while self.buffer.len() < length {
            self.more().await?;
        }
        Ok(self.take(length))
    }

    /// Takes the first `length` bytes, or all that there are.
    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(length.min(self.buffer.len()));
        std::mem::replace(&mut self.buffer, rest)
    }
}
