//! A tool whose results are known before it is called.

use polylogue_core::{AnyTool, Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::Value;

/// A tool with the result of each call, by its id. Other calls fail with `otherwise`.
pub(crate) fn known(
    spec: ToolSpec,
    outcomes: Vec<(String, ToolResult)>,
    otherwise: impl Into<String>,
) -> AnyTool {
    AnyTool::new(Known { spec, outcomes, otherwise: otherwise.into() })
}

struct Known {
    spec: ToolSpec,
    outcomes: Vec<(String, ToolResult)>,
    otherwise: String,
}

impl Tool for Known {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let outcome = self.outcomes.iter().find(|(id, _)| id == cx.id).map(|(_, outcome)| outcome.clone());
        outcome.ok_or_else(|| ToolError(self.otherwise.clone()))
    }
}
