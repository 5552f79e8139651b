//! The JSON of Bedrock's replies: one type for whole replies and for events of a stream, each an object with the event's type as its
//! only field.

use polylogue_core::Usage;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::wire::lenient::{Arguments, Count, Text};

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
    pub(super) usage: Option<Tokens>,
    /// An error.
    #[serde(rename = "__type")]
    pub(super) kind: Option<IgnoredAny>,
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
    pub(super) usage: Option<Tokens>,
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
    /// What was written, by lifetime.
    cache_details: Vec<CacheDetail>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CacheDetail {
    ttl: String,
    input_tokens: Count,
}

impl Tokens {
    pub(super) fn usage(&self) -> Usage {
        let Some(fresh) = self.input_tokens.0 else { return Usage::default() };
        let (cached, written) = (self.cache_read_input_tokens.0, self.cache_write_input_tokens.0);
        let sum = |more: Option<u64>, all: u64| all.saturating_add(more.unwrap_or(0));
        let long = self.cache_details.iter().filter(|detail| detail.ttl == "1h");
        let long = long.filter_map(|detail| detail.input_tokens.0).reduce(u64::saturating_add);
        Usage {
            input: Some(sum(cached, sum(written, fresh))),
            output: self.output_tokens.0,
            cached,
            written,
            written_long: long,
            audio: None,
            reasoning: None,
        }
    }
}
