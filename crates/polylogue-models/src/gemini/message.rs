//! Single contents of a request to Gemini.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use polylogue_core::{Media, Part, ToolCall, ToolStatus};
use serde_json::Value;

use super::decode::Gemini;
use crate::wire::json::{self, separate};
use crate::wire::media;
use crate::wire::protocol::{Own, SentResult, Style, WriteMessages};
use crate::wire::words::{is_wordless, legal_name, text};

/// The signature that Google documents for calls without one: of other models, and of replies whose signatures are no
/// longer valid.
/// <https://ai.google.dev/gemini-api/docs/thought-signatures#faqs>
const STAND_IN: &str = "skip_thought_signature_validator";

/// Media types that Gemini reads, by their beginnings. Others would make it refuse every later request.
/// <https://ai.google.dev/gemini-api/docs/files>
const KINDS: [&str; 18] = [
    "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "audio/wav", "audio/x-wav",
    "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac", "video/",
    "application/pdf", "text/plain", "text/csv", "text/html",
];

/// Writes everything before the first content.
pub(super) fn begin(out: &mut BytesMut, system: Option<&str>) {
    out.put_u8(b'{');
    if let Some(system) = system {
        json::quoted(out, r#""systemInstruction":{"parts":[{"text":"#, system, "}]},");
    }
    out.extend_from_slice(br#""contents":["#);
}

impl WriteMessages for Gemini {
    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, _: &Style) {
        content(out, "user", |out| words_of_others(out, parts));
    }

    /// Writes an assistant message: its parts in order. The first call is always signed, because newer models refuse the
    /// others' histories without a signature there.
    fn assistant(out: &mut BytesMut, message: &Own<'_>, style: &Style) {
        content(out, "model", |out| {
            let mut stand_in = style.accepts.thinking_level.then_some(STAND_IN);
            let sent = message.parts.iter().enumerate().map(|(at, part)| (at, part, message.seal(at, part)));
            let sent: Vec<_> = sent.filter(|(_, part, seal)| is_sent(part, *seal)).collect();
            let is_plain = |(_, part, seal): &(usize, &Part, Option<&Value>)| seal.is_none() && is_text(part);
            for run in sent.chunk_by(|one, other| is_plain(one) && is_plain(other)) {
                match *run {
                    [(at, Part::ToolCall(call), seal)] => {
                        let signature = seal.and_then(Value::as_str).or(stand_in);
                        stand_in = None;
                        call_part(out, message, at, call, signature, style);
                    }
                    [(_, Part::Text(text), Some(seal))] => signed(out, text, seal, false),
                    [(_, Part::Thought(text), Some(seal))] => signed(out, text, seal, true),
                    _ => parts(out, run.iter().map(|(_, part, _)| *part)),
                }
            }
        });
    }

    /// Writes results of calls, in the order of the calls, and the words of others after them.
    fn results<'a>(
        out: &mut BytesMut,
        results: &[SentResult<'_>],
        words: impl IntoIterator<Item = &'a Part> + Clone,
        style: &Style,
    ) {
        content(out, "user", |out| {
            for result in results {
                separate(out);
                out.extend_from_slice(br#"{"functionResponse":{"#);
                function(out, result.id, result.tool, style);
                let name = if result.outcome.status == ToolStatus::Done { "output" } else { "error" };
                json::quoted(out, r#","response":{"#, name, ":");
                text(out, &result.outcome.parts);
                out.extend_from_slice(b"}}}");
            }
            words_of_others(out, words);
        });
    }
}

/// Whether a part of an assistant message is sent. Thoughts are sent only to the model that wrote them, as are texts that
/// are nothing but a signature.
fn is_sent(part: &Part, seal: Option<&Value>) -> bool {
    matches!(part, Part::ToolCall(_)) || seal.is_some() || !is_wordless(part)
}

fn is_text(part: &Part) -> bool {
    matches!(part, Part::Text(_) | Part::Data(_)) || matches!(part, Part::Media(media) if !takes(media))
}

/// Writes a content, which must have a part.
fn content(out: &mut BytesMut, role: &str, write: impl FnOnce(&mut BytesMut)) {
    json::quoted(out, r#"{"role":"#, role, r#","parts":["#);
    write(out);
    if out.last() == Some(&b'[') {
        text_part(out, []);
    }
    out.extend_from_slice(b"]}");
}

fn words_of_others<'a>(out: &mut BytesMut, all: impl IntoIterator<Item = &'a Part>) {
    let all: Vec<&Part> = all.into_iter().filter(|part| !is_wordless(part)).collect();
    for run in all.chunk_by(|one, other| is_text(one) && is_text(other)) {
        parts(out, run.iter().copied());
    }
}

/// Writes texts as one part, or a medium.
fn parts<'a>(out: &mut BytesMut, run: impl Iterator<Item = &'a Part> + Clone) {
    separate(out);
    match run.clone().next() {
        Some(Part::Media(media)) if takes(media) => media_part(out, media),
        _ => text_part(out, run),
    }
}

fn text_part<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part>) {
    out.extend_from_slice(br#"{"text":"#);
    text(out, parts);
    out.put_u8(b'}');
}

/// Writes a text as it came: in pieces of which some are signed. The seal lists where a signed piece begins and ends, and
/// its signature.
fn signed(out: &mut BytesMut, text: &str, seal: &Value, is_thought: bool) {
    let mut end = 0;
    let mut piece = |from: usize, to: usize, signature: Option<&str>| {
        let words = text.get(from..to).unwrap_or_default();
        if words.is_empty() && signature.is_none() {
            return;
        }
        separate(out);
        json::quoted(out, r#"{"text":"#, words, "");
        if is_thought {
            out.extend_from_slice(br#","thought":true"#);
        }
        sign(out, signature);
        out.put_u8(b'}');
    };
    for one in seal.as_array().into_iter().flatten() {
        let at =
            |index: usize| one.get(index).and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
        let (Some(from), Some(to)) = (at(0), at(1)) else { continue };
        piece(end, from, None);
        piece(from, to, one.get(2).and_then(Value::as_str));
        end = to;
    }
    piece(end, text.len(), None);
}

fn call_part(
    out: &mut BytesMut,
    message: &Own<'_>,
    at: usize,
    call: &ToolCall,
    signature: Option<&str>,
    style: &Style,
) {
    separate(out);
    out.extend_from_slice(br#"{"functionCall":{"#);
    function(out, message.id(call), &call.tool, style);
    out.extend_from_slice(br#","args":"#);
    out.extend_from_slice(message.arguments_object(at, call).as_bytes());
    out.put_u8(b'}');
    sign(out, signature);
    out.put_u8(b'}');
}

fn sign(out: &mut BytesMut, signature: Option<&str>) {
    if let Some(signature) = signature {
        json::quoted(out, r#","thoughtSignature":"#, signature, "");
    }
}

/// Writes which call it is. Vertex AI refuses ids, and pairs calls and results by their order.
fn function(out: &mut BytesMut, id: &str, tool: &str, style: &Style) {
    if !style.vertex {
        json::quoted(out, r#""id":"#, id, ",");
    }
    json::quoted(out, r#""name":"#, &name(tool), "");
}

/// The name of a tool, which begins with a letter or `_` here.
pub(super) fn name(tool: &str) -> Cow<'_, str> {
    let name = legal_name(tool);
    match name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        true => name,
        false => Cow::Owned(format!("_{}", name.get(..name.len().min(63)).unwrap_or_default())),
    }
}

/// Whether there is a form for `media`.
pub(super) fn takes(media: &Media) -> bool {
    let is_known = KINDS.iter().any(|kind| media.media_type.starts_with(kind));
    is_known && (media::data(media).is_some() || is_file(&media.url))
}

/// Whether `url` is one that Google fetches itself.
fn is_file(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("gs://")
}

fn media_part(out: &mut BytesMut, media: &Media) {
    let (form, field, place) = match media::data(media) {
        Some(data) => ("inlineData", "data", data),
        None => ("fileData", "fileUri", &*media.url),
    };
    json::quoted(out, "{", form, "");
    json::quoted(out, r#":{"mimeType":"#, &media.media_type, "");
    json::quoted(out, ",", field, "");
    json::quoted(out, ":", place, "}}");
}
