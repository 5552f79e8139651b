//! A client that sees every byte: blocking, over a bare socket.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Server};
use serde_json::{Value, json};

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Where its header said.
    Whole,
    /// With the connection, too early or without a length.
    Closed,
    /// With an error.
    Reset,
    /// Not within the time the client waits.
    Never,
    /// With something that is not HTTP.
    Garbled,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The sizes of its HTTP chunks.
    pub(crate) chunks: Vec<usize>,
    pub(crate) ended: Ended,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.ended, Ended::Whole, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The chunks of a stream in its regular form: `data: JSON`, an empty line, and `[DONE]` at the end.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.ended, Ended::Whole, "{self:?}");
        assert_eq!(self.header("content-type"), Some("text/event-stream; charset=utf-8"));
        let text = self.text().strip_suffix("data: [DONE]\n\n").unwrap();
        let events = text.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap());
        events.map(|event| serde_json::from_str(event).unwrap()).collect()
    }

    pub(crate) fn deltas(&self) -> Vec<Value> {
        self.events().iter().map(|event| event["choices"][0]["delta"].clone()).collect()
    }

    /// The text of a regular stream.
    pub(crate) fn streamed_text(&self) -> String {
        self.deltas().iter().filter_map(|delta| delta["content"].as_str()).collect()
    }
}

pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// Generous: it is met only where something never comes.
const PATIENCE: Duration = Duration::from_secs(30);

impl Client {
    pub(crate) fn of(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) fn patience(self, patience: Duration) -> Self {
        self.stream.set_read_timeout(Some(patience)).unwrap();
        self
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn post(&mut self, body: &Value) {
        self.post_with(body, "");
    }

    pub(crate) fn post_with(&mut self, body: &Value, headers: &str) {
        self.post_to("/v1/chat/completions", body, headers);
    }

    pub(crate) fn post_to(&mut self, path: &str, body: &Value, headers: &str) {
        let body = body.to_string();
        let length = body.len();
        self.write(
            format!(
                "POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n{headers}\
                 content-length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        );
    }

    pub(crate) fn ask(&mut self, body: &Value) -> Response {
        self.post(body);
        self.response()
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.write(format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n").as_bytes());
        self.response()
    }

    pub(crate) fn response(&mut self) -> Response {
        let mut response =
            Response { head: String::new(), body: Vec::new(), chunks: Vec::new(), ended: Ended::Whole };
        if let Err(ended) = self.read(&mut response) {
            response.ended = ended;
        }
        response
    }

    fn read(&mut self, response: &mut Response) -> Result<(), Ended> {
        response.head = self.until("\r\n\r\n")?;
        if response.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = self.until("\r\n")?;
                let size = usize::from_str_radix(&size, 16).map_err(|_| Ended::Garbled)?;
                self.exactly(size, &mut response.body)?;
                self.until("\r\n")?;
                if size == 0 {
                    return Ok(());
                }
                response.chunks.push(size);
            }
        }
        let length = response.header("content-length").map_or(usize::MAX, |length| length.parse().unwrap());
        self.exactly(length, &mut response.body)
    }

    fn until(&mut self, end: &str) -> Result<String, Ended> {
        loop {
            let found = self.buffer.windows(end.len()).position(|window| window == end.as_bytes());
            if let Some(at) = found {
                let rest = self.buffer.split_off(at + end.len());
                let taken = std::mem::replace(&mut self.buffer, rest);
                return Ok(String::from_utf8(taken[..at].to_vec()).unwrap());
            }
            self.more()?;
        }
    }

    fn exactly(&mut self, length: usize, into: &mut Vec<u8>) -> Result<(), Ended> {
        let goal = into.len().saturating_add(length);
        loop {
            let wanted = (goal - into.len()).min(self.buffer.len());
            into.extend(self.buffer.drain(..wanted));
            if into.len() == goal {
                return Ok(());
            }
            self.more()?;
        }
    }

    /// Reads what is there, or waits for more.
    pub(crate) fn more(&mut self) -> Result<usize, Ended> {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(Ended::Closed),
            Ok(read) => {
                self.buffer.extend(&bytes[..read]);
                Ok(read)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Ended::Never)
            }
            Err(_) => Err(Ended::Reset),
        }
    }

    /// Waits until something comes, and leaves it unread.
    pub(crate) fn peek(&mut self) {
        assert_eq!(self.stream.peek(&mut [0]).unwrap(), 1);
    }

    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
    }

    /// What was read so far and not used.
    pub(crate) fn read_so_far(&self) -> &[u8] {
        &self.buffer
    }
}

pub(crate) fn serve(behavior: impl Into<Behavior>) -> Server {
    Server::bind("127.0.0.1:0".parse().unwrap(), behavior).unwrap()
}

/// A well-formed request.
pub(crate) fn hello() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]})
}

pub(crate) fn streamed() -> Value {
    let mut body = hello();
    body["stream"] = true.into();
    body
}

/// Asks once, of a server that always answers so.
pub(crate) fn once(answer: Answer, body: &Value) -> Response {
    let server = serve(Playbook::always(answer));
    let response = Client::of(&server).ask(body);
    assert_eq!(server.violations(), [""; 0]);
    response
}

/// Asks once for a stream under a quirk.
pub(crate) fn quirky(quirk: Quirk) -> Response {
    once(Answer::text("one two three").with(quirk), &streamed())
}
