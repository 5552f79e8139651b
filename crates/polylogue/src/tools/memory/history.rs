//! The conversation history as a tool.

use polylogue_core::{Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::{Value, json};

/// The tool `get_history`: returns the last messages of the current conversation.
///
/// LazyLLM's role-play example has a tool of this name that takes the conversation's id from the model, so that a model
/// can read any conversation; here it is always the current one.
#[derive(Debug, Clone)]
pub struct GetHistory(ToolSpec);

impl GetHistory {
    /// Default number of messages.
    pub const DEFAULT_LIMIT: usize = 5;
    /// Limit on the number of messages.
    pub const MAX_LIMIT: usize = 50;
}

impl Default for GetHistory {
    fn default() -> Self {
        let limit = json!({
            "type": "integer", "minimum": 1, "maximum": Self::MAX_LIMIT,
            "description": "How many messages, counted from the last",
        });
        let description = "Returns the last messages of this conversation, oldest first, one a line.";
        let parameters =
            json!({"type": "object", "properties": {"limit": limit}, "additionalProperties": false});
        Self(ToolSpec::new("get_history", description, parameters).repeatable())
    }
}

impl Tool for GetHistory {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let limit = match args.get("limit") {
            None | Some(Value::Null) => Self::DEFAULT_LIMIT,
            Some(limit) => limit
                .as_u64()
                .and_then(|limit| usize::try_from(limit).ok())
                .filter(|limit| *limit > 0)
                .ok_or_else(|| {
                    format!("`limit` must be a whole number from 1 to {}; got {limit}", Self::MAX_LIMIT)
                })?,
        };
        let seen = cx.transcript.all_messages().iter().rev().filter(|line| line.is_seen_by(cx.who));
        let mut lines: Vec<String> = seen
            .take(limit.min(Self::MAX_LIMIT))
            .map(|line| format!("{}: {}", line.message.from, line.message.text()))
            .collect();
        lines.reverse();
        Ok(ToolResult::done(if lines.is_empty() { "Nothing was said yet.".into() } else { lines.join("\n") }))
    }
}
