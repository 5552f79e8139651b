//! The JSON of chat-completions replies: one type for whole replies and for pieces of them.
//!
//! Everything is optional, `null` counts as missing, and texts are borrowed from the received bytes. Rare fields are boxed: a reply
//! has thousands of pieces, and each is moved several times.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::said::Said;
use crate::wire::lenient::{Arguments, Count, Text};
use crate::wire::object::Object;

/// The field for reasoning of `DeepSeek`, and of most servers since.
pub(super) const REASONING: &str = "reasoning_content";

#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub(crate) usage: Object<Box<Tokens>>,
    /// The model that replies.
    #[serde(borrow, default)]
    pub(crate) model: Text<'a>,
    /// An error: an object or a text.
    pub(crate) error: Option<IgnoredAny>,
    #[serde(borrow, default)]
    pub(crate) object: Text<'a>,
    /// Some servers use this instead of `error`.
    pub(crate) message: Option<IgnoredAny>,
    pub(crate) detail: Option<IgnoredAny>,
    /// Groq's field for the usage of a streamed reply.
    #[serde(default)]
    pub(crate) x_groq: Object<Box<Groq>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Groq {
    #[serde(default)]
    pub(crate) usage: Object<Box<Tokens>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Choice<'a> {
    #[serde(default)]
    pub(crate) index: Count,
    /// A piece of the reply.
    #[serde(borrow)]
    pub(crate) delta: Option<Content<'a>>,
    /// The whole reply.
    #[serde(borrow)]
    pub(crate) message: Option<Box<Content<'a>>>,
    #[serde(borrow, default)]
    pub(crate) finish_reason: Text<'a>,
    /// An error of the provider behind an aggregator.
    pub(crate) error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Content<'a> {
    #[serde(borrow, default)]
    pub(crate) content: Said<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning: Text<'a>,
    /// OpenRouter's parts of reasoning, some of them encrypted.
    pub(crate) reasoning_details: Option<Vec<Value>>,
    #[serde(borrow, default)]
    pub(crate) refusal: Text<'a>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<Fragment<'a>>>,
    /// The older format of a single tool call.
    #[serde(borrow)]
    pub(crate) function_call: Option<Box<Function<'a>>>,
}

/// A tool call or a piece of one.
#[derive(Debug, Deserialize)]
pub(crate) struct Fragment<'a> {
    #[serde(default)]
    pub(crate) index: Count,
    #[serde(borrow, default)]
    pub(crate) id: Text<'a>,
    #[serde(borrow)]
    pub(crate) function: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Function<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) arguments: Arguments<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Tokens {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Object<Details>,
    /// Mistral's second name for the same, in the same object.
    prompt_token_details: Object<Details>,
    completion_tokens_details: Object<Details>,
    /// DeepSeek's field for cached tokens.
    prompt_cache_hit_tokens: Count,
    /// Mistral's field for cached tokens.
    num_cached_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Count,
    cache_write_tokens: Count,
    reasoning_tokens: Count,
    audio_tokens: Count,
}

impl Tokens {
    /// The usage. A count of zero for a prompt is unknown, since a prompt is never empty.
    pub(crate) fn usage(&self) -> polylogue_core::Usage {
        let Some(input) = self.prompt_tokens.0.filter(|&tokens| tokens > 0) else {
            return polylogue_core::Usage::default();
        };
        let detail = |details: &Object<Details>, pick: fn(&Details) -> Count| {
            details.0.as_ref().and_then(|details| pick(details).0)
        };
        let of_prompt = |pick: fn(&Details) -> Count| {
            detail(&self.prompt_tokens_details, pick).or_else(|| detail(&self.prompt_token_details, pick))
        };
        // Some providers exclude reasoning from the completion, but not from the total.
        let rest = self.total_tokens.0.and_then(|total| total.checked_sub(input));
        let cached =
            of_prompt(|d| d.cached_tokens).or(self.prompt_cache_hit_tokens.0).or(self.num_cached_tokens.0);
        // Some count cached tokens next to the prompt.
        let input =
            cached.filter(|&cached| cached > input).map_or(input, |cached| input.saturating_add(cached));
        polylogue_core::Usage {
            input: Some(input),
            output: rest.max(self.completion_tokens.0),
            cached,
            written: of_prompt(|d| d.cache_write_tokens),
            written_long: None,
            audio: of_prompt(|d| d.audio_tokens).filter(|&tokens| tokens > 0),
            reasoning: detail(&self.completion_tokens_details, |d| d.reasoning_tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::super::said::SaidPart;
    use super::*;
    use polylogue_core::Usage;

    #[test]
    fn texts_are_borrowed_where_they_can_be_and_tolerated_in_every_form() {
        let content =
            |json: &'static str| serde_json::from_str::<Content<'static>>(json).unwrap().content.text.0;
        assert!(matches!(content(r#"{"content":"a"}"#), Some(Cow::Borrowed("a"))));
        assert_eq!(content(r#"{"content":"a\n"}"#).as_deref(), Some("a\n"));
        assert_eq!(content(r#"{"content":null}"#), None);
        assert_eq!(content("{}"), None);
        assert_eq!(content(r#"{"content":7}"#).as_deref(), Some("7"));
        let list = r#"{"content":[{"type":"text","text":"a"},{"type":"x"},"b",{"type":"text","text":"c"}]}"#;
        assert_eq!(content(list), None);
        let parts = serde_json::from_str::<Content<'static>>(list).unwrap().content.parts;
        assert_eq!(parts, ["a", "b", "c"].map(|text| SaidPart::Text(text.into())));
    }

    #[test]
    fn usage_is_what_the_provider_counted_and_unknown_is_not_zero() {
        let usage = |json: &str| serde_json::from_str::<Tokens>(json).unwrap().usage();
        let known = |input, output, cached, reasoning| Usage {
            input: Some(input),
            output,
            cached,
            reasoning,
            ..Usage::default()
        };
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
