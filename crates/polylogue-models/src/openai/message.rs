//! Single messages of a chat-completions request.

use bytes::{BufMut, BytesMut};
use polylogue_core::{Media, Part, ToolCall};

use serde_json::Value;

use super::chunk::REASONING;
use super::decode::ChatCompletions;
use super::details::DETAILS;
use super::said::{SIGNATURE, is_chunk};
use crate::deviations::{MediaForm, SendReasoning};
use crate::wire::ids::bounded_id;
use crate::wire::json;
use crate::wire::media::{self, PDF, Source, sound_format};
use crate::wire::protocol::{Own, SentResult, Style, WriteMessages};
use crate::wire::words::{is_wordless, legal_name, text, words};

/// The mark of a part up to which the prompt is cached.
pub(crate) const CACHE_MARK: &[u8] = br#","prompt_cache_breakpoint":{"mode":"explicit"}"#;

/// The maximum bytes of the id of a call that OpenAI accepts. Ids of other providers can be longer.
const MAX_ID: usize = 40;

pub(super) fn system(out: &mut BytesMut, text: &str) {
    json::quoted(out, r#"{"role":"system","content":"#, text, "}");
}

/// Writes the first system message with a mark at its end, up to which the prompt is cached for all conversations of an agent. The
/// provider marks the last message itself.
pub(super) fn marked_system(out: &mut BytesMut, text: &str) {
    json::quoted(out, r#"{"role":"system","content":[{"type":"text","text":"#, text, "");
    out.extend_from_slice(CACHE_MARK);
    out.extend_from_slice(b"}]}");
}

impl WriteMessages for ChatCompletions {
    /// Writes a user message: a plain text, or a list of parts if it has media.
    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, style: &Style) {
        out.extend_from_slice(br#"{"role":"user","content":"#);
        if parts.clone().into_iter().any(|part| matches!(part, Part::Media(_))) {
            content_parts(out, parts, style.deviations.media);
        } else {
            text(out, parts);
        }
        out.put_u8(b'}');
    }

    fn assistant(out: &mut BytesMut, message: &Own<'_>, style: &Style) {
        let parts = message.parts;
        let mut calls = message.calls();
        let first_call = calls.next();
        out.extend_from_slice(br#"{"role":"assistant""#);
        let is_empty = message.is_further() || first_call.is_some() && parts.iter().all(is_wordless);
        let is_listed = message.thoughts().any(|(_, seal)| is_chunk(seal));
        match (is_empty, style.omit) {
            _ if is_listed => chunks(out, message),
            (true, true) => {}
            (true, false) => out.extend_from_slice(br#","content":null"#),
            (false, _) => {
                out.extend_from_slice(br#","content":"#);
                text(out, parts);
            }
        }
        if !is_listed {
            reasoning(out, message, style.reasoning);
        }
        if let Some((at, first)) = first_call {
            out.extend_from_slice(br#","tool_calls":["#);
            tool_call(out, message.id(first), first, &message.arguments(at, first));
            for (at, call) in calls {
                out.put_u8(b',');
                tool_call(out, message.id(call), call, &message.arguments(at, call));
            }
            out.put_u8(b']');
        }
        out.put_u8(b'}');
    }

    /// Writes the result of a call.
    fn results<'a>(
        out: &mut BytesMut,
        results: &[SentResult<'_>],
        _: impl IntoIterator<Item = &'a Part> + Clone,
        _: &Style,
    ) {
        for &SentResult { id, outcome, .. } in results {
            json::quoted(out, r#"{"role":"tool","tool_call_id":"#, &bounded_id(id, MAX_ID), r#","content":"#);
            text(out, &outcome.parts);
            out.put_u8(b'}');
        }
    }

    fn system(out: &mut BytesMut, text: &str, _: &Style) {
        system(out, text);
    }
}

/// Writes the content of the message as a list of texts and reasoning in their order, as Mistral sends it.
fn chunks(out: &mut BytesMut, message: &Own<'_>) {
    out.extend_from_slice(br#","content":["#);
    for (at, part) in message.parts.iter().enumerate() {
        let chunk = match part {
            Part::Thought(text) => {
                message.seal(at, part).filter(|seal| is_chunk(seal)).map(|seal| (text, seal))
            }
            _ => None,
        };
        if chunk.is_none() && is_wordless(part) {
            continue;
        }
        json::separate(out);
        match chunk {
            Some((text, seal)) => thinking_chunk(out, text, seal),
            None => text_part(out, |out| words(out, part)),
        }
    }
    out.put_u8(b']');
}

/// Writes reasoning as a part of the content, with its signature if it has one.
fn thinking_chunk(out: &mut BytesMut, text: &str, seal: &Value) {
    out.extend_from_slice(br#"{"type":"thinking","thinking":["#);
    if !text.is_empty() {
        json::quoted(out, r#"{"type":"text","text":"#, text, "}");
    }
    out.extend_from_slice(br#"],"closed":true"#);
    if let Some(signature) = seal.get(SIGNATURE) {
        out.extend_from_slice(br#","signature":"#);
        json::value(out, signature);
    }
    out.put_u8(b'}');
}

/// Writes the reasoning of the message in the field in which the server sent it: a seal is the name of that field, or the value of
/// `reasoning_details`. A message has one such field, whatever was said between pieces of it.
fn reasoning(out: &mut BytesMut, message: &Own<'_>, send: SendReasoning) {
    let mut field = |name: &str, value: &Value| {
        json::quoted(out, ",", name, ":");
        json::value(out, value);
    };
    let all: String = message.thoughts().map(|(text, _)| text).collect();
    let details = message.thoughts().map(|(_, seal)| seal).find(|seal| !seal.is_string());
    let name = message.thoughts().find_map(|(_, seal)| seal.as_str());
    match (details, name) {
        (None, Some(name)) => field(name, &all.into()),
        (details, _) => {
            details.into_iter().for_each(|details| field(DETAILS, details));
            let plain = send.filler().map(|filler| if all.is_empty() { filler } else { all.as_str() });
            plain.into_iter().for_each(|text| field(REASONING, &text.into()));
        }
    }
}

fn tool_call(out: &mut BytesMut, id: &str, call: &ToolCall, arguments: &str) {
    json::quoted(out, r#"{"id":"#, &bounded_id(id, MAX_ID), "");
    json::quoted(out, r#","type":"function","function":{"name":"#, &legal_name(&call.tool), "");
    out.extend_from_slice(br#","arguments":"#);
    // Servers parse the arguments as JSON again, and some refuse a history in which that fails.
    json::string(out, arguments);
    out.extend_from_slice(b"}}");
}

/// Whether there is a form for `media`. Pictures are sent by URL, too; sounds and documents have their content.
pub(super) fn takes(media: &Media, form: MediaForm) -> bool {
    let is_picture = media::is_picture(media);
    let is_other = sound_format(&media.media_type).is_some() || media.media_type == PDF;
    match media::source(media) {
        Some(Source::Data(_)) => is_picture || is_other,
        Some(Source::Web(_)) => is_picture || form == MediaForm::Mistral && is_other,
        None => false,
    }
}

fn content_parts<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part>, form: MediaForm) {
    out.put_u8(b'[');
    for part in parts.into_iter().filter(|part| !is_wordless(part)) {
        json::separate(out);
        match part {
            Part::Media(media) if takes(media, form) => media_part(out, media, form),
            other => text_part(out, |out| words(out, other)),
        }
    }
    out.put_u8(b']');
}

fn text_part(out: &mut BytesMut, words: impl FnOnce(&mut BytesMut)) {
    out.extend_from_slice(br#"{"type":"text","text":""#);
    words(out);
    out.extend_from_slice(br#""}"#);
}

fn media_part(out: &mut BytesMut, media: &Media, form: MediaForm) {
    match sound_format(&media.media_type) {
        _ if media::is_picture(media) => {
            json::quoted(out, r#"{"type":"image_url","image_url":{"url":"#, &media::address(media), "}}");
        }
        // Mistral's sounds are their data alone, or a URL, and so are its documents.
        Some(_) if form == MediaForm::Mistral => {
            out.extend_from_slice(br#"{"type":"input_audio","input_audio":"#);
            json::string(out, media::data(media).unwrap_or(&media.url));
            out.put_u8(b'}');
        }
        Some(format) => {
            out.extend_from_slice(br#"{"type":"input_audio","input_audio":{"data":"#);
            json::string(out, media::data(media).unwrap_or_default());
            json::quoted(out, r#","format":"#, format, "}}");
        }
        None if form == MediaForm::Mistral => {
            json::quoted(out, r#"{"type":"document_url","document_url":"#, &media::address(media), "}");
        }
        None => {
            out.extend_from_slice(br#"{"type":"file","file":{"filename":"document.pdf","file_data":"#);
            json::string(out, &media::address(media));
            out.extend_from_slice(b"}}");
        }
    }
}
