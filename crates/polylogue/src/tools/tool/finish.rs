//! A tool that finishes the work.

use polylogue_core::{Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::{Value, json};

/// The tool `finish`: its argument `response` is the answer, and the turn ends with it.
///
/// For agents that call tools until they have an answer, such as [`React`](crate::agents::reason::React), with models that
/// should not answer in free text. An [`ActionExecutor`](crate::layers::parse::ActionExecutor) reports a call of it as
/// [`RunState::Finished`](crate::layers::parse::RunState).
#[derive(Debug, Clone)]
pub struct Finish(ToolSpec);

impl Default for Finish {
    fn default() -> Self {
        Self::named("finish")
    }
}

impl Finish {
    /// Creates the tool with another name.
    pub fn named(name: &str) -> Self {
        let response = json!({"type": "string", "description": "The final answer"});
        let parameters = json!({
            "type": "object", "properties": {"response": response}, "required": ["response"],
            "additionalProperties": false,
        });
        Self(ToolSpec::new(name, "Ends the work with its final answer.", parameters).repeatable().ends_turn())
    }
}

impl Tool for Finish {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let response = args.get("response").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        response.map(ToolResult::done).ok_or_else(|| "`response` must be a text with the final answer".into())
    }
}
