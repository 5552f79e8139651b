//! What the fuzz targets call: compiled by `cargo fuzz` only.

use polylogue_core::{
    DeltaRef, DeltaSink, EncodeCache, ModelError, Name, Origin, Params, Part, Path, Request,
};
use polylogue_http::{HeaderMap, Redactor};

use crate::api::Api;
use crate::failure::{ErrorContext, Refusal};
use crate::protocols::with_protocol;
use crate::wire::decode::Decoder;
use crate::wire::draft::{DecodeError, Decoded};
use crate::wire::protocol::Protocol;

/// All APIs.
pub const APIS: &[Api] =
    &[Api::ChatCompletions, Api::Responses, Api::Messages, Api::Gemini, Api::Converse, Api::Ollama];

/// A key that no error may show.
pub const KEY: &str = "sk-this-key-is-never-shown";

/// The reply of `api` to an empty conversation, streamed as `bytes` in pieces of `size` bytes.
///
/// # Panics
/// When the pieces that were shown are not the text of the reply.
pub fn streamed(api: Api, bytes: &[u8], size: usize) -> String {
    with_protocol!(api, P => stream::<P>(bytes, size))
}

/// The lines of `text` as a stream of frames with checksums, which no fuzzer would guess: the type of the event, a space,
/// and the payload.
#[must_use]
pub fn frames(text: &[u8]) -> Vec<u8> {
    let line = |line: &[u8]| {
        let (kind, payload) = line.split_at(line.iter().position(|&byte| byte == b' ').unwrap_or(line.len()));
        let kind = String::from_utf8_lossy(kind);
        let message = if kind.ends_with("Exception") { "exception" } else { "event" };
        encoded(&[(":message-type", message), (&format!(":{message}-type"), &kind)], payload)
    };
    text.split(|&byte| byte == b'\n').flat_map(line).collect()
}

fn encoded(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        let value = value.as_bytes();
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        head.push(name.len() as u8);
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&(value.len() as u16).to_be_bytes());
        head.extend_from_slice(value);
    }
    let mut bytes = ((16 + head.len() + payload.len()) as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(&(head.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend_from_slice(&head);
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

/// The reply of `api` whose whole body is `bytes`.
pub fn whole(api: Api, bytes: &[u8]) -> String {
    with_protocol!(api, P => body::<P>(bytes))
}

/// The error that `api` reports with `status` and `body`.
#[must_use]
pub fn refused(api: Api, status: u16, body: &[u8]) -> ModelError {
    let redactor = Redactor::new([KEY]);
    let context = ErrorContext {
        model: "provider:model",
        api,
        base_url: "http://127.0.0.1:1",
        has_key: true,
        key_variables: &[],
        proxy: None,
        redactor: &redactor,
    };
    let headers = HeaderMap::new();
    context.refused(&Refusal { status, headers: &headers, body, is_cut: false }).error
}

fn stream<P: Protocol>(bytes: &[u8], size: usize) -> String {
    with_request(|request| {
        let mut shown = Shown::default();
        let mut decoder = Decoder::<P>::default();
        for piece in bytes.chunks(size.max(1)) {
            if let Err(error) = decoder.feed(piece, &mut shown) {
                return format!("{error:?}");
            }
        }
        let decoded = decoder.finish(request, &mut shown);
        shown.check(decoded)
    })
}

fn body<P: Protocol>(bytes: &[u8]) -> String {
    with_request(|request| {
        let mut shown = Shown::default();
        let decoded = Decoder::<P>::default().whole(bytes, request, &mut shown);
        shown.check(decoded)
    })
}

fn with_request<T>(run: impl FnOnce(&Request<'_>) -> T) -> T {
    let (at, who) = (Path::root(), Name::new("a").unwrap());
    let (params, encoded) = (Params::default(), EncodeCache::default());
    run(&Request {
        origin: Origin { at: &at, who: &who, nth: 0, last_model: None },
        system: None,
        entries: &[],
        tools: &[],
        params: &params,
        encoded: &encoded,
        reserved: None,
    })
}

/// The text and the thoughts that a person saw.
#[derive(Default)]
struct Shown {
    text: String,
    thoughts: String,
}

impl DeltaSink for Shown {
    fn push(&mut self, delta: DeltaRef<'_>) {
        match delta {
            DeltaRef::Text(piece) => self.text.push_str(piece),
            DeltaRef::Thought(piece) => self.thoughts.push_str(piece),
            DeltaRef::Restart => *self = Self::default(),
            _ => {}
        }
    }
}

impl Shown {
    /// Compares with the reply, but for white space at the ends of its parts.
    fn check(&self, decoded: Result<Decoded, DecodeError>) -> String {
        if let Ok(Decoded { reply, .. }) = &decoded {
            let joined =
                |pick: fn(&Part) -> Option<&str>| reply.parts.iter().filter_map(pick).collect::<String>();
            let text = joined(|part| if let Part::Text(text) = part { Some(text) } else { None });
            let thoughts = joined(|part| if let Part::Thought(text) = part { Some(text) } else { None });
            assert_eq!(dense(&self.text), dense(&text));
            assert_eq!(dense(&self.thoughts), dense(&thoughts));
        }
        format!("{decoded:?}")
    }
}

fn dense(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}
