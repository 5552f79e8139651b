//! One HTTP request, and a response of limited size.

use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use polylogue_http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION,
};
use polylogue_http::{Answer, Client, Method};
use url::Url;

/// A response with the beginning of its body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    /// The target of a redirect.
    pub(crate) location: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) end: End,
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// All of it was read.
    Whole,
    /// It is longer than the limit.
    Cut,
    /// The connection broke, or the body is invalid.
    Broken,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Ask {
    pub(crate) fn get() -> Self {
        Self { method: Method::GET, headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }
}

/// Sends a request to `url`, and reads at most `limit` decompressed bytes of the response.
///
/// # Errors
/// When there is no response; the text is for a model.
pub(crate) async fn ask(client: &Client, url: &Url, ask: Ask, limit: usize) -> Result<Reply, String> {
    let Ask { method, mut headers, body } = ask;
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    let answer = client.send(method, url, headers, body).await.map_err(|why| why.in_words())?;
    let header = |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let packed = header(CONTENT_ENCODING).unwrap_or("identity").trim().to_ascii_lowercase();
    let (content_type, location) =
        (header(CONTENT_TYPE).map(str::to_owned), header(LOCATION).map(str::to_owned));
    let (status, headers) = (answer.status(), answer.headers().clone());
    let unpacker = match packed.as_str() {
        "" | "identity" => Unpacker::Plain(Bounded::new(limit)),
        "gzip" | "x-gzip" => Unpacker::Gzip(Box::new(MultiGzDecoder::new(Bounded::new(limit)))),
        other => return Err(format!("the answer is packed as `{other}`, which was not asked for")),
    };
    let (body, end) = read(answer, unpacker).await;
    Ok(Reply { status, content_type, location, headers, body, end })
}

async fn read(mut answer: Answer, mut unpacker: Unpacker) -> (Vec<u8>, End) {
    let end = loop {
        match answer.chunk().await {
            Ok(Some(piece)) => {
                let fits = unpacker.take(&piece);
                if unpacker.bounded().is_full {
                    break End::Cut;
                } else if !fits {
                    break End::Broken;
                }
            }
            Ok(None) => break End::Whole,
            Err(_) => break End::Broken,
        }
    };
    unpacker.finish(end)
}

/// Decompresses a body.
enum Unpacker {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
}

impl Unpacker {
    fn take(&mut self, piece: &[u8]) -> bool {
        match self {
            Self::Plain(bytes) => bytes.write_all(piece).is_ok(),
            Self::Gzip(decoder) => decoder.write_all(piece).is_ok(),
        }
    }

    fn bounded(&self) -> &Bounded {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Gzip(decoder) => decoder.get_ref(),
        }
    }

    fn finish(self, end: End) -> (Vec<u8>, End) {
        match self {
            Self::Plain(bytes) => (bytes.bytes, end),
            Self::Gzip(mut decoder) => {
                let is_whole = decoder.try_finish().is_ok();
                let bytes = std::mem::take(&mut decoder.get_mut().bytes);
                let end = match end {
                    End::Whole if decoder.get_ref().is_full => End::Cut,
                    End::Whole if !is_whole => End::Broken,
                    end => end,
                };
                (bytes, end)
            }
        }
    }
}

/// A buffer with a maximum size.
#[derive(Debug)]
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    is_full: bool,
}

impl Bounded {
    const fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, is_full: false }
    }
}

impl io::Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let room = self.limit.saturating_sub(self.bytes.len());
        let fitting = piece.get(..room).unwrap_or(piece);
        self.bytes.extend_from_slice(fitting);
        if fitting.len() < piece.len() {
            self.is_full = true;
            return Err(io::Error::other("there is no more room"));
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A status with its reason, such as `404 Not Found`.
pub(crate) fn status_in_words(status: u16) -> String {
    polylogue_http::StatusCode::from_u16(status)
        .map_or_else(|_| status.to_string(), |status| status.to_string())
}
