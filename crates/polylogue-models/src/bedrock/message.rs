//! Single messages of a request to Bedrock.

use bytes::BytesMut;
use polylogue_core::{Part, ToolCall};
use serde_json::Value;

use super::decode::Converse;
use super::media::{self, Readable, readable};
use crate::media_limits::MediaLimits;
use crate::wire::ids::legal_id;
use crate::wire::json::{self, separate};
use crate::wire::protocol::{Own, SentResult, Style, WriteMessages};
use crate::wire::words::{NOTHING, is_wordless, legal_name, text, words};

impl WriteMessages for Converse {
    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, style: &Style) {
        out.extend_from_slice(br#"{"role":"user","content":["#);
        content(out, parts, style.media);
        end(out);
    }

    fn assistant(out: &mut BytesMut, message: &Own<'_>, _: &Style) {
        out.extend_from_slice(br#"{"role":"assistant","content":["#);
        for (at, part) in message.parts.iter().enumerate() {
            match part {
                Part::Thought(thought) => reasoning(out, thought, message.seal(at, part)),
                Part::ToolCall(call) => {
                    tool_use(out, message.id(call), call, &message.arguments_object(at, call))
                }
                part if is_wordless(part) => {}
                part => block(out, part),
            }
        }
        end(out);
    }

    /// Writes the results of calls, and then `words`.
    fn results<'a>(
        out: &mut BytesMut,
        results: &[SentResult<'_>],
        words: impl IntoIterator<Item = &'a Part> + Clone,
        style: &Style,
    ) {
        out.extend_from_slice(br#"{"role":"user","content":["#);
        for SentResult { id, outcome, .. } in results {
            separate(out);
            json::quoted(out, r#"{"toolResult":{"toolUseId":"#, &legal_id(id), "");
            // The field for its status is left out: only some models have it, and the text of a failure says that it is one.
            out.extend_from_slice(br#","content":[{"text":"#);
            text(out, &outcome.parts);
            out.extend_from_slice(b"}]}}");
        }
        content(out, words, style.media);
        end(out);
    }
}

/// Ends a message, which is never empty.
fn end(out: &mut BytesMut) {
    if out.last() == Some(&b'[') {
        block(out, &Part::text(NOTHING));
    }
    out.extend_from_slice(b"]}");
}

/// Writes texts, pictures and documents. A message with documents has a text, too, which also names what would be more than
/// a message can have.
fn content<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, limits: &MediaLimits) {
    let most = limits.in_message.unwrap_or((usize::MAX, usize::MAX));
    let (mut has_text, mut pictures, mut documents) = (false, 0, 0);
    for part in parts.into_iter().filter(|part| !is_wordless(part)) {
        let media = if let Part::Media(media) = part { readable(media) } else { None };
        match media {
            Some(media @ Readable::Image { .. }) if pictures < most.0 => {
                pictures += 1;
                separate(out);
                media::block(out, media);
            }
            Some(media @ Readable::Document { .. }) if documents < most.1 => {
                documents += 1;
                separate(out);
                media::block(out, media);
            }
            _ => {
                block(out, part);
                has_text = true;
            }
        }
    }
    if documents > 0 && !has_text {
        block(out, &Part::text(NOTHING));
    }
}

/// Writes a text.
fn block(out: &mut BytesMut, part: &Part) {
    separate(out);
    out.extend_from_slice(br#"{"text":""#);
    words(out, part);
    out.extend_from_slice(br#""}"#);
}

/// Writes a thought as its model wrote it; none without its seal.
fn reasoning(out: &mut BytesMut, thought: &str, seal: Option<&Value>) {
    let field = |name: &str| seal.and_then(|seal| seal.get(name)).and_then(Value::as_str);
    if let Some(data) = field("redacted") {
        separate(out);
        json::quoted(out, r#"{"reasoningContent":{"redactedContent":"#, data, "}}");
    } else if let Some(signature) = field("signature") {
        separate(out);
        json::quoted(out, r#"{"reasoningContent":{"reasoningText":{"text":"#, thought, "");
        json::quoted(out, r#","signature":"#, signature, "}}}");
    }
}

fn tool_use(out: &mut BytesMut, id: &str, call: &ToolCall, arguments: &str) {
    separate(out);
    json::quoted(out, r#"{"toolUse":{"toolUseId":"#, &legal_id(id), "");
    json::quoted(out, r#","name":"#, &legal_name(&call.tool), r#","input":"#);
    out.extend_from_slice(arguments.as_bytes());
    out.extend_from_slice(b"}}");
}
