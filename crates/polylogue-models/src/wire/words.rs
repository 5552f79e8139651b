//! Texts and names in the forms that every provider accepts.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use polylogue_core::{Media, Part, ToolCall};
use serde_json::{Value, json};

use super::json;

/// The content of a message that would otherwise be empty, which providers refuse.
pub(crate) const NOTHING: &str = "(no content)";

/// The name of a tool with only the characters that providers accept in a history. Models invent names with others, and providers
/// would refuse every later request.
pub(crate) fn legal_name(name: &str) -> Cow<'_, str> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match name.len() {
        0 => Cow::Borrowed("unnamed"),
        1..=64 if name.chars().all(is_legal) => Cow::Borrowed(name),
        _ => name.chars().take(64).map(|c| if is_legal(c) { c } else { '_' }).collect(),
    }
}

/// The arguments of a call as an object, even if the model wrote none.
pub(crate) fn arguments(call: &ToolCall) -> Cow<'_, Value> {
    match &call.args {
        Value::Object(_) => Cow::Borrowed(&call.args),
        other => Cow::Owned(json!({ "unparsed": other })),
    }
}

/// Whether an object in `json`, the text of `value`, has a key twice: the text has more keys than the value. Each is before a colon outside
/// of strings.
pub(crate) fn repeats_keys(json: &str, value: &Value) -> bool {
    let (mut in_string, mut is_escaped, mut keys) = (false, false, 0_usize);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_string = !in_string,
            b':' if !in_string => keys += 1,
            _ => {}
        }
    }
    keys > keys_of(value)
}

fn keys_of(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(keys_of).sum(),
        Value::Object(fields) => fields.len() + fields.values().map(keys_of).sum::<usize>(),
        _ => 0,
    }
}

pub(crate) fn is_wordless(part: &Part) -> bool {
    match part {
        Part::ToolCall(_) | Part::Thought(_) | Part::Note(_) | Part::Cut(_) => true,
        part => part.is_blank(),
    }
}

/// `parts` as one JSON string, joined by blank lines [as texts are](polylogue_core::text_of); never an empty one.
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

/// One part as text, inside a JSON string. Reasoning is never sent, and calls are sent in their own field.
pub(crate) fn words(out: &mut BytesMut, part: &Part) {
    match part {
        part if is_wordless(part) => {}
        Part::Text(text) => json::escape(out, text),
        Part::Data(value) => json::escape(out, &value.to_string()),
        Part::Media(media) => json::escape(out, &in_words(media)),
        _ => {}
    }
}

/// Where only text is allowed, media is replaced by a reference; inline data would be useless there.
pub(crate) fn in_words(media: &Media) -> String {
    match media.url.starts_with("data:") {
        true => format!("[{}]", media.media_type),
        false => format!("[{}: {}]", media.media_type, media.url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_come_twice_are_found_at_any_depth() {
        for (json, repeats) in [
            (r#"{"a": 1, "b": [{"a": 2}, {"a": 3}]}"#, false),
            (r#"{"a:": ":\"a\":1", "b\\": 2, "c\"": {":": "}"}}"#, false),
            ("{}", false),
            (r#"{"a": 1, "a": 1}"#, true),
            (r#"{"a": 1, "b": {"c": [{"d": ":", "d": 2}]}}"#, true),
            (r#"{"a": {"b": 1, "c": 2}, "a": {}}"#, true),
            // The same key in another form.
            (r#"{"a": 1, "\u0061": 2}"#, true),
        ] {
            let value = serde_json::from_str(json).unwrap();
            assert_eq!(repeats_keys(json, &value), repeats, "{json}");
        }
    }
}
