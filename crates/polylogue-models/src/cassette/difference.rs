//! Finds the first difference between two requests.

use std::fmt::Write;

use polylogue_core::text::excerpt;
use polylogue_core::{Entry, Params, Request, ToolSpec};
use serde::Serialize;
use serde_json::Value;

/// The request to a model.
#[derive(PartialEq)]
pub(super) struct RequestParts<'a> {
    pub(super) model: &'a str,
    pub(super) system: Option<&'a str>,
    pub(super) tools: &'a [ToolSpec],
    pub(super) params: &'a Params,
    pub(super) entries: Vec<&'a Entry>,
}

impl<'a> RequestParts<'a> {
    pub(super) fn of(request: &Request<'a>, model: &'a str) -> Self {
        let Request { origin: _, system, entries, tools, params, encoded: _, reserved: _ } = *request;
        Self { model, system, tools, params, entries: entries.iter().collect() }
    }
}

/// Describes the first difference; `None` if there is none.
///
/// Causes come first: a changed model, system message or tool is reported, not the conversation that differs because
/// of it.
pub(super) fn first_difference(recorded: &RequestParts<'_>, now: &RequestParts<'_>) -> Option<String> {
    between("model", &recorded.model, &now.model)
        .or_else(|| between("system", &recorded.system, &now.system))
        .or_else(|| between("tools", &recorded.tools, &now.tools))
        .or_else(|| between("params", &recorded.params, &now.params))
        .or_else(|| between("entries", &recorded.entries, &now.entries))
}

/// Compares as JSON values what is not equal, so that every field is described in the same way.
fn between<T: PartialEq + Serialize>(field: &str, recorded: &T, now: &T) -> Option<String> {
    if recorded == now {
        return None;
    }
    between_values(field, Some(&value(recorded)), Some(&value(now)))
}

/// The fields of `side` with a value: a temperature of NaN is written as null, which reads as none.
fn value(side: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(side).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    value
}

fn between_values(path: &str, recorded: Option<&Value>, now: Option<&Value>) -> Option<String> {
    match (recorded, now) {
        (recorded, now) if recorded == now => None,
        (Some(Value::Object(recorded)), Some(Value::Object(now))) => {
            // An entry of another role has other fields; the role is the most useful difference.
            let keys = std::iter::once("role").chain(recorded.keys().chain(now.keys()).map(String::as_str));
            keys.map(|key| (format!("{path}.{key}"), recorded.get(key), now.get(key)))
                .find_map(|(path, recorded, now)| between_values(&path, recorded, now))
        }
        (Some(Value::Array(recorded)), Some(Value::Array(now))) => between_lists(path, recorded, now),
        (Some(Value::String(recorded)), Some(Value::String(now))) => Some(between_texts(path, recorded, now)),
        (recorded, now) => Some(format!("`{path}` was {}, and is {}", in_words(recorded), in_words(now))),
    }
}

fn between_lists(path: &str, recorded: &[Value], now: &[Value]) -> Option<String> {
    let pairs = recorded.iter().zip(now).enumerate();
    let mut inside = pairs.map(|(index, (recorded, now))| (format!("{path}[{index}]"), recorded, now));
    let inside = inside.find_map(|(path, recorded, now)| between_values(&path, Some(recorded), Some(now)));
    inside.or_else(|| {
        let (longer, which) = if recorded.len() > now.len() { (recorded, "was") } else { (now, "is") };
        let surplus = longer.get(recorded.len().min(now.len()))?;
        let items = if recorded.len() == 1 { "item" } else { "items" };
        let lengths = format!("`{path}` had {} {items}, and has {}", recorded.len(), now.len());
        Some(format!("{lengths}; the first without a counterpart {which} {}", in_words(Some(surplus))))
    })
}

/// A value, truncated.
fn in_words(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "not given".to_owned(),
        Some(Value::String(text)) => format!("`{}`", excerpt(text, 80)),
        Some(value) => format!("`{}`", excerpt(&value.to_string(), 80)),
    }
}

/// The surroundings of the first character in which two texts differ.
fn between_texts(path: &str, recorded: &str, now: &str) -> String {
    let place = recorded.chars().zip(now.chars()).take_while(|(recorded, now)| recorded == now).count();
    let (recorded, now) = (around(recorded, place), around(now, place));
    format!("`{path}` differs at character {}: it was `{recorded}`, and is `{now}`", place + 1)
}

/// The characters of `text` around its character `place`, counted from 0, on one line.
fn around(text: &str, place: usize) -> String {
    const REACH: usize = 24;
    let begin = place.saturating_sub(REACH);
    let mut rest = text.chars().skip(begin);
    let mut piece = String::from(if begin > 0 { "…" } else { "" });
    for c in rest.by_ref().take(place - begin + REACH) {
        // White space can be the difference, so it is made visible.
        let _ = if c != ' ' && (c.is_control() || c.is_whitespace()) {
            write!(piece, "{}", c.escape_default())
        } else {
            write!(piece, "{c}")
        };
    }
    if rest.next().is_some() {
        piece.push('…');
    }
    piece
}
