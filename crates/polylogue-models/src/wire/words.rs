//! What messages say, in the words and names that every provider takes.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use polylogue_core::{Call, Media, Part};
use serde_json::{Value, json};

use super::json;

/// Stands where a message would otherwise have no content, which providers refuse.
const NOTHING: &str = "(no content)";

/// The name of a tool as providers allow it in a history. Models invent names with other characters, and a history that
/// repeats them would always be refused.
pub(crate) fn legal_name(name: &str) -> Cow<'_, str> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match name.len() {
        0 => Cow::Borrowed("unnamed"),
        1..=64 if name.chars().all(is_legal) => Cow::Borrowed(name),
        _ => name.chars().take(64).map(|c| if is_legal(c) { c } else { '_' }).collect(),
    }
}

/// The arguments of a call as an object, even where the model wrote none.
pub(crate) fn arguments(call: &Call) -> Cow<'_, Value> {
    match &call.args {
        Value::Object(_) => Cow::Borrowed(&call.args),
        other => Cow::Owned(json!({ "unparsed": other })),
    }
}

pub(crate) fn is_wordless(part: &Part) -> bool {
    match part {
        Part::Call(_) | Part::Thought(_) | Part::Note(_) | Part::Cut(_) => true,
        part => part.is_blank(),
    }
}

/// `parts` as one JSON string, joined by blank lines; never an empty one.
pub(crate) fn text<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part>) {
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

/// One part as text, inside a JSON string. Thoughts are never sent, and calls stand elsewhere.
pub(crate) fn words(out: &mut BytesMut, part: &Part) {
    match part {
        part if is_wordless(part) => {}
        Part::Text(text) => json::escape(out, text),
        Part::Data(value) => json::escape(out, &value.to_string()),
        Part::Media(media) => json::escape(out, &in_words(media)),
        _ => {}
    }
}

/// Where only words are allowed, a reference stands for what it refers to; inline data would only be noise there.
pub(crate) fn in_words(media: &Media) -> String {
    match media.url.starts_with("data:") {
        true => format!("[{}]", media.kind),
        false => format!("[{}: {}]", media.kind, media.url),
    }
}
