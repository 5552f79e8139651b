//! Single messages of a chat-completions request.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use polylogue_core::{Call, Media, Outcome, Part};
use serde_json::{Value, json};

use super::json;

/// Stands where a message would otherwise have no content, which providers refuse.
const NOTHING: &str = "(no content)";

pub(super) fn system(out: &mut BytesMut, text: &str) {
    out.extend_from_slice(br#"{"role":"system","content":"#);
    json::string(out, text);
    out.put_u8(b'}');
}

/// What others said, in one message: a plain text if it is text, a list of parts if there is more.
pub(super) fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone) {
    out.extend_from_slice(br#"{"role":"user","content":"#);
    if parts.clone().into_iter().any(|part| matches!(part, Part::Media(_))) {
        content_parts(out, parts);
    } else {
        text(out, parts);
    }
    out.put_u8(b'}');
}

/// What the agent said itself.
pub(super) fn assistant<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone) {
    let mut calls = parts.clone().into_iter().filter_map(|part| match part {
        Part::Call(call) => Some(call),
        _ => None,
    });
    let first_call = calls.next();
    out.extend_from_slice(br#"{"role":"assistant","content":"#);
    if first_call.is_some() && parts.clone().into_iter().all(is_wordless) {
        out.extend_from_slice(b"null");
    } else {
        text(out, parts);
    }
    if let Some(first) = first_call {
        out.extend_from_slice(br#","tool_calls":["#);
        tool_call(out, first);
        for call in calls {
            out.put_u8(b',');
            tool_call(out, call);
        }
        out.put_u8(b']');
    }
    out.put_u8(b'}');
}

/// What came of a call.
pub(super) fn tool(out: &mut BytesMut, id: &str, outcome: &Outcome) {
    out.extend_from_slice(br#"{"role":"tool","tool_call_id":"#);
    json::string(out, id);
    out.extend_from_slice(br#","content":"#);
    text(out, &outcome.parts);
    out.put_u8(b'}');
}

fn tool_call(out: &mut BytesMut, call: &Call) {
    out.extend_from_slice(br#"{"id":"#);
    json::string(out, &call.id);
    out.extend_from_slice(br#","type":"function","function":{"name":"#);
    json::string(out, &legal_name(&call.tool));
    out.extend_from_slice(br#","arguments":"#);
    // Servers put the arguments through a JSON parser again, and some refuse a history in which that fails.
    let args = match &call.args {
        Value::Object(_) => call.args.to_string(),
        other => json!({ "unparsed": other }).to_string(),
    };
    json::string(out, &args);
    out.extend_from_slice(b"}}");
}

/// The name of a tool as providers allow it in a history. Models invent names with other characters, and a history that
/// repeats them would be refused for ever after.
fn legal_name(name: &str) -> Cow<'_, str> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match name.len() {
        0 => Cow::Borrowed("unnamed"),
        1..=64 if name.chars().all(is_legal) => Cow::Borrowed(name),
        _ => name.chars().take(64).map(|c| if is_legal(c) { c } else { '_' }).collect(),
    }
}

fn is_wordless(part: &Part) -> bool {
    match part {
        Part::Call(_) | Part::Thought(_) => true,
        part => part.is_blank(),
    }
}

/// `parts` as one JSON string, joined by blank lines; never an empty one.
fn text<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part>) {
    out.put_u8(b'"');
    let start = out.len();
    for part in parts {
        let before = out.len();
        if before > start {
            out.extend_from_slice(br"\n\n");
        }
        let begun = out.len();
        words(out, part);
        if out.len() == begun {
            out.truncate(before);
        }
    }
    if out.len() == start {
        out.extend_from_slice(NOTHING.as_bytes());
    }
    out.put_u8(b'"');
}

/// One part in words, inside a JSON string. Thoughts are sent to nobody, and calls stand elsewhere.
fn words(out: &mut BytesMut, part: &Part) {
    match part {
        part if is_wordless(part) => {}
        Part::Text(text) => json::escape(out, text),
        Part::Data(value) => json::escape(out, &value.to_string()),
        Part::Media(media) => json::escape(out, &in_words(media)),
        _ => {}
    }
}

/// Where only words are allowed, a reference stands for what it refers to; inline data would only be noise there.
fn in_words(media: &Media) -> String {
    match media.url.starts_with("data:") {
        true => format!("[{}]", media.kind),
        false => format!("[{}: {}]", media.kind, media.url),
    }
}

fn content_parts<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part>) {
    out.put_u8(b'[');
    for part in parts.into_iter().filter(|part| !is_wordless(part)) {
        if out.last() != Some(&b'[') {
            out.put_u8(b',');
        }
        match part {
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

/// Pictures go by URL; sounds and documents only inline, so that others are named in words.
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

fn sound_format(kind: &str) -> Option<&'static str> {
    match kind {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}
