//! Single items of the input of a request.

use bytes::{BufMut, BytesMut};
use polylogue_core::{Media, Part, ToolCall};
use serde_json::Value;

use super::decode::Responses;
use crate::openai::CACHE_MARK;
use crate::wire::ids::bounded_id;
use crate::wire::json::{self, separate};
use crate::wire::media::{self, PDF, Source, sound_format};
use crate::wire::pictures;
use crate::wire::protocol::{Own, SentResult, Style, WriteMessages};
use crate::wire::words::{is_wordless, legal_name, text, words};

/// The maximum bytes of the id of a call. Ids of other providers can be longer.
const MAX_ID: usize = 64;

impl WriteMessages for Responses {
    /// Writes a message of the developer within the conversation.
    fn system(out: &mut BytesMut, text: &str, _: &Style) {
        json::quoted(out, r#"{"role":"developer","content":"#, text, "}");
    }

    /// Writes a user message: a plain text, or a list of parts if it has media.
    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, _: &Style) {
        out.extend_from_slice(br#"{"role":"user","content":"#);
        if parts.clone().into_iter().any(|part| matches!(part, Part::Media(_))) {
            content(out, parts);
        } else {
            text(out, parts);
        }
        out.put_u8(b'}');
    }

    /// Writes the items of a reply in their order: reasoning, texts, calls.
    fn assistant(out: &mut BytesMut, message: &Own<'_>, _: &Style) {
        let parts = message.parts;
        let is_item = |part: &Part| matches!(part, Part::ToolCall(_)) || !is_wordless(part);
        // The API refuses reasoning that nothing follows.
        let Some(last) = parts.iter().rposition(is_item) else { return plain(out, parts) };
        let mut at = 0;
        while let Some(part) = parts.get(at).filter(|_| at <= last) {
            let end = at + unsealed_texts(message, at).max(1);
            match (part, message.seal(at, part)) {
                (Part::Thought(_), Some(item)) => each(out, |out| json::value(out, item)),
                (Part::ToolCall(call), seal) => {
                    each(out, |out| function_call(out, message, at, call, seal));
                }
                (Part::Text(text), Some(seal)) if !part.is_blank() => {
                    each(out, |out| sealed_text(out, text, seal))
                }
                (part, _) if is_wordless(part) => {}
                _ => each(out, |out| plain(out, parts.get(at..end).unwrap_or_default())),
            }
            at = end;
        }
    }

    /// Writes the result of a call: a text, or a list of parts if it has pictures for a model with vision.
    fn results<'a>(
        out: &mut BytesMut,
        results: &[SentResult<'_>],
        _: impl IntoIterator<Item = &'a Part> + Clone,
        style: &Style,
    ) {
        for result in results {
            out.extend_from_slice(br#"{"type":"function_call_output","call_id":"#);
            json::string(out, &bounded_id(result.id, MAX_ID));
            out.extend_from_slice(br#","output":"#);
            let parts = &result.outcome.parts;
            if style.vision && parts.iter().any(pictures::is_shown) {
                parts_of_output(out, parts);
            } else {
                text(out, parts);
            }
            out.put_u8(b'}');
        }
    }
}

/// The mark of a part up to which the prompt is cached for twelve hours. Chat completions take no such lifetime.
const LONG_CACHE_MARK: &[u8] = br#","prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}"#;

/// Writes the first message of the developer with a mark at its end, up to which the prompt is cached for all conversations of an
/// agent. The provider marks the last message itself, for its shortest lifetime.
pub(super) fn marked_system(out: &mut BytesMut, text: &str, is_long: bool) {
    json::quoted(out, r#"{"role":"developer","content":[{"type":"input_text","text":"#, text, "");
    out.extend_from_slice(if is_long { LONG_CACHE_MARK } else { CACHE_MARK });
    out.extend_from_slice(b"}]}");
}

/// Writes an item after those before it.
fn each(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    if out.last() == Some(&b'}') {
        out.put_u8(b',');
    }
    write(out);
}

/// The number of parts from `at` on that are one message without an id.
fn unsealed_texts(message: &Own<'_>, at: usize) -> usize {
    let parts = message.parts.iter().enumerate().skip(at);
    let is_plain = |(at, part): &(usize, &Part)| {
        !matches!(part, Part::ToolCall(_) | Part::Thought(_)) && message.seal(*at, part).is_none()
    };
    parts.take_while(is_plain).count()
}

/// Writes a message of the model without an id.
fn plain(out: &mut BytesMut, parts: &[Part]) {
    out.extend_from_slice(br#"{"role":"assistant","content":"#);
    text(out, parts);
    out.put_u8(b'}');
}

/// Writes a message of the model with its id and phase.
fn sealed_text(out: &mut BytesMut, text: &str, seal: &Value) {
    out.extend_from_slice(br#"{"type":"message","role":"assistant","status":"completed""#);
    fields_of(out, seal, &["id", "phase"]);
    json::quoted(out, r#","content":[{"type":"output_text","text":"#, text, r#","annotations":[]}]}"#);
}

fn function_call(out: &mut BytesMut, message: &Own<'_>, at: usize, call: &ToolCall, seal: Option<&Value>) {
    out.extend_from_slice(br#"{"type":"function_call""#);
    seal.into_iter().for_each(|seal| fields_of(out, seal, &["id"]));
    json::quoted(out, r#","call_id":"#, &bounded_id(message.id(call), MAX_ID), "");
    json::quoted(out, r#","name":"#, &legal_name(&call.tool), "");
    json::quoted(out, r#","arguments":"#, &message.arguments(at, call), "}");
}

/// Writes those of the fields `names` that a seal has.
fn fields_of(out: &mut BytesMut, seal: &Value, names: &[&str]) {
    for name in names {
        if let Some(value) = seal.get(name) {
            json::quoted(out, ",", name, ":");
            json::value(out, value);
        }
    }
}

/// Writes the parts of a result with its inline pictures. Other media is named in the text.
fn parts_of_output(out: &mut BytesMut, parts: &[Part]) {
    list(out, parts, |out, part| match part {
        Part::Media(media) if pictures::is_shown(part) => media_part(out, media),
        other => text_part(out, |out| words(out, other)),
    });
}

fn content<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part>) {
    list(out, parts, |out, part| match part {
        Part::Media(media) if takes(media) => media_part(out, media),
        other => text_part(out, |out| words(out, other)),
    });
}

fn list<'a>(
    out: &mut BytesMut,
    parts: impl IntoIterator<Item = &'a Part>,
    write: impl Fn(&mut BytesMut, &Part),
) {
    out.put_u8(b'[');
    for part in parts.into_iter().filter(|part| !is_wordless(part)) {
        separate(out);
        write(out, part);
    }
    out.put_u8(b']');
}

fn text_part(out: &mut BytesMut, words: impl FnOnce(&mut BytesMut)) {
    out.extend_from_slice(br#"{"type":"input_text","text":""#);
    words(out);
    out.extend_from_slice(br#""}"#);
}

/// Whether there is a form for `media`. Pictures and documents are sent by URL, too; sounds have their content.
pub(super) fn takes(media: &Media) -> bool {
    let is_sound = sound_format(&media.media_type).is_some();
    match media::source(media) {
        Some(Source::Data(_)) => is_sound || media::is_picture(media) || media.media_type == PDF,
        Some(Source::Web(_)) => media::is_picture(media) || media.media_type == PDF,
        None => false,
    }
}

fn media_part(out: &mut BytesMut, media: &Media) {
    if let (Some(format), Some(data)) = (sound_format(&media.media_type), media::data(media)) {
        json::quoted(out, r#"{"type":"input_audio","input_audio":{"data":"#, data, "");
        json::quoted(out, r#","format":"#, format, "}}");
        return;
    }
    let start: &[u8] = match media::data(media) {
        _ if media::is_picture(media) => br#"{"type":"input_image","image_url":"#,
        Some(_) => br#"{"type":"input_file","filename":"document.pdf","file_data":"#,
        None => br#"{"type":"input_file","file_url":"#,
    };
    out.extend_from_slice(start);
    json::string(out, &media::address(media));
    out.put_u8(b'}');
}
