//! Single messages of a request to Ollama.

use bytes::{BufMut, BytesMut};
use polylogue_core::{Media, Part, ToolCall};

use super::decode::Ollama;
use crate::wire::protocol::{Own, SentResult, Style, WriteMessages};
use crate::wire::words::{is_wordless, legal_name, text};
use crate::wire::{json, media};

impl WriteMessages for Ollama {
    fn system(out: &mut BytesMut, text: &str, _: &Style) {
        json::quoted(out, r#"{"role":"system","content":"#, text, "}");
    }

    /// Writes a user message: its text, and its pictures in a separate field.
    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, _: &Style) {
        out.extend_from_slice(br#"{"role":"user","content":"#);
        let mut images = parts.clone().into_iter().filter_map(image).peekable();
        let mut words = parts.clone().into_iter().filter(|part| image(part).is_none());
        if images.peek().is_some() && words.all(is_wordless) {
            out.extend_from_slice(br#""""#);
        } else {
            text(out, parts.into_iter().filter(|part| image(part).is_none()));
        }
        if images.peek().is_some() {
            list(out, "images", images, json::string);
        }
        out.put_u8(b'}');
    }

    fn assistant(out: &mut BytesMut, message: &Own<'_>, _: &Style) {
        let parts = message.parts;
        let mut calls = parts.iter().enumerate().filter_map(call).peekable();
        out.extend_from_slice(br#"{"role":"assistant","content":"#);
        if calls.peek().is_some() && parts.iter().all(is_wordless) {
            out.extend_from_slice(br#""""#);
        } else {
            text(out, parts);
        }
        let mut thoughts = message.thoughts().map(|(text, _)| text).peekable();
        if thoughts.peek().is_some() {
            json::quoted(out, r#","thinking":"#, &thoughts.collect::<String>(), "");
        }
        if calls.peek().is_some() {
            let write = |out: &mut BytesMut, (at, call)| {
                tool_call(out, message.id(call), call, &message.arguments_object(at, call))
            };
            list(out, "tool_calls", calls, write);
        }
        out.put_u8(b'}');
    }

    /// Writes the result of a call. Versions before 0.12 ignore id and name, and use the order.
    fn results<'a>(
        out: &mut BytesMut,
        results: &[SentResult<'_>],
        _: impl IntoIterator<Item = &'a Part> + Clone,
        _: &Style,
    ) {
        for &SentResult { id, tool, outcome } in results {
            json::quoted(out, r#"{"role":"tool","tool_name":"#, &legal_name(tool), "");
            json::quoted(out, r#","tool_call_id":"#, id, r#","content":"#);
            text(out, &outcome.parts);
            out.put_u8(b'}');
        }
    }
}

fn call((at, part): (usize, &Part)) -> Option<(usize, &ToolCall)> {
    match part {
        Part::ToolCall(call) => Some((at, call)),
        _ => None,
    }
}

/// Whether there is a form for `media`: only for pictures, which Ollama does not fetch.
pub(super) fn takes(media: &Media) -> bool {
    media::is_picture(media) && media::data(media).is_some()
}

/// The bytes of a picture in base64.
fn image(part: &Part) -> Option<&str> {
    let Part::Media(media) = part else { return None };
    media::data(media).filter(|_| takes(media))
}

fn tool_call(out: &mut BytesMut, id: &str, call: &ToolCall, arguments: &str) {
    json::quoted(out, r#"{"id":"#, id, "");
    json::quoted(out, r#","function":{"name":"#, &legal_name(&call.tool), r#","arguments":"#);
    out.extend_from_slice(arguments.as_bytes());
    out.extend_from_slice(b"}}");
}

/// Writes a field of a message that is a list.
fn list<T>(
    out: &mut BytesMut,
    name: &str,
    items: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut BytesMut, T),
) {
    json::quoted(out, ",", name, ":[");
    for item in items {
        json::separate(out);
        write(out, item);
    }
    out.put_u8(b']');
}
