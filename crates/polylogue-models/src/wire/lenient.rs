//! Lenient types for the JSON of servers: numbers, texts and arguments may be missing, `null` or of another type.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A number that may be missing, `null`, or of a wrong type; anything but a whole number counts as missing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

/// A text that may be missing, `null`, or a list of parts that have texts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

impl Text<'_> {
    /// The text, if it is present and not empty.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }
}

/// Arguments of a call: a text, or the object itself from servers that do not write it as text. An empty list counts as missing, because
/// servers in PHP write one for an empty object. Anything else is its JSON, which the model is then prompted to correct.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Arguments<'a>(pub(crate) Text<'a>);

/// What a server wrote: a text, borrowed where it has no escapes, or other JSON.
pub(crate) enum Written<'a> {
    Text(Cow<'a, str>),
    Other(Value),
}

impl<'de: 'a, 'a> Deserialize<'de> for Written<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Anything;
        impl<'de> Visitor<'de> for Anything {
            type Value = Written<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Written::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Written::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Written::Other(Value::Null))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Written::Other(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                Ok(Written::Other(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                Ok(Written::Other(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
                Ok(Written::Other(value.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Value::deserialize(SeqAccessDeserializer::new(list)).map(Written::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(object)).map(Written::Other)
            }
        }
        deserializer.deserialize_any(Anything)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::Number(count) => count.as_u64().or_else(|| whole(count.as_f64()?)),
            Value::String(count) => count.trim().parse().ok(),
            _ => None,
        }))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and small")]
fn whole(count: f64) -> Option<u64> {
    (count.fract() == 0.0 && (0.0..1e15).contains(&count)).then_some(count as u64)
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Written::deserialize(deserializer)? {
            Written::Text(text) => Some(text),
            Written::Other(value) => text_of(&value).map(Cow::Owned),
        }))
    }
}

/// The text of a value: of a list that of its parts, of an object its `text`.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(text_of).collect()),
        Value::Object(part) => part.get("text")?.as_str().map(str::to_owned),
        other => Some(other.to_string()),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Text(match Written::deserialize(deserializer)? {
            Written::Text(text) => Some(text),
            Written::Other(Value::Null) => None,
            Written::Other(Value::Array(list)) if list.is_empty() => None,
            Written::Other(value) => Some(Cow::Owned(value.to_string())),
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_a_text_or_json_and_an_empty_list_is_none() {
        let read = |json: &str| {
            let Arguments(text) = serde_json::from_str(json).unwrap();
            text.0.map(Cow::into_owned)
        };
        for (json, expected) in [
            (r#""{\"a\": 1}""#, Some(r#"{"a": 1}"#)),
            (r#"{"a": 1}"#, Some(r#"{"a":1}"#)),
            ("{}", Some("{}")),
            ("null", None),
            ("[]", None),
            ("[1]", Some("[1]")),
            ("5", Some("5")),
            ("-5", Some("-5")),
            ("0.5", Some("0.5")),
            ("true", Some("true")),
        ] {
            assert_eq!(read(json).as_deref(), expected, "{json}");
        }
    }
}
