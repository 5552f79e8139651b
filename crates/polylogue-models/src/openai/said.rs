//! The content of a message: a text, or a list of parts, which in Mistral's API have reasoning, too.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::wire::lenient::Text;

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
        struct Saying;
        impl<'de> Visitor<'de> for Saying {
            type Value = Said<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a content")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Said<'de>, E> {
                Ok(of(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Said<'de>, E> {
                Ok(of(Cow::Owned(text.to_owned())))
            }
            fn visit_unit<E>(self) -> Result<Said<'de>, E> {
                Ok(Said::default())
            }
            fn visit_bool<E>(self, value: bool) -> Result<Said<'de>, E> {
                Ok(of(Cow::Owned(value.to_string())))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Said<'de>, E> {
                Ok(of(Cow::Owned(value.to_string())))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Said<'de>, E> {
                Ok(of(Cow::Owned(value.to_string())))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Said<'de>, E> {
                Ok(of(Cow::Owned(value.to_string())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Said<'de>, A::Error> {
                Ok(of_parts(&Vec::deserialize(SeqAccessDeserializer::new(parts))?))
            }
            fn visit_map<A: MapAccess<'de>>(self, part: A) -> Result<Said<'de>, A::Error> {
                Ok(of_parts(&[Value::deserialize(MapAccessDeserializer::new(part))?]))
            }
        }
        deserializer.deserialize_any(Saying)
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
