//! Executes tool calls, and makes those of a model valid.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use serde_json::Value;
use tracing::{Instrument as _, debug_span, info};

use crate::data::arguments;
use crate::data::name::resolved;
use crate::{AnyTool, Call, Outcome, Part, Tool, ToolCx, ToolSpec, View, no_such_tool};

/// The most bytes of a result that repeats arguments which are no object.
const FAILURE: usize = 400;

/// The result of a call, even if its tool fails, panics or does not exist.
pub(super) async fn outcome_of(
    tool: Option<&AnyTool>,
    tools: &[AnyTool],
    call: &Call,
    cx: &ToolCx<'_>,
) -> Outcome {
    let Some(tool) = tool else {
        let names = tools.iter().map(|tool| tool.spec().name.as_str());
        return Outcome::failed(no_such_tool(&call.tool, names));
    };
    if !call.args.is_object() {
        return Outcome::failed(format!(
            "The arguments of `{}` must be a JSON object; got: {}",
            call.tool, call.args
        ))
        .at_most(FAILURE);
    }
    let most = tool.spec().max_bytes.min(Outcome::MAX_BYTES);
    let running = AssertUnwindSafe(tool.call(call.args.clone(), cx)).catch_unwind();
    let outcome = match running.instrument(debug_span!("tool_call", tool = call.tool)).await {
        Ok(Ok(outcome)) => outcome.at_most(most),
        Ok(Err(error)) => Outcome::failed(error.0).at_most(most),
        Err(_) => Outcome::failed(format!("The tool `{}` crashed; this is a fault of the tool.", call.tool)),
    };
    info!(who = %cx.who, tool = call.tool, status = ?outcome.status, "tool returned");
    outcome
}

/// Models use tool names that no provider accepts in a history, and reuse ids: both would make later requests
/// invalid. They also write arguments that are nearly JSON.
pub(super) fn make_calls_legal(parts: &mut [Part], view: &View, tools: &[ToolSpec]) {
    let mut taken: Vec<String> = Vec::new();
    for part in parts {
        let Part::Call(call) = part else { continue };
        call.tool = resolved(&call.tool, tools.iter().map(|tool| tool.name.as_str()));
        if let Value::String(text) = &call.args
            && let Some(args) = arguments::repaired(text)
        {
            call.args = args;
        }
        let free = |id: &String| !view.has_id(id) && !taken.contains(id);
        // Leaves space for the number that makes it unique.
        let id = legal(&call.id, 32);
        let ids = std::iter::once(id.clone()).chain((2..=u64::MAX).map(|n| format!("{id}-{n}")));
        call.id = ids.into_iter().find(free).unwrap_or(id);
        taken.push(call.id.clone());
    }
}

/// At most `length` ASCII letters, digits, `_` and `-`. The strictest of the large providers accept 40 of them in the
/// id of a call.
fn legal(text: &str, length: usize) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let text: String = text.chars().map(legal).take(length).collect();
    if text.is_empty() { "unnamed".into() } else { text }
}
