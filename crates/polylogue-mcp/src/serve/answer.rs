//! The results of calls, and the progress before them.

use polylogue_core::{Body, Event, text};
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
    /// Creates the answer of a call that failed, with the reason.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { texts: vec![why.into()], value: None, is_error: true }
    }
}

/// The answer as a result of the protocol.
pub(super) fn result(answer: Answer) -> CallToolResult {
    let texts = answer.texts.into_iter().map(ContentBlock::text).collect();
    let mut result =
        if answer.is_error { CallToolResult::error(texts) } else { CallToolResult::success(texts) };
    result.structured_content = answer.value;
    result
}

/// How much of a message is sent as progress, in characters.
const LONGEST: usize = 200;

/// Returns the beginning of a message in a line, with its author; `None` for an event that is no message.
pub fn progress_line(event: &Event) -> Option<String> {
    let Body::Message(message) = &event.body else { return None };
    let line = text::one_line(&message.text());
    Some(format!("{}: {}", message.from, text::excerpt(&line, LONGEST)))
}
