//! Calls of tools without a conversation around them.

use std::sync::Arc;

use polylogue_core::{
    Event, LogId, Meter, Name, Path, Resources, StoredResults, Tool, ToolCx, ToolError, ToolResult,
    Transcript,
};
use serde_json::Value;

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
