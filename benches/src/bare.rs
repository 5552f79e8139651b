//! The reference: a loop over hyper that keeps its serialized history and appends to it.
//!
//! It does what is necessary and nothing else: two agents, each with its history as bytes; a request is a copy of the
//! history with a closing; it appends the text of a reply to both histories. It has no log, no limits and no retries.

use std::borrow::Cow;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use crate::job::{Cost, Result};
use crate::meter::Meter;

/// The system messages, the same as in Polylogue.
pub(crate) const SYSTEM: &str = "You are one of two who talk. Answer in a few sentences.";
/// The task.
pub(crate) const TASK: &str = "Find out together why the sea is salty.";

/// Runs a number of chats of a number of calls each, one after the other over one connection.
pub(crate) async fn calls(base_url: &str, chats: u64, calls: u64) -> Result<Cost> {
    let mut connection = Connection::open(base_url).await?;
    chat(&mut connection, 2).await?;
    let meter = Meter::start();
    for _ in 0..chats {
        chat(&mut connection, calls).await?;
    }
    Ok(meter.stop())
}

/// Runs a number of chats of one streamed reply each.
pub(crate) async fn pieces(base_url: &str, chats: u64) -> Result<Cost> {
    let mut connection = Connection::open(base_url).await?;
    streamed(&mut connection).await?;
    let meter = Meter::start();
    for _ in 0..chats {
        streamed(&mut connection).await?;
    }
    Ok(meter.stop())
}

async fn chat(connection: &mut Connection, calls: u64) -> Result<()> {
    let mut speaker = History::new();
    let mut listener = History::new();
    for _ in 0..calls {
        let response = connection.send(speaker.request("}")).await?;
        let body = response.into_body().collect().await?.to_bytes();
        let reply: Whole<'_> = serde_json::from_slice(&body)?;
        let message = reply.choices.first().ok_or("a reply without choices")?;
        let words = message.message.content.as_ref().ok_or("a reply without words")?;
        speaker.append("assistant", &words.0)?;
        listener.append("user", &words.0)?;
        std::mem::swap(&mut speaker, &mut listener);
    }
    Ok(())
}

async fn streamed(connection: &mut Connection) -> Result<()> {
    let mut history = History::new();
    let end = r#","stream":true,"stream_options":{"include_usage":true}}"#;
    let mut body = connection.send(history.request(end)).await?.into_body();
    let (mut words, mut rest) = (String::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            rest.extend_from_slice(&data);
            let taken = take_lines(&rest, &mut words)?;
            rest.drain(..taken);
        }
    }
    if words.len() != crate::server::PIECE.len() * crate::job::PIECES {
        return Err(format!("{} characters arrived", words.len()).into());
    }
    history.append("assistant", &words)
}

/// Extracts the text from the complete lines of `bytes`; returns the number of bytes consumed.
fn take_lines(bytes: &[u8], words: &mut String) -> Result<usize> {
    let mut taken = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        let line = bytes.get(taken..end).unwrap_or_default();
        taken = end + 1;
        let Some(data) = line.strip_prefix(b"data: ").filter(|data| *data != b"[DONE]") else { continue };
        let chunk: Chunk<'_> = serde_json::from_slice(data)?;
        if let Some(text) = chunk.choices.first().and_then(|choice| choice.delta.content.as_ref()) {
            words.push_str(&text.0);
        }
    }
    Ok(taken)
}

/// A request body without its closing.
struct History(Vec<u8>);

impl History {
    fn new() -> Self {
        let mut history = Self(br#"{"model":"bench","messages":["#.to_vec());
        // Cannot fail: writing to memory does not.
        let _ = history.append("system", SYSTEM).and_then(|()| history.append("user", TASK));
        history
    }

    fn append(&mut self, role: &str, words: &str) -> Result<()> {
        if self.0.last() == Some(&b'}') {
            self.0.push(b',');
        }
        self.0.extend_from_slice(b"{\"role\":\"");
        self.0.extend_from_slice(role.as_bytes());
        self.0.extend_from_slice(b"\",\"content\":");
        serde_json::to_writer(&mut self.0, words)?;
        self.0.push(b'}');
        Ok(())
    }

    fn request(&self, end: &str) -> Bytes {
        let mut body = Vec::with_capacity(self.0.len() + 1 + end.len());
        body.extend_from_slice(&self.0);
        body.push(b']');
        body.extend_from_slice(end.as_bytes());
        body.into()
    }
}

struct Connection {
    path: String,
    host: String,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    async fn open(base_url: &str) -> Result<Self> {
        let uri: Uri = base_url.parse()?;
        let host = uri.authority().ok_or("the URL has no host")?.to_string();
        let stream = TcpStream::connect(&host).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { path: format!("{}/chat/completions", uri.path()), host, sender })
    }

    async fn send(&mut self, body: Bytes) -> Result<Response<Incoming>> {
        self.sender.ready().await?;
        let request = Request::post(&self.path)
            .header("host", &self.host)
            .header("content-type", "application/json")
            .body(Full::new(body))?;
        Ok(self.sender.send_request(request).await?)
    }
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    choices: Vec<WholeChoice<'a>>,
}

#[derive(Deserialize)]
struct WholeChoice<'a> {
    #[serde(borrow)]
    message: Content<'a>,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<ChunkChoice<'a>>,
}

#[derive(Deserialize)]
struct ChunkChoice<'a> {
    #[serde(borrow)]
    delta: Content<'a>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    content: Option<Text<'a>>,
}

/// Borrowed where nothing is escaped, also within an `Option`, where a `Cow` alone is not.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_a_request_at_any_time() {
        let mut history = History::new();
        history.append("assistant", "a \"word\"").unwrap();
        let body: serde_json::Value = serde_json::from_slice(&history.request("}")).unwrap();
        let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
        assert_eq!(roles, ["system", "user", "assistant"]);
        assert_eq!(body["messages"][2]["content"], "a \"word\"");
    }

    #[test]
    fn words_are_taken_out_of_whole_lines() {
        let mut words = String::new();
        let bytes = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\\n\"}}]}\n\ndata: {\"choices\":[]}\ndata: [DONE]\nda";
        assert_eq!(take_lines(bytes, &mut words).unwrap(), bytes.len() - 2);
        assert_eq!(words, "a\n");
    }
}
