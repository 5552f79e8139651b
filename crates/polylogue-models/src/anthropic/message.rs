//! Single messages of a request to Anthropic.

use bytes::{BufMut, BytesMut};
use polylogue_core::{Media, Part, ToolCall, ToolStatus};
use serde_json::Value;

use super::decode::{BLOCK, CITATIONS, Messages, REDACTED, SIGNATURE};
use crate::wire::ids::legal_id;
use crate::wire::json;
use crate::wire::media::{self, PDF};
use crate::wire::pictures;
use crate::wire::protocol::{Own, SentResult, Style, WriteMessages};
use crate::wire::words::{NOTHING, is_wordless, legal_name, words};

/// The mark of a block up to which the prompt is cached.
pub(super) const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// The mark of a block that is the same in every request, if the prompt is cached for an hour.
pub(super) const LONG_MARK: &[u8] = br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

/// The mark of a block that is the same in every request.
pub(super) const fn first_mark(style: &Style) -> &'static [u8] {
    if style.long_marks { LONG_MARK } else { MARK }
}

impl WriteMessages for Messages {
    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, _: &Style) {
        message(out, "user", |out| parts.into_iter().for_each(|part| content(out, part, true)));
    }

    /// Writes a system message within the conversation.
    fn system(out: &mut BytesMut, text: &str, _: &Style) {
        message(out, "system", |out| content(out, &Part::text(text), false));
    }

    /// Writes an assistant message: its blocks in order, each with its seal if that is sent.
    fn assistant(out: &mut BytesMut, own: &Own<'_>, _: &Style) {
        message(out, "assistant", |out| {
            for (at, part) in own.parts.iter().enumerate() {
                match (part, own.seal(at, part)) {
                    (Part::ToolCall(call), _) => {
                        tool_use(out, own.id(call), call, &own.arguments_object(at, call))
                    }
                    (Part::Thought(text), Some(seal)) => thought(out, text, seal),
                    (Part::Text(text), Some(seal)) => sealed_text(out, text, seal),
                    // Media cannot be in an assistant message.
                    (part, _) => content(out, part, false),
                }
            }
        });
    }

    /// Writes a message with results, all of one turn, and then the words of others.
    fn results<'a>(
        out: &mut BytesMut,
        results: &[SentResult<'_>],
        words: impl IntoIterator<Item = &'a Part> + Clone,
        style: &Style,
    ) {
        message(out, "user", |out| {
            results.iter().for_each(|one| result(out, one, style));
            words.into_iter().for_each(|part| content(out, part, true));
        });
    }
}

fn result(out: &mut BytesMut, &SentResult { id, outcome, .. }: &SentResult<'_>, style: &Style) {
    block(out, "tool_result");
    json::quoted(out, r#","tool_use_id":"#, &legal_id(id), r#","content":"#);
    blocks(out, |out| {
        for part in &outcome.parts {
            content(out, part, style.vision && (pictures::is_shown(part) || is_document(part)));
        }
    });
    if outcome.status == ToolStatus::Failed {
        out.extend_from_slice(br#","is_error":true"#);
    }
    out.put_u8(b'}');
}

/// Writes a thought with what its provider added: the signature, or the thought itself in a form that only the provider can read.
fn thought(out: &mut BytesMut, text: &str, seal: &Value) {
    if let Some(data) = seal.get(REDACTED) {
        block(out, "redacted_thinking");
        field(out, "data", data);
    } else if let Some(signature) = seal.get(SIGNATURE) {
        block(out, "thinking");
        json::quoted(out, r#","thinking":"#, text, "");
        field(out, "signature", signature);
    } else {
        return;
    }
    out.put_u8(b'}');
}

/// Writes a text with its citations, or a block of a tool that the provider executed itself.
fn sealed_text(out: &mut BytesMut, text: &str, seal: &Value) {
    match (seal.get(BLOCK), seal.get(CITATIONS)) {
        (Some(of_provider), _) => {
            json::separate(out);
            json::value(out, of_provider);
        }
        (None, Some(citations)) if !text.trim().is_empty() => {
            block(out, "text");
            json::quoted(out, r#","text":"#, text, "");
            field(out, "citations", citations);
            out.put_u8(b'}');
        }
        _ => text_block(out, |out| json::escape(out, text)),
    }
}

fn tool_use(out: &mut BytesMut, id: &str, call: &ToolCall, arguments: &str) {
    block(out, "tool_use");
    json::quoted(out, r#","id":"#, &legal_id(id), "");
    json::quoted(out, r#","name":"#, &legal_name(&call.tool), r#","input":"#);
    out.extend_from_slice(arguments.as_bytes());
    out.put_u8(b'}');
}

/// Writes a part of a message, if it says anything; media as such or in words.
fn content(out: &mut BytesMut, part: &Part, media: bool) {
    match part {
        part if is_wordless(part) => {}
        Part::Media(file) if media && takes(file) => media_block(out, file),
        part => text_block(out, |out| words(out, part)),
    }
}

/// Whether there is a form for `media`: pictures and documents, by URL, too.
pub(super) fn takes(media: &Media) -> bool {
    (media::is_picture(media) || media.media_type == PDF) && media::source(media).is_some()
}

fn media_block(out: &mut BytesMut, media: &Media) {
    block(out, if media.media_type == PDF { "document" } else { "image" });
    match media::data(media) {
        Some(data) => {
            json::quoted(out, r#","source":{"type":"base64","media_type":"#, &media.media_type, "");
            json::quoted(out, r#","data":"#, data, "");
        }
        None => {
            json::quoted(out, r#","source":{"type":"url","url":"#, &media.url, "");
        }
    }
    out.extend_from_slice(b"}}");
}

fn is_document(part: &Part) -> bool {
    matches!(part, Part::Media(media) if media.media_type == PDF && media::data(media).is_some())
}

fn message(out: &mut BytesMut, role: &str, write: impl FnOnce(&mut BytesMut)) {
    json::quoted(out, r#"{"role":"#, role, r#","content":"#);
    blocks(out, write);
    out.put_u8(b'}');
}

/// Writes a list of blocks, which must not be empty.
fn blocks(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    out.put_u8(b'[');
    let start = out.len();
    write(out);
    if out.len() == start {
        text_block(out, |out| out.extend_from_slice(NOTHING.as_bytes()));
    }
    out.put_u8(b']');
}

/// Writes a text block; `words` writes the text within its quotes.
pub(super) fn text_block(out: &mut BytesMut, words: impl FnOnce(&mut BytesMut)) {
    block(out, "text");
    out.extend_from_slice(br#","text":""#);
    words(out);
    out.extend_from_slice(br#""}"#);
}

/// Begins a block of a list.
fn block(out: &mut BytesMut, kind: &str) {
    json::separate(out);
    json::quoted(out, r#"{"type":"#, kind, "");
}

fn field(out: &mut BytesMut, name: &str, value: &Value) {
    json::quoted(out, ",", name, ":");
    json::value(out, value);
}
