//! The content of a message: a text, or a list of parts, which in Mistral's API have reasoning, too.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::wire::lenient::Text;

/// What a message or a piece of one says.
#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    pub(crate) text: Text<'a>,
    /// Reasoning in a list of parts.
    pub(crate) thought: Option<String>,
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
    Said { text: Text(Some(text)), thought: None }
}

fn of_parts(parts: &[Value]) -> Said<'static> {
    let text: String = parts.iter().filter_map(words).collect();
    let thinking = parts.iter().filter_map(|part| part.get("thinking"));
    let thought: String = thinking
        .flat_map(|thinking| match thinking {
            Value::Array(parts) => parts.iter().filter_map(words).collect::<Vec<_>>(),
            other => other.as_str().into_iter().collect(),
        })
        .collect();
    Said {
        text: Text((!text.is_empty()).then_some(Cow::Owned(text))),
        thought: Some(thought).filter(|t| !t.is_empty()),
    }
}

/// The text of a part.
fn words(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| part.get("text")?.as_str())
}
