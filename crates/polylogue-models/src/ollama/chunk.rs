//! The JSON of Ollama's replies: one type for whole replies and for pieces of them.
//!
//! Everything is optional, and `null` counts as missing. The fields are those of `ChatResponse` in Ollama's `api/types.go`.

use polylogue_core::Usage;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::wire::lenient::{Arguments, Count, Text};

#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) message: Option<Message<'a>>,
    pub(super) done: Option<bool>,
    #[serde(borrow, default)]
    pub(super) done_reason: Text<'a>,
    #[serde(default)]
    prompt_eval_count: Count,
    #[serde(default)]
    prompt_eval_cached_count: Count,
    #[serde(default)]
    eval_count: Count,
    /// An error message, also in the middle of a reply.
    pub(super) error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolCall<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Arguments<'a>,
}

impl Chunk<'_> {
    /// The usage. Only the last object of a reply counts. Ollama omits zeros, so a missing count is unknown; and a prompt is never
    /// empty.
    pub(super) fn usage(&self) -> Usage {
        let input = self.prompt_eval_count.0.filter(|&tokens| tokens > 0);
        let cached =
            self.prompt_eval_cached_count.0.filter(|cached| input.is_some_and(|input| *cached <= input));
        Usage { input, output: self.eval_count.0, cached, ..Usage::default() }
    }
}
