//! A client that sends exactly what a test says, on a connection of its own.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// A request that a test changes before it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        let host = ("Host".to_owned(), "localhost".to_owned());
        Self { method: method.into(), path: path.into(), headers: vec![host], body: Vec::new() }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(set, _)| !set.eq_ignore_ascii_case(name));
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        let request = self.header("Content-Type", "application/json");
        Self { body: body.to_string().into_bytes(), ..request }
    }

    /// Sends it and closes the connection at once.
    pub(crate) async fn leave(&self, address: SocketAddr) {
        drop(self.connect(address).await);
    }

    /// Sends it and reads the head of the response.
    pub(crate) async fn open(&self, address: SocketAddr) -> Stream {
        Stream::read_head(self.connect(address).await).await
    }

    async fn connect(&self, address: SocketAddr) -> BufReader<TcpStream> {
        let mut text = format!("{} {} HTTP/1.1\r\nConnection: close\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() && !text.contains("Content-Length") {
            text += &format!("Content-Length: {}\r\n", self.body.len());
        }
        let mut socket = BufReader::new(TcpStream::connect(address).await.unwrap());
        socket.write_all(text.as_bytes()).await.unwrap();
        socket.write_all(b"\r\n").await.unwrap();
        // A server that refuses the head may close before it has read the body.
        let _ = socket.write_all(&self.body).await;
        socket
    }

    /// Sends it and reads the whole response.
    pub(crate) async fn send(&self, address: SocketAddr) -> Response {
        Response { path: self.path.clone(), ..self.open(address).await.rest().await }
    }
}

/// A frame of an event stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// `comment` for a comment.
    pub(crate) event: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

impl Frame {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_default()
    }
}

/// A response of which only the head was read.
pub(crate) struct Stream {
    socket: BufReader<TcpStream>,
    /// The beginning of a frame.
    rest: String,
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

impl Stream {
    pub(crate) async fn read_head(mut socket: BufReader<TcpStream>) -> Self {
        let mut line = String::new();
        socket.read_line(&mut line).await.unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no response: `{line}`"));
        let status = status.parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            socket.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        Self { socket, rest: String::new(), status, headers }
    }

    async fn rest(mut self) -> Response {
        let mut body = Vec::new();
        if self.headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked") {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        } else {
            self.socket.read_to_end(&mut body).await.unwrap();
        }
        let body = String::from_utf8(body).unwrap();
        Response { path: String::new(), status: self.status, headers: self.headers, body }
    }

    /// The next frame of an event stream; `None` at its end.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        assert_eq!(self.status, 200);
        let text = loop {
            if let Some((text, rest)) = self.rest.split_once("\n\n") {
                let (text, rest) = (text.to_owned(), rest.to_owned());
                self.rest = rest;
                break text;
            }
            let chunk = self.chunk().await?;
            self.rest += std::str::from_utf8(&chunk).unwrap();
        };
        let mut frame = Frame::default();
        for line in text.split('\n') {
            match line.split_once(':').unwrap_or((line, "")) {
                ("", _) => frame.event = "comment".into(),
                ("event", event) => frame.event = event.trim().into(),
                ("id", id) => frame.id = Some(id.trim().into()),
                ("data", data) => frame.data += data.trim_start(),
                ("retry", "" | " 2000") => frame.event = "retry".into(),
                _ => panic!("a line of another kind: {line}"),
            }
        }
        Some(frame)
    }

    /// The next chunk of the body; `None` at its end.
    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        self.socket.read_line(&mut line).await.ok()?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut chunk = vec![0; length + 2];
        self.socket.read_exact(&mut chunk).await.ok()?;
        chunk.truncate(length);
        (length > 0).then_some(chunk)
    }
}

/// A whole response.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    /// Of its request.
    path: String,
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The body of an error. Its form must be that of the protocol that is served at the path.
    pub(crate) fn problem(&self) -> Value {
        let problem = self.json();
        let forms = (problem["jsonrpc"] == "2.0", problem["error"].is_object());
        let expected = match self.path.as_str() {
            // Clients of any protocol look for what is known by these paths.
            path if path.contains("/.well-known/") => (false, false),
            path if path == "/mcp" || path.starts_with("/mcp/") => (true, true),
            path => (false, path.starts_with("/v1/")),
        };
        assert_eq!(forms, expected, "{}: {problem}", self.path);
        if problem["jsonrpc"] == "2.0" {
            // The form of MCP.
            let error = &problem["error"];
            assert!(
                problem["id"].is_null() && error["code"].is_i64() && error["message"].is_string(),
                "{problem}"
            );
            assert_eq!(error["data"]["request_id"].as_str(), self.header("x-request-id"), "{problem}");
            return json!({"type": error["data"]["type"], "detail": error["message"], "hint": error["data"]["hint"], "error": error});
        }
        if let Some(error) = problem["error"].as_object() {
            // The form of OpenAI's API.
            let keys: Vec<&str> = error.keys().map(String::as_str).collect();
            assert_eq!(
                keys.iter().filter(|key| ["message", "type", "param", "code"].contains(key)).count(),
                4
            );
            assert!(keys.len() == 4 && self.header("x-request-id").is_some(), "{problem}");
            let word = error["code"].as_str().unwrap().replace('_', "-");
            return json!({"type": format!("/problems/{word}"), "detail": error["message"], "hint": error["message"], "error": error});
        }
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{problem}");
        assert_eq!(problem["status"], self.status, "{problem}");
        assert_eq!(problem["request_id"].as_str(), self.header("x-request-id"), "{problem}");
        assert!(problem["type"].as_str().unwrap().starts_with("/problems/"), "{problem}");
        assert!(problem["detail"].is_string() && problem["title"].is_string(), "{problem}");
        problem
    }
}
