//! The JSON of Bedrock's replies: one type for whole replies and for events of a stream, each an object with the event's type as its
//! only field.

use polylogue_core::Usage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::wire::lenient::{Arguments, Count, Text};
use crate::wire::object::Object;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chunk<'a> {
    pub(super) message_start: Option<IgnoredAny>,
    #[serde(borrow)]
    pub(super) content_block_start: Option<BlockStart<'a>>,
    #[serde(borrow)]
    pub(super) content_block_delta: Option<BlockDelta<'a>>,
    #[serde(borrow)]
    pub(super) message_stop: Option<MessageStop<'a>>,
    pub(super) metadata: Option<Metadata>,
    /// A whole reply.
    #[serde(borrow)]
    pub(super) output: Option<Output<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(default)]
    pub(super) usage: Object<Tokens>,
    /// An error.
    #[serde(rename = "__type")]
    kind: Option<IgnoredAny>,
    /// Amazon where it refuses a key, and gateways, use these instead.
    message: Option<IgnoredAny>,
    #[serde(rename = "Message")]
    title_message: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

impl Chunk<'_> {
    /// Whether it is an error, whatever the status is.
    pub(super) fn is_error(&self) -> bool {
        let says = self.message.is_some() || self.title_message.is_some() || self.error.is_some();
        self.kind.is_some() || says && self.output.is_none()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockStart<'a> {
    #[serde(default)]
    pub(super) content_block_index: Count,
    #[serde(borrow)]
    pub(super) start: Option<Content<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockDelta<'a> {
    #[serde(default)]
    pub(super) content_block_index: Count,
    #[serde(borrow)]
    pub(super) delta: Option<Content<'a>>,
}

/// A block of content, or a piece of one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Content<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_use: Option<ToolUse<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Reasoning<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse<'a> {
    #[serde(borrow, default)]
    pub(super) tool_use_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    /// A text in a stream, and an object in a whole reply.
    #[serde(borrow, default)]
    pub(super) input: Arguments<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reasoning<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
    #[serde(borrow, default)]
    pub(super) redacted_content: Text<'a>,
    /// In a whole reply.
    #[serde(borrow)]
    pub(super) reasoning_text: Option<ReasoningText<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReasoningText<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageStop<'a> {
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) usage: Object<Tokens>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Output<'a> {
    #[serde(borrow)]
    pub(super) message: Option<Message<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Vec<Content<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Tokens {
    /// Without what was read from a cache or written to one.
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_write_input_tokens: Count,
    /// What was written, by lifetime. Anything but a list counts as missing.
    cache_details: Value,
}

impl Tokens {
    /// The usage. A count of zero for a prompt is unknown, since a prompt is never empty.
    pub(super) fn usage(&self) -> Usage {
        let (cached, written) = (self.cache_read_input_tokens.0, self.cache_write_input_tokens.0);
        let sum = |more: Option<u64>, all: u64| all.saturating_add(more.unwrap_or(0));
        let input = self.input_tokens.0.map(|fresh| sum(cached, sum(written, fresh)));
        let Some(input) = input.filter(|tokens| *tokens > 0) else { return Usage::default() };
        Usage {
            input: Some(input),
            output: self.output_tokens.0,
            cached,
            written,
            written_long: self.written_long(),
            audio: None,
            reasoning: None,
        }
    }

    fn written_long(&self) -> Option<u64> {
        let details = self.cache_details.as_array()?.iter();
        let long = details.filter(|detail| detail.get("ttl").is_some_and(|ttl| ttl == "1h"));
        let counts = long.filter_map(|detail| Count::deserialize(detail.get("inputTokens")?).ok()?.0);
        counts.reduce(u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_counts_are_unknown_and_cost_no_reply() {
        let usage = |json: &str| serde_json::from_str::<Tokens>(json).unwrap().usage();
        let known =
            |written_long| Usage { input: Some(10), output: Some(5), written_long, ..Usage::default() };
        for (json, expected) in [
            (r#"{"inputTokens":10,"outputTokens":5}"#, known(None)),
            (r#"{"inputTokens":10,"outputTokens":5,"cacheDetails":null}"#, known(None)),
            (r#"{"inputTokens":10,"outputTokens":5,"cacheDetails":{"1h":3}}"#, known(None)),
            (
                r#"{"inputTokens":10,"outputTokens":5,"cacheDetails":[null,{"ttl":null,"inputTokens":3}]}"#,
                known(None),
            ),
            (
                r#"{"inputTokens":10,"outputTokens":5,"cacheDetails":[{"ttl":"1h","inputTokens":3},{"ttl":"1h","inputTokens":-1}]}"#,
                known(Some(3)),
            ),
            (r#"{"inputTokens":0,"outputTokens":0,"totalTokens":0}"#, Usage::default()),
            (r#"{"inputTokens":-1,"outputTokens":5}"#, Usage::default()),
            ("{}", Usage::default()),
        ] {
            assert_eq!(usage(json), expected, "{json}");
        }
    }
}
