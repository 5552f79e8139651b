//! The conversation as a tool.

use polylogue_core::{Outcome, Tool, ToolCx, ToolError, ToolSpec};
use serde_json::{Value, json};

/// The tool `get_history`: the last messages of the conversation it is called in, and of no other.
///
/// LazyLLM's example of role-play has a tool of this name that takes the conversation's id from the model, so that a
/// model can read any conversation; here the conversation is the one the call is made in.
#[derive(Debug, Clone)]
pub struct GetHistory(ToolSpec);

impl GetHistory {
    /// How many messages it gives when the model names no number.
    pub const DEFAULT_LIMIT: usize = 5;
    /// How many messages it gives at most.
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

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<Outcome, ToolError> {
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
        let seen = cx.transcript.lines().iter().rev().filter(|line| line.is_seen_by(cx.who));
        let mut lines: Vec<String> = seen
            .take(limit.min(Self::MAX_LIMIT))
            .map(|line| format!("{}: {}", line.message.from, line.message.plain()))
            .collect();
        lines.reverse();
        Ok(Outcome::done(if lines.is_empty() { "Nothing was said yet.".into() } else { lines.join("\n") }))
    }
}
