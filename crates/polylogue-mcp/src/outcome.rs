//! The result of a call as a `ToolResult`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use polylogue_core::{Media, Money, Part, ToolResult, ToolStatus};
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::Value;

use crate::expand::Secrets;

/// The key of a tool's metadata with the maximum cost of a call, in US dollars.
pub(crate) const MAX_COST: &str = "polylogue/max_cost";
/// The key of a result's metadata with the cost of the call, in US dollars.
const COST: &str = "polylogue/cost";

/// The amount of money in metadata; `None` for what is no amount, because servers write it.
pub(crate) fn dollars(value: &Value) -> Option<Money> {
    value.as_f64().filter(|amount| amount.is_finite() && *amount >= 0.0).map(Money::dollars)
}

/// `outcome` for the log, without keys that its server was given and repeats, and within the bounds of a result.
pub(crate) fn finished(mut outcome: ToolResult, secrets: &Secrets) -> ToolResult {
    for part in &mut outcome.parts {
        match part {
            Part::Text(text) => *text = secrets.without_keys(text).into(),
            Part::Data(value) => remove_keys(value, secrets),
            _ => {}
        }
    }
    outcome.truncated()
}

fn remove_keys(value: &mut Value, secrets: &Secrets) {
    match value {
        Value::String(text) => *text = secrets.without_keys(text),
        Value::Array(values) => values.iter_mut().for_each(|value| remove_keys(value, secrets)),
        Value::Object(fields) => {
            let cleaned = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                remove_keys(&mut value, secrets);
                (secrets.without_keys(&name), value)
            });
            *fields = cleaned.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The tool result of `result` for the model, with at most `media_bytes` of images and audio, to be [`finished`].
pub(crate) fn outcome(result: CallToolResult, media_bytes: usize) -> ToolResult {
    let is_error = result.is_error.unwrap_or_default();
    let cost = result.meta.as_ref().and_then(|meta| dollars(meta.get(COST)?));
    let value = result.structured_content;
    let mut left = media_bytes;
    // Servers also send structured content as text, for clients without support for it: list it once.
    let repeats = |part: &Part| match (part, &value) {
        (Part::Text(text), Some(value)) => {
            serde_json::from_str::<Value>(text).is_ok_and(|text| text == *value)
        }
        _ => false,
    };
    let parts = result.content.into_iter().map(|block| part(block, &mut left));
    let mut parts: Vec<Part> = parts.filter(|part| !part.is_blank() && !repeats(part)).collect();
    parts.extend(value.map(Part::Data));
    if parts.is_empty() {
        parts.push(Part::text(if is_error { "it failed, and did not say why" } else { "(no result)" }));
    }
    let status = if is_error { ToolStatus::Failed } else { ToolStatus::Done };
    let outcome = ToolResult::new(status, parts);
    match cost {
        Some(cost) => outcome.with_cost(cost),
        None => outcome,
    }
}

/// The contents of a resource for the model, to be [`finished`].
pub(crate) fn of_contents(contents: Vec<ResourceContents>, media_bytes: usize) -> ToolResult {
    let mut left = media_bytes;
    let mut parts: Vec<Part> = contents.into_iter().map(|contents| resource(contents, &mut left)).collect();
    if parts.is_empty() {
        parts.push(Part::text("(nothing is in it)"));
    }
    ToolResult::new(ToolStatus::Done, parts)
}

fn part(block: ContentBlock, left: &mut usize) -> Part {
    match block {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image) => media("picture", &image.mime_type, &image.data, left),
        ContentBlock::Audio(audio) => media("sound", &audio.mime_type, &audio.data, left),
        ContentBlock::Resource(embedded) => resource(embedded.resource, left),
        ContentBlock::ResourceLink(link) => Part::text(described(&link)),
        _ => Part::text("(something of a kind that is not known here is left out)"),
    }
}

fn resource(contents: ResourceContents, left: &mut usize) -> Part {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => Part::text(format!("{uri}:\n{text}")),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.unwrap_or_default();
            let is_shown = kind.starts_with("image/") || kind.starts_with("audio/");
            let part = if is_shown {
                media("file", &kind, &blob, left)
            } else {
                left_out("file", &kind, blob.len())
            };
            match part {
                Part::Text(text) => Part::text(format!("{uri}: {text}")),
                part => part,
            }
        }
        _ => Part::text("(a resource of a kind that is not known here is left out)"),
    }
}

/// A resource as one line.
pub(crate) fn described(link: &Resource) -> String {
    let mut line = format!("{}: {}", link.name, link.uri);
    if let Some(about) = &link.description {
        line.push_str(&format!(" ({about})"));
    }
    line
}

/// An image or audio, or a text with the reason why it is missing. Invalid base64 would make providers refuse every later
/// request.
fn media(what: &str, kind: &str, data: &str, left: &mut usize) -> Part {
    let data: String = data.split_ascii_whitespace().collect();
    if !is_type(kind) || data.is_empty() || STANDARD.decode(&data).is_err() {
        return Part::text(format!(
            "(a {what} is left out: what the server sent is not a picture or sound in base64)"
        ));
    }
    if data.len() > *left {
        return left_out(what, kind, data.len());
    }
    *left -= data.len();
    Part::Media(Media { media_type: kind.to_owned(), url: format!("data:{kind};base64,{data}").into() })
}

fn left_out(what: &str, kind: &str, base64: usize) -> Part {
    let kind = if is_type(kind) { kind } else { "no known type" };
    Part::text(format!("(a {what} of {kind} and about {} bytes is left out)", base64 / 4 * 3))
}

/// Whether `kind` is a media type, without parameters.
fn is_type(kind: &str) -> bool {
    let is_word = |word: &str| {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
        (1..=100).contains(&word.len()) && word.chars().all(is_legal)
    };
    kind.split_once('/').is_some_and(|(one, other)| is_word(one) && is_word(other))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(result: Value) -> (ToolStatus, Vec<Part>) {
        let outcome = outcome(serde_json::from_value(result).unwrap(), 16);
        (outcome.status, outcome.parts)
    }

    fn texts(content: Value) -> Vec<String> {
        let (_, parts) = parts(json!({ "content": content }));
        let text = |part: Part| match part {
            Part::Text(text) => text.to_string(),
            other => format!("{other:?}"),
        };
        parts.into_iter().map(text).collect()
    }

    #[test]
    fn metadata_can_say_what_a_call_cost() {
        let cost = |meta: Value| {
            let result = json!({"content": [{"type": "text", "text": "one"}], "_meta": meta});
            outcome(serde_json::from_value(result).unwrap(), 16).own_cost()
        };
        assert_eq!(cost(json!({"polylogue/cost": 0.25})), Some(Money::dollars(0.25)));
        for nothing in [json!({}), json!({"polylogue/cost": "0.25"}), json!({"polylogue/cost": -1})] {
            assert_eq!(cost(nothing), None);
        }
    }

    #[test]
    fn texts_links_and_resources_are_text() {
        let content = json!([
            {"type": "text", "text": "one"},
            {"type": "text", "text": " "},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "A file"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "application/zip", "blob": "AAAAAAAA"}},
        ]);
        let wanted = [
            "one",
            "a: file:///a (A file)",
            "file:///b:\ninside",
            "file:///c: (a file of application/zip and about 6 bytes is left out)",
        ];
        assert_eq!(texts(content), wanted);
    }

    #[test]
    fn pictures_are_media_within_bounds() {
        let picture = |data: &str| json!({"type": "image", "mimeType": "image/png", "data": data});
        let (_, parts) = parts(json!({"content": [picture("AAAA")]}));
        let url = "data:image/png;base64,AAAA".into();
        assert_eq!(parts, [Part::Media(Media { media_type: "image/png".into(), url })]);
        let left_out = "(a picture of image/png and about 15 bytes is left out)";
        assert_eq!(texts(json!([picture(&"AAAA".repeat(5))])), [left_out]);
        let wrong = "(a picture is left out: what the server sent is not a picture or sound in base64)";
        assert_eq!(texts(json!([picture("no base64!")])), [wrong]);
        assert_eq!(texts(json!([{"type": "image", "mimeType": "image/png;x,", "data": "AAAA"}])), [wrong]);
    }

    #[test]
    fn a_structured_result_is_one_data_part() {
        let value = json!({"sum": 3});
        let (_, found) = parts(json!({
            "content": [{"type": "text", "text": "{ \"sum\": 3 }"}, {"type": "text", "text": "note"}],
            "structuredContent": value,
        }));
        assert_eq!(found, [Part::text("note"), Part::Data(value)]);
    }

    #[test]
    fn keys_of_the_server_are_removed_from_texts_and_data_before_they_are_cut() {
        let mut secrets = Secrets::default();
        secrets.add("API_KEY", "hunter22".into());
        let data = json!({"hunter22": ["a hunter22", 7], "folder": "/srv"});
        let long = format!("{}hunter22", "x".repeat(ToolResult::MAX_BYTES));
        let parts = vec![Part::text("with hunter22"), Part::Data(data), Part::text(long)];
        let outcome = finished(ToolResult::new(ToolStatus::Done, parts), &secrets);
        assert_eq!(outcome.parts[0], Part::text("with ***"));
        assert_eq!(outcome.parts[1], Part::Data(json!({"***": ["a ***", 7], "folder": "/srv"})));
        assert!(matches!(&outcome.parts[2], Part::Text(text) if text.ends_with("xx***")));
    }

    #[test]
    fn failures_are_failures_even_without_a_word() {
        let failed = parts(json!({"content": [], "isError": true}));
        assert_eq!(failed, (ToolStatus::Failed, vec![Part::text("it failed, and did not say why")]));
        assert_eq!(parts(json!({"content": []})), (ToolStatus::Done, vec![Part::text("(no result)")]));
    }
}
