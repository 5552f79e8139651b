//! The results of calls.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Texts, each a content block.
    pub texts: Vec<String>,
    /// Structured content, an object.
    pub value: Option<Value>,
    /// Whether it failed.
    pub is_error: bool,
}

impl Answer {
    /// A call that failed, and why.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { texts: vec![why.into()], value: None, is_error: true }
    }
}

/// The same as the protocol has it.
pub(super) fn result(answer: Answer) -> CallToolResult {
    let texts = answer.texts.into_iter().map(ContentBlock::text).collect();
    let mut result =
        if answer.is_error { CallToolResult::error(texts) } else { CallToolResult::success(texts) };
    result.structured_content = answer.value;
    result
}
