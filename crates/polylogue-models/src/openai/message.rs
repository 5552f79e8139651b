//! Single messages of a chat-completions request.

use bytes::{BufMut, BytesMut};
use polylogue_core::{Call, Media, Part};

use serde_json::{Value, json};

use super::chunk::REASONING;
use super::details::DETAILS;
use crate::deviations::{MediaForm, SendReasoning};
use crate::wire::ids::bounded_id;
use crate::wire::json;
use crate::wire::protocol::{Own, Style, ToolResult};
use crate::wire::words::{in_words, is_wordless, legal_name, text, words};

/// The maximum bytes of the id of a call that OpenAI accepts. Ids of other providers can be longer.
const MAX_ID: usize = 40;

pub(super) fn system(out: &mut BytesMut, text: &str) {
    out.extend_from_slice(br#"{"role":"system","content":"#);
    json::string(out, text);
    out.put_u8(b'}');
}

/// Writes a user message: a plain text, or a list of parts if it has media.
pub(super) fn user<'a>(
    out: &mut BytesMut,
    parts: impl IntoIterator<Item = &'a Part> + Clone,
    form: MediaForm,
) {
    out.extend_from_slice(br#"{"role":"user","content":"#);
    if parts.clone().into_iter().any(|part| matches!(part, Part::Media(_))) {
        content_parts(out, parts, form);
    } else {
        text(out, parts);
    }
    out.put_u8(b'}');
}

/// Writes an assistant message.
pub(super) fn assistant(out: &mut BytesMut, message: &Own<'_>, style: &Style) {
    let parts = message.parts;
    let mut calls = parts.iter().enumerate().filter_map(|(at, part)| match part {
        Part::Call(call) => Some((at, call)),
        _ => None,
    });
    let first_call = calls.next();
    out.extend_from_slice(br#"{"role":"assistant""#);
    let is_empty = first_call.is_some() && parts.iter().all(is_wordless);
    let thinking = thinking_chunk(message);
    let is_listed = thinking.is_some();
    match (is_empty, style.omit) {
        _ if is_listed => {
            out.extend_from_slice(br#","content":["#);
            thinking.into_iter().for_each(|chunk| json::value(out, &chunk));
            if !parts.iter().all(is_wordless) {
                out.extend_from_slice(br#",{"type":"text","text":"#);
                text(out, parts);
                out.put_u8(b'}');
            }
            out.put_u8(b']');
        }
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

/// The reasoning of the message as a part of its content, in which Mistral sends it.
fn thinking_chunk(message: &Own<'_>) -> Option<Value> {
    let (text, seal) = message.thought()?;
    let is_chunk = seal.get("type").is_some_and(|kind| kind == "thinking");
    is_chunk
        .then(|| json!({"type": "thinking", "thinking": [{"type": "text", "text": text}], "closed": true}))
}

/// Writes the reasoning of the message in the field in which the server sent it. The seal is the name of that field, or the
/// value of `reasoning_details`.
fn reasoning(out: &mut BytesMut, message: &Own<'_>, send: SendReasoning) {
    let mut field = |name: &str, write: &dyn Fn(&mut BytesMut)| {
        out.put_u8(b',');
        json::string(out, name);
        out.put_u8(b':');
        write(out);
    };
    match message.thought() {
        Some((text, Value::String(name))) => field(name, &|out| json::string(out, text)),
        Some((_, details)) => field(DETAILS, &|out| json::value(out, details)),
        None if send == SendReasoning::AlwaysOrEmpty => field(REASONING, &|out| json::string(out, "")),
        None => {}
    }
}

/// Writes the result of a call.
pub(super) fn tool(out: &mut BytesMut, &ToolResult { id, outcome, .. }: &ToolResult<'_>) {
    out.extend_from_slice(br#"{"role":"tool","tool_call_id":"#);
    json::string(out, &bounded_id(id, MAX_ID));
    out.extend_from_slice(br#","content":"#);
    text(out, &outcome.parts);
    out.put_u8(b'}');
}

fn tool_call(out: &mut BytesMut, id: &str, call: &Call, arguments: &str) {
    out.extend_from_slice(br#"{"id":"#);
    json::string(out, &bounded_id(id, MAX_ID));
    out.extend_from_slice(br#","type":"function","function":{"name":"#);
    json::string(out, &legal_name(&call.tool));
    out.extend_from_slice(br#","arguments":"#);
    // Servers parse the arguments as JSON again, and some refuse a history in which that fails.
    json::string(out, arguments);
    out.extend_from_slice(b"}}");
}

fn content_parts<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part>, form: MediaForm) {
    out.put_u8(b'[');
    for part in parts.into_iter().filter(|part| !is_wordless(part)) {
        if out.last() != Some(&b'[') {
            out.put_u8(b',');
        }
        match part {
            Part::Media(media) if form == MediaForm::Mistral => media_of_mistral(out, media),
            Part::Media(media) => media_part(out, media),
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

/// Pictures are sent by URL. Audio and documents can only be inline, so others are named in the text.
fn media_part(out: &mut BytesMut, media: &Media) {
    let inline = media.url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    if media.kind.starts_with("image/") {
        out.extend_from_slice(br#"{"type":"image_url","image_url":{"url":"#);
        json::string(out, &media.url);
        out.extend_from_slice(b"}}");
    } else if let (Some(format), Some((_, data))) = (sound_format(&media.kind), inline) {
        out.extend_from_slice(br#"{"type":"input_audio","input_audio":{"data":"#);
        json::string(out, data);
        out.extend_from_slice(br#","format":"#);
        json::string(out, format);
        out.extend_from_slice(b"}}");
    } else if media.kind == "application/pdf" && inline.is_some() {
        out.extend_from_slice(br#"{"type":"file","file":{"filename":"document.pdf","file_data":"#);
        json::string(out, &media.url);
        out.extend_from_slice(b"}}");
    } else {
        text_part(out, |out| json::escape(out, &in_words(media)));
    }
}

/// Documents are sent by URL, too, which can have the data. Sounds are their data alone, or a URL.
fn media_of_mistral(out: &mut BytesMut, media: &Media) {
    let inline = media.url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let (kind, value) = match &*media.kind {
        "application/pdf" => ("document_url", &*media.url),
        kind if sound_format(kind).is_some() => ("input_audio", inline.map_or(&*media.url, |(_, data)| data)),
        _ => return media_part(out, media),
    };
    out.extend_from_slice(br#"{"type":"#);
    json::string(out, kind);
    out.put_u8(b',');
    json::string(out, kind);
    out.put_u8(b':');
    json::string(out, value);
    out.put_u8(b'}');
}

/// The format of sound that OpenAI's APIs accept, by its media type.
pub(crate) fn sound_format(kind: &str) -> Option<&'static str> {
    match kind {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}
