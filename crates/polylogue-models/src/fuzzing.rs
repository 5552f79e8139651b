//! What the fuzz targets in `fuzz/` check of any bytes, and what tests check of the targets' seeds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is what a target reports"
)]

pub(crate) mod frames;

use polylogue_core::{
    DeltaRef, DeltaSink, EncodeCache, ModelError, Name, Origin, Params, Part, Path, Request,
};
use polylogue_http::{HeaderMap, Redactor};

use crate::api::Api;
use crate::embedding;
use crate::failure::{ErrorContext, Refusal};
use crate::protocols::with_protocol;
use crate::wire::decode::Decoder;
use crate::wire::draft::{DecodeError, Decoded};
use crate::wire::protocol::Protocol;

/// All APIs.
pub(crate) const APIS: [Api; 6] =
    [Api::ChatCompletions, Api::Responses, Api::Messages, Api::Gemini, Api::Converse, Api::Ollama];

/// A key that no error may show.
const KEY: &str = "sk-this-key-is-never-shown";

/// A target: its name, and what it checks of any bytes.
pub type Target = (&'static str, fn(&[u8]));

/// The targets, as their files in `fuzz/fuzz_targets` and their seeds in `fuzz/seeds` are called.
pub const TARGETS: &[Target] = &[
    ("chat_completions", chat_completions),
    ("responses", responses),
    ("messages", messages),
    ("gemini", gemini),
    ("converse", converse),
    ("event_stream", event_stream),
    ("ollama", ollama),
    ("embeddings", embeddings),
    ("error", error),
];

/// Checks a reply by OpenAI's chat completions, Mistral's and those of all servers with this API.
pub fn chat_completions(bytes: &[u8]) {
    reply(Api::ChatCompletions, bytes);
}

/// Checks a reply by OpenAI's Responses API.
pub fn responses(bytes: &[u8]) {
    reply(Api::Responses, bytes);
}

/// Checks a reply by Anthropic's Messages API.
pub fn messages(bytes: &[u8]) {
    reply(Api::Messages, bytes);
}

/// Checks a reply by Gemini's API.
pub fn gemini(bytes: &[u8]) {
    reply(Api::Gemini, bytes);
}

/// Checks lines as events of a reply by Bedrock's Converse API, and a whole reply of it.
pub fn converse(bytes: &[u8]) {
    in_any_pieces(Api::Converse, &frames::lines(bytes));
    whole(Api::Converse, bytes);
}

/// Checks a reply by Bedrock's Converse API in its binary frames, with their checksums and with checksums that fit.
pub fn event_stream(bytes: &[u8]) {
    in_any_pieces(Api::Converse, bytes);
    in_any_pieces(Api::Converse, &frames::repaired(bytes));
}

/// Checks a reply by Ollama's API.
pub fn ollama(bytes: &[u8]) {
    reply(Api::Ollama, bytes);
}

/// Checks a reply with vectors: those that are accepted are as many as asked for, and have length 1 or 0.
pub fn embeddings(bytes: &[u8]) {
    for texts in 0..3 {
        let Ok(embedded) = embedding::decode(bytes, texts) else { continue };
        assert_eq!(embedded.vectors.len(), texts);
        for vector in embedded.vectors {
            let square: f64 = vector.iter().map(|number| f64::from(*number).powi(2)).sum();
            assert!(square == 0.0 || (square - 1.0).abs() < 1e-3, "a vector of length {}", square.sqrt());
        }
    }
}

/// Checks the body of an error of every API, after a line with its status: the key is not shown.
pub fn error(bytes: &[u8]) {
    let (status, body) = bytes.split_at(bytes.iter().position(|&byte| byte == b'\n').unwrap_or_default());
    let status = std::str::from_utf8(status).ok().and_then(|status| status.parse().ok());
    for api in APIS {
        let error = refused(api, status.unwrap_or(400), body);
        assert!(!format!("{error} {error:?}").contains(KEY), "{api:?}");
    }
}

/// A reply of `api`, streamed or whole.
fn reply(api: Api, bytes: &[u8]) {
    in_any_pieces(api, bytes);
    whole(api, bytes);
}

/// The reply is the same in pieces of any size, and what was shown of it is what it says.
fn in_any_pieces(api: Api, bytes: &[u8]) {
    let all = streamed(api, bytes, bytes.len());
    let size = bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
    for size in [1, usize::from(size).max(2)] {
        assert_eq!(streamed(api, bytes, size), all, "{api:?}: in pieces of {size} bytes");
    }
}

/// The reply of `api` to an empty conversation, streamed as `bytes` in pieces of `size` bytes.
fn streamed(api: Api, bytes: &[u8], size: usize) -> String {
    with_protocol!(api, P => stream::<P>(bytes, size))
}

/// The reply of `api` whose whole body is `bytes`.
fn whole(api: Api, bytes: &[u8]) -> String {
    with_protocol!(api, P => body::<P>(bytes))
}

/// The error that `api` reports with `status` and `body`.
fn refused(api: Api, status: u16, body: &[u8]) -> ModelError {
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

/// Runs with a request of an empty conversation.
pub(crate) fn with_request<T>(run: impl FnOnce(&Request<'_>) -> T) -> T {
    let (at, who) = (Path::root(), Name::new("a").unwrap());
    let (params, encoded) = (Params::default(), EncodeCache::default());
    let origin = Origin::new(&at, &who, 0);
    let (system, reserved) = (None, None);
    run(&Request { origin, system, entries: &[], tools: &[], params: &params, encoded: &encoded, reserved })
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
    }

    fn files(folder: &std::path::Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// What the targets check holds of their seeds, without a fuzzer. Each seed is also cut, and has bytes flipped.
    #[test]
    fn every_target_holds_of_its_seeds() {
        for (name, target) in TARGETS {
            let seeds = files(&folder("seeds").join(name));
            assert!(!seeds.is_empty(), "{name}");
            for seed in seeds {
                let bytes = fs::read(&seed).unwrap();
                target(&bytes);
                for at in (0..bytes.len()).step_by(7) {
                    target(&bytes[..at]);
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << (at % 8);
                    target(&flipped);
                }
            }
        }
    }

    /// A target, its API, and the bytes that it makes of a seed.
    type Replies = (&'static str, Api, fn(&[u8]) -> Vec<u8>);

    /// A seed that is an error early on leads a fuzzer nowhere.
    #[test]
    fn each_reply_has_seeds_that_are_replies() {
        let lines = |bytes: &[u8]| frames::lines(bytes);
        let plain = |bytes: &[u8]| bytes.to_vec();
        let targets: [Replies; 7] = [
            ("chat_completions", Api::ChatCompletions, plain),
            ("responses", Api::Responses, plain),
            ("messages", Api::Messages, plain),
            ("gemini", Api::Gemini, plain),
            ("converse", Api::Converse, lines),
            ("event_stream", Api::Converse, plain),
            ("ollama", Api::Ollama, plain),
        ];
        for (name, api, form) in targets {
            let read = |seed: &PathBuf| streamed(api, &form(&fs::read(seed).unwrap()), usize::MAX);
            let replies: Vec<String> = files(&folder("seeds").join(name)).iter().map(read).collect();
            for part in ["Ok(", "Text(", "ToolCall("] {
                assert!(replies.iter().any(|reply| reply.contains(part)), "{name} {part}: {replies:#?}");
            }
        }
    }

    /// Each target is a file that calls its function, and is listed for `cargo fuzz`.
    #[test]
    fn every_target_is_a_program_of_the_fuzzer() {
        let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
        let mut others: BTreeSet<String> = ["event", "team"].map(str::to_owned).into();
        others.extend(TARGETS.iter().map(|(name, _)| (*name).to_owned()));
        let stems = files(&folder("fuzz_targets"));
        let stems = stems.iter().map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned());
        assert_eq!(stems.collect::<BTreeSet<_>>(), others);
        for name in others {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        }
        for (name, _) in TARGETS {
            let program = fs::read_to_string(folder("fuzz_targets").join(format!("{name}.rs"))).unwrap();
            let calls = format!("fuzz_target!(|bytes: &[u8]| fuzzing::{name}(bytes));");
            assert!(program.contains(&calls), "{name}: {program}");
        }
    }
}
