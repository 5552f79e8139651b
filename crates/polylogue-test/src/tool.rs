//! Tools from functions, and calls of tools without a conversation around them.

use std::sync::Arc;

use polylogue_core::{
    AnyTool, Event, LogId, Meter, Name, Path, Resources, StoredResults, Tool, ToolCx, ToolError, ToolResult,
    ToolSpec, Transcript,
};
use serde_json::Value;

/// Returns a tool that models see as `spec`, and whose calls return what `run` returns for their arguments.
pub fn tool_of(
    spec: ToolSpec,
    run: impl Fn(Value) -> Result<ToolResult, ToolError> + Send + Sync + 'static,
) -> AnyTool {
    AnyTool::new(Of { spec, run })
}

struct Of<F> {
    spec: ToolSpec,
    run: F,
}

impl<F: Fn(Value) -> Result<ToolResult, ToolError> + Send + Sync + 'static> Tool for Of<F> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        (self.run)(args)
    }
}

/// Calls `tool` with `args` as the agent `Ann` of the conversation `test`, after the events `turn` of her turn.
///
/// # Errors
/// Those of the tool.
pub async fn call_tool(
    tool: &impl Tool,
    args: Value,
    resources: &Resources,
    turn: &[Arc<Event>],
) -> Result<ToolResult, ToolError> {
    let log = LogId::new("test").map_err(ToolError::new)?;
    let (chat, who) = (Path::root(), Name::new("Ann").map_err(ToolError::new)?);
    let transcript = Transcript::new(chat.clone());
    let cx = ToolCx {
        log: &log,
        resources,
        chat: &chat,
        who: &who,
        transcript: &transcript,
        turn,
        within: &[],
        id: "c1",
        meter: &Meter::unlimited(),
        results: StoredResults::none(),
    };
    tool.call(args, &cx).await
}
