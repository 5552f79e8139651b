//! The content of a message: a text, or a list of parts, which in Mistral's API have reasoning, too.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::wire::lenient::{Text, Written};

/// The field of a part with reasoning that has its signature.
pub(super) const SIGNATURE: &str = "signature";

/// What a message or a piece of one says.
#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    /// All of it, if it is a text.
    pub(crate) text: Text<'a>,
    /// Its parts in order, if it is a list.
    pub(crate) parts: Vec<SaidPart>,
}

/// A part of a content.
#[derive(Debug, PartialEq)]
pub(crate) enum SaidPart {
    Text(String),
    /// Reasoning, and its signature, if it has one.
    Thought {
        text: String,
        signature: Option<Value>,
    },
}

impl<'de: 'a, 'a> Deserialize<'de> for Said<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::Text(text) => of(text),
            Written::Other(Value::Null) => Self::default(),
            Written::Other(Value::Array(parts)) => of_parts(&parts),
            Written::Other(part @ Value::Object(_)) => of_parts(&[part]),
            Written::Other(other) => of(Cow::Owned(other.to_string())),
        })
    }
}

fn of(text: Cow<'_, str>) -> Said<'_> {
    Said { text: Text(Some(text)), parts: Vec::new() }
}

fn of_parts(parts: &[Value]) -> Said<'static> {
    Said { text: Text(None), parts: parts.iter().filter_map(part).collect() }
}

/// A part that says something.
fn part(part: &Value) -> Option<SaidPart> {
    let Some(thinking) = part.get("thinking") else {
        return words(part).filter(|text| !text.is_empty()).map(|text| SaidPart::Text(text.to_owned()));
    };
    let text: String = match thinking {
        Value::Array(parts) => parts.iter().filter_map(words).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let signature = part.get(SIGNATURE).filter(|signature| !signature.is_null()).cloned();
    (!text.is_empty() || signature.is_some()).then_some(SaidPart::Thought { text, signature })
}

/// The text of a part.
fn words(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| part.get("text")?.as_str())
}

/// The seal of reasoning that is a part of a content: it says so, and has the signature.
pub(super) fn chunk(signature: Option<&Value>) -> Value {
    let mut seal = Map::from_iter([("type".to_owned(), "thinking".into())]);
    seal.extend(signature.map(|signature| (SIGNATURE.to_owned(), signature.clone())));
    seal.into()
}

/// Whether `seal` is one of reasoning that is a part of a content.
pub(super) fn is_chunk(seal: &Value) -> bool {
    seal.get("type").is_some_and(|kind| kind == "thinking")
}
