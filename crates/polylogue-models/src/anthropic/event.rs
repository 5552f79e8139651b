//! The JSON of Anthropic's replies: one type for whole replies and for events of their streams.

use polylogue_core::Usage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::wire::lenient::{Count, Text};
use crate::wire::object::Object;

/// An event, or a whole message.
#[derive(Debug, Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(default)]
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// The block that begins.
    pub(super) content_block: Option<Box<Value>>,
    /// The message that begins.
    #[serde(borrow)]
    pub(super) message: Option<Box<Begun<'a>>>,
    #[serde(default)]
    pub(super) usage: Object<Box<Tokens>>,
    pub(super) error: Option<IgnoredAny>,
    /// The blocks of a whole message.
    pub(super) content: Option<Vec<Value>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    pub(super) stop_details: Option<Box<Value>>,
}

/// The beginning of a message: what counts of it is its usage. Errors of other APIs have a text here.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Begun<'a> {
    Message {
        #[serde(default)]
        usage: Object<Box<Tokens>>,
    },
    #[serde(borrow)]
    Other(#[allow(dead_code, reason = "it is not read")] Text<'a>),
}

#[derive(Debug, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
    #[serde(borrow, default)]
    pub(super) partial_json: Text<'a>,
    pub(super) citation: Option<Box<Value>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    pub(super) stop_details: Option<Box<Value>>,
}

/// Token counts. Those of a stream are cumulative: later ones replace earlier ones, and what is missing, or 0, stays.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(crate) struct Tokens {
    /// Neither read from a cache nor written to one.
    input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation: Object<Lifetimes>,
    output_tokens: Count,
    output_tokens_details: Object<Details>,
}

/// Tokens written to a cache, by lifetime.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Lifetimes {
    ephemeral_5m_input_tokens: Count,
    ephemeral_1h_input_tokens: Count,
}

impl Lifetimes {
    /// Whether it counts any token.
    fn has_any(&self) -> bool {
        [self.ephemeral_5m_input_tokens, self.ephemeral_1h_input_tokens].iter().any(|count| count.0 > Some(0))
    }
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Details {
    thinking_tokens: Count,
}

impl Tokens {
    /// The counts at the beginning of a message, which say nothing of its output: what they have of it is a placeholder.
    pub(super) fn at_start(self) -> Self {
        Self { output_tokens: Count(None), output_tokens_details: Object(None), ..self }
    }

    /// These counts, with those of `later` where it has any: gateways end a stream with an input of 0, whose beginning had it.
    pub(super) fn then(self, later: &Self) -> Self {
        let of = |later: Count, earlier: Count| match later {
            Count(Some(1..)) => later,
            _ => Count(earlier.0.or(later.0)),
        };
        let by_lifetime = later.cache_creation.0.filter(Lifetimes::has_any);
        Self {
            input_tokens: of(later.input_tokens, self.input_tokens),
            cache_creation_input_tokens: of(
                later.cache_creation_input_tokens,
                self.cache_creation_input_tokens,
            ),
            cache_read_input_tokens: of(later.cache_read_input_tokens, self.cache_read_input_tokens),
            cache_creation: Object(by_lifetime.or(self.cache_creation.0).or(later.cache_creation.0)),
            output_tokens: of(later.output_tokens, self.output_tokens),
            output_tokens_details: Object(later.output_tokens_details.0.or(self.output_tokens_details.0)),
        }
    }

    /// The usage: the input is all of the prompt, from a cache or not. A prompt of zero tokens is unknown.
    pub(super) fn usage(&self) -> Usage {
        let by_lifetime = self.cache_creation.0.map(|of| {
            let count = |tokens: Count| tokens.0.unwrap_or_default();
            count(of.ephemeral_5m_input_tokens).saturating_add(count(of.ephemeral_1h_input_tokens))
        });
        let (read, written) =
            (self.cache_read_input_tokens.0, self.cache_creation_input_tokens.0.or(by_lifetime));
        let cached = read.unwrap_or_default().saturating_add(written.unwrap_or_default());
        let input = self.input_tokens.0.map(|fresh| fresh.saturating_add(cached));
        let Some(input) = input.filter(|tokens| *tokens > 0) else { return Usage::default() };
        Usage {
            input: Some(input),
            output: self.output_tokens.0,
            cached: read,
            written,
            written_long: self.cache_creation.0.and_then(|of| of.ephemeral_1h_input_tokens.0),
            audio: None,
            reasoning: self.output_tokens_details.0.and_then(|of| of.thinking_tokens.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(json: &str) -> Tokens {
        serde_json::from_str(json).unwrap()
    }

    // P21, P40.
    #[test]
    fn the_input_counts_what_a_cache_read_and_wrote_once_and_later_counts_replace_earlier_ones() {
        let first = tokens(
            r#"{"input_tokens":10,"cache_creation_input_tokens":7,"cache_read_input_tokens":100,
                "cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":4},"output_tokens":1}"#,
        );
        let last = tokens(
            r#"{"output_tokens":50,"output_tokens_details":{"thinking_tokens":20},"input_tokens":null}"#,
        );
        let expected = Usage {
            input: Some(117),
            output: Some(50),
            cached: Some(100),
            written: Some(7),
            written_long: Some(4),
            audio: None,
            reasoning: Some(20),
        };
        assert_eq!(first.then(&last).usage(), expected);
        assert_eq!(Tokens::default().then(&first).then(&last).usage(), expected);
        assert_eq!(last.usage(), Usage::default());
        let split = tokens(r#"{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":3}}"#);
        assert_eq!(
            (split.usage().input, split.usage().written, split.usage().written_long),
            (Some(4), Some(3), None)
        );
    }

    /// Gateways count the input at the beginning of a stream or at its end, with 0 at the other place. The output of the beginning is none.
    #[test]
    fn a_count_of_zero_replaces_none_and_the_beginning_has_no_output() {
        let start = tokens(
            r#"{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":7,
                "cache_creation":{"ephemeral_1h_input_tokens":7},"output_tokens":1}"#,
        );
        let zeros = r#""input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,
                "cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0}"#;
        let end = tokens(&format!(r#"{{{zeros},"output_tokens":500}}"#));
        let expected = Usage {
            input: Some(117),
            output: Some(500),
            cached: Some(100),
            written: Some(7),
            written_long: Some(7),
            ..Usage::default()
        };
        assert_eq!(start.at_start().then(&end).usage(), expected);
        let (start, end) = (tokens(&format!(r#"{{{zeros},"output_tokens":0}}"#)), start.then(&end));
        assert_eq!(start.at_start().then(&end).usage(), expected);
        assert_eq!(tokens(r#"{"input_tokens":5,"output_tokens":1}"#).at_start().usage().output, None);
        let nothing_written = tokens(r#"{"output_tokens":0}"#);
        let known = tokens(r#"{"input_tokens":5,"output_tokens":1}"#).at_start().then(&nothing_written);
        assert_eq!((known.usage().input, known.usage().output), (Some(5), Some(0)));
    }
}
