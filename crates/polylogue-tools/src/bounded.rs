//! A wrapper that limits the time, the cost and the output of a tool.

use std::time::Duration;

use polylogue_core::{AnyTool, Money, Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::Value;
use tokio::time::timeout;

/// A tool with a timeout and a declared cost for each call, and a maximum size of its results.
///
/// A call that times out fails with an error for the model; its effects so far remain. Text and data beyond the maximum size are cut,
/// with a note. (Without this wrapper a call has no timeout, and a result can have [`ToolResult::MAX_BYTES`].)
///
/// ```
/// use polylogue_core::Tool;
/// use polylogue_tools::{LimitedTool, Calculator};
/// use std::time::Duration;
///
/// let tool = LimitedTool::new(Calculator::default()).within(Duration::from_secs(5)).max_bytes(1000);
/// assert_eq!(tool.spec().name, "calculator");
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct LimitedTool {
    tool: AnyTool,
    spec: ToolSpec,
    time: Option<Duration>,
    bytes: usize,
}

impl LimitedTool {
    /// Wraps `tool`, at first without bounds but those of every tool.
    pub fn new(tool: impl Tool) -> Self {
        let spec = tool.spec().clone();
        Self { tool: AnyTool::new(tool), spec, time: None, bytes: ToolResult::MAX_BYTES }
    }

    /// Sets the timeout of a call.
    pub fn within(self, time: Duration) -> Self {
        Self { time: Some(time), ..self }
    }

    /// Sets the maximum cost of a call. It is reserved before the call; see [`ToolSpec::max_cost`].
    pub fn max_cost(self, cost: Money) -> Self {
        Self { spec: self.spec.max_cost(cost), ..self }
    }

    /// Sets the maximum size of a result, in bytes of text and data.
    pub fn max_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }
}

impl Tool for LimitedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let call = self.tool.call(args, cx);
        let returned = match self.time {
            None => call.await,
            Some(time) => timeout(time, call).await.unwrap_or_else(|_| {
                let name = &self.spec().name;
                Err(ToolError(format!("`{name}` timed out: it did not return within {time:?}.")))
            }),
        };
        match returned {
            Ok(outcome) => Ok(outcome.truncated_to(self.bytes)),
            Err(error) => {
                Err(ToolError(ToolResult::failed(error.0).truncated_to(self.bytes).text().into_owned()))
            }
        }
    }
}
