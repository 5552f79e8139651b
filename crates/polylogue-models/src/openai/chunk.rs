//! What chat-completions servers send, as far as it is read: one shape for whole replies and for pieces of them.
//!
//! Everything is optional, `null` is as good as nothing, and texts are borrowed from the bytes received. What most
//! pieces lack is boxed: there are thousands in a reply, and each is moved several times while it is read.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    pub(super) usage: Option<Box<Tokens>>,
    /// An object or a text that says what went wrong.
    pub(super) error: Option<IgnoredAny>,
    #[serde(borrow, default)]
    pub(super) object: Text<'a>,
    /// What some servers put in place of `error`.
    pub(super) message: Option<IgnoredAny>,
    pub(super) detail: Option<IgnoredAny>,
    /// Where Groq puts the usage of a streamed reply.
    pub(super) x_groq: Option<Box<Groq>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Groq {
    pub(super) usage: Option<Box<Tokens>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub(super) index: Count,
    /// A piece of the reply.
    #[serde(borrow)]
    pub(super) delta: Option<Content<'a>>,
    /// The whole reply.
    #[serde(borrow)]
    pub(super) message: Option<Box<Content<'a>>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Content<'a> {
    #[serde(borrow, default)]
    pub(super) content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning: Text<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<Fragment<'a>>>,
    /// The form that tool calls had before there were several.
    #[serde(borrow)]
    pub(super) function_call: Option<Box<Function<'a>>>,
}

/// A tool call or a piece of one.
#[derive(Debug, Deserialize)]
pub(super) struct Fragment<'a> {
    #[serde(default)]
    pub(super) index: Count,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Arguments<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
    /// Where DeepSeek puts what came from its cache.
    prompt_cache_hit_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Count,
    reasoning_tokens: Count,
}

impl Tokens {
    /// As ours. A count of nothing for a prompt is no count: no prompt is empty.
    pub(super) fn usage(&self) -> polylogue_core::Usage {
        let Some(input) = self.prompt_tokens.0.filter(|&tokens| tokens > 0) else {
            return polylogue_core::Usage::default();
        };
        let detail = |details: &Option<Details>, pick: fn(&Details) -> Count| {
            details.as_ref().and_then(|details| pick(details).0)
        };
        // Some providers leave reasoning out of the completion, but never out of the total.
        let rest = self.total_tokens.0.and_then(|total| total.checked_sub(input));
        polylogue_core::Usage {
            input: Some(input),
            output: rest.max(self.completion_tokens.0),
            cached: detail(&self.prompt_tokens_details, |d| d.cached_tokens)
                .or(self.prompt_cache_hit_tokens.0),
            reasoning: detail(&self.completion_tokens_details, |d| d.reasoning_tokens),
        }
    }
}

/// A number that may be missing, `null`, or of a wrong type; what is no whole number counts as missing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count(pub(super) Option<u64>);

/// A text that may be missing, `null`, or a list of parts that have texts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Option<Cow<'a, str>>);

impl Text<'_> {
    /// The text, if it is there and not empty.
    pub(super) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }
}

/// Arguments of a call: a text, or the object itself from servers that do not write it as text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Arguments<'a>(pub(super) Text<'a>);

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
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let object = Value::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Arguments(Text(Some(Cow::Owned(object.to_string())))))
            }
        }
        deserializer.deserialize_any(Args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polylogue_core::Usage;

    #[test]
    fn texts_are_borrowed_where_they_can_be_and_tolerated_in_every_form() {
        let content = |json: &'static str| serde_json::from_str::<Content<'static>>(json).unwrap().content.0;
        assert!(matches!(content(r#"{"content":"a"}"#), Some(Cow::Borrowed("a"))));
        assert_eq!(content(r#"{"content":"a\n"}"#).as_deref(), Some("a\n"));
        assert_eq!(content(r#"{"content":null}"#), None);
        assert_eq!(content("{}"), None);
        assert_eq!(content(r#"{"content":7}"#).as_deref(), Some("7"));
        let list = r#"{"content":[{"type":"text","text":"a"},{"type":"x"},"b",{"type":"text","text":"c"}]}"#;
        assert_eq!(content(list).as_deref(), Some("abc"));
    }

    #[test]
    fn usage_is_what_the_provider_counted_and_unknown_is_not_zero() {
        let usage = |json: &str| serde_json::from_str::<Tokens>(json).unwrap().usage();
        let known =
            |input, output, cached, reasoning| Usage { input: Some(input), output, cached, reasoning };
        for (json, expected) in [
            (r#"{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}"#, known(5, Some(2), None, None)),
            (r#"{"prompt_tokens":5,"completion_tokens":0}"#, known(5, Some(0), None, None)),
            (r#"{"prompt_tokens":5,"total_tokens":7.0}"#, known(5, Some(2), None, None)),
            (r#"{"prompt_tokens":5}"#, known(5, None, None, None)),
            (r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#, Usage::default()),
            (r#"{"prompt_tokens":null,"completion_tokens":-1}"#, Usage::default()),
            ("{}", Usage::default()),
            (
                r#"{"prompt_tokens":5,"completion_tokens":2,"total_tokens":10,"prompt_tokens_details":
                   {"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}"#,
                known(5, Some(5), Some(4), Some(3)),
            ),
            (
                r#"{"prompt_tokens":"5","completion_tokens":1,"prompt_cache_hit_tokens":3}"#,
                known(5, Some(1), Some(3), None),
            ),
        ] {
            assert_eq!(usage(json), expected, "{json}");
        }
    }
}
