//! Lenient types for the JSON of servers: numbers, texts and arguments may be missing, `null` or of another type.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
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

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counts;
        impl<'de> Visitor<'de> for Counts {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }
            fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
                Ok(Count(Some(count)))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Count, E> {
                Ok(Count(None))
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be whole and small"
            )]
            fn visit_f64<E>(self, count: f64) -> Result<Count, E> {
                let whole = count.fract() == 0.0 && (0.0..1e15).contains(&count);
                Ok(Count(whole.then_some(count as u64)))
            }
            fn visit_str<E>(self, count: &str) -> Result<Count, E> {
                Ok(Count(count.trim().parse().ok()))
            }
            fn visit_unit<E>(self) -> Result<Count, E> {
                Ok(Count(None))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Count, E> {
                Ok(Count(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Count, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Count(None))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Count, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Count(None))
            }
        }
        deserializer.deserialize_any(Counts)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }
            fn visit_unit<E>(self) -> Result<Text<'de>, E> {
                Ok(Text(None))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(value.to_string()))))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(value.to_string()))))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(value.to_string()))))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(value.to_string()))))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text<'de>, A::Error> {
                let mut all = String::new();
                while let Some(Text(part)) = parts.next_element()? {
                    all.push_str(&part.unwrap_or_default());
                }
                Ok(Text(Some(Cow::Owned(all))))
            }
            fn visit_map<A: MapAccess<'de>>(self, part: A) -> Result<Text<'de>, A::Error> {
                #[derive(Deserialize)]
                struct Part {
                    text: Option<Value>,
                }
                let part = Part::deserialize(de::value::MapAccessDeserializer::new(part))?;
                let text = part.text.as_ref().and_then(Value::as_str).map(str::to_owned);
                Ok(Text(text.map(Cow::Owned)))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Args;
        impl<'de> Visitor<'de> for Args {
            type Value = Arguments<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("arguments")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Arguments(Text(Some(Cow::Borrowed(text)))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Arguments(Text(Some(Cow::Owned(text.to_owned())))))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Arguments(Text(None)))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Arguments(Text(Some(Cow::Owned(value.to_string())))))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
                Ok(Arguments(Text(Some(Cow::Owned(value.to_string())))))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
                Ok(Arguments(Text(Some(Cow::Owned(value.to_string())))))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
                Ok(Arguments(Text(Some(Cow::Owned(value.to_string())))))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let object = Value::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Arguments(Text(Some(Cow::Owned(object.to_string())))))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                let list = Vec::<Value>::deserialize(de::value::SeqAccessDeserializer::new(seq))?;
                let text = (!list.is_empty()).then(|| Cow::Owned(Value::from(list).to_string()));
                Ok(Arguments(Text(text)))
            }
        }
        deserializer.deserialize_any(Args)
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
