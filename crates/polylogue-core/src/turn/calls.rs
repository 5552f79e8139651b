//! Executes tool calls, and makes those of a model valid.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tracing::{Instrument as _, debug_span, info};

use crate::data::arguments;
use crate::data::name::resolved;
use crate::{
    AnyTool, Body, Money, Part, Reservation, Result, Tool, ToolCall, ToolCx, ToolResult, ToolSpec, View,
    no_such_tool,
};

/// A call that is made, step by step.
pub(super) struct StartedCall<'a> {
    /// Which of the calls it is.
    pub(super) index: usize,
    pub(super) call: &'a ToolCall,
    /// All that can be called.
    pub(super) tools: &'a [AnyTool],
    pub(super) cx: ToolCx<'a>,
    /// Whether it began in an earlier process.
    pub(super) was_begun: bool,
}

/// A step of a call.
pub(super) enum CallStep<'a> {
    /// What its tool costs at most is reserved, or a limit does not allow it.
    Reserved(Result<Reservation<'a>>),
    /// It ended.
    Returned { outcome: ToolResult, reserved: Option<Reservation<'a>> },
}

impl<'a> StartedCall<'a> {
    fn tool(&self) -> Option<&'a AnyTool> {
        self.tools.iter().find(|tool| tool.spec().name == self.call.tool)
    }

    /// Whether its outcome cannot be known. A call that never ran - unknown tool, invalid arguments - is safe to decide again.
    fn is_unknown(&self) -> bool {
        let runs = self.tool().filter(|_| self.call.args.is_object());
        self.was_begun && runs.is_some_and(|tool| !tool.spec().repeatable)
    }

    /// What its tool costs at most, if it runs and says so.
    pub(super) fn max_cost(&self) -> Option<Money> {
        let runs = self.tool().filter(|_| self.call.args.is_object() && !self.is_unknown());
        runs.and_then(|tool| tool.spec().max_cost)
    }

    /// The event with which it begins.
    pub(super) fn begins(&self) -> Body {
        Body::ToolCalled { who: self.cx.who.clone(), call: self.call.clone() }
    }

    /// Reserves what its tool costs, and then runs it.
    pub(super) fn advance(
        self,
        reserved: Option<Reservation<'a>>,
    ) -> BoxFuture<'a, (StartedCall<'a>, CallStep<'a>)> {
        let most = self.max_cost();
        async move {
            let step = match most.filter(|_| reserved.is_none()) {
                None => self.run(reserved, most).await,
                Some(declared) => {
                    match self.cx.meter.reserve_own(&self.call.tool, declared).await.transpose() {
                        Some(reserved) => CallStep::Reserved(reserved),
                        // Outside of runs nothing is counted.
                        None => self.run(None, most).await,
                    }
                }
            };
            (self, step)
        }
        .boxed()
    }

    async fn run(&self, reserved: Option<Reservation<'a>>, most: Option<Money>) -> CallStep<'a> {
        if self.is_unknown() {
            return CallStep::Returned { outcome: ToolResult::unknown(), reserved };
        }
        let outcome = outcome_of(self.tool(), self.tools, self.call, &self.cx).await;
        // What does not say what it cost counts as it was declared.
        let cost = outcome.own_cost().or(most);
        let outcome = outcome.priced(&self.call.tool, cost);
        self.cx.meter.settle_own(reserved.as_ref(), &outcome);
        CallStep::Returned { outcome, reserved }
    }
}

/// The most bytes of a result that repeats arguments which are no object.
const FAILURE: usize = 400;

/// The result of a call, even if its tool fails, panics or does not exist.
async fn outcome_of(
    tool: Option<&AnyTool>,
    tools: &[AnyTool],
    call: &ToolCall,
    cx: &ToolCx<'_>,
) -> ToolResult {
    let Some(tool) = tool else {
        let names = tools.iter().map(|tool| tool.spec().name.as_str());
        return ToolResult::failed(no_such_tool(&call.tool, names));
    };
    if !call.args.is_object() {
        return ToolResult::failed(format!(
            "The arguments of `{}` must be a JSON object; got: {}",
            call.tool, call.args
        ))
        .truncated_to(FAILURE);
    }
    let most = tool.spec().max_bytes.min(ToolResult::MAX_BYTES);
    let running = AssertUnwindSafe(tool.call(call.args.clone(), cx)).catch_unwind();
    let outcome = match running.instrument(debug_span!("tool_call", tool = call.tool)).await {
        Ok(Ok(outcome)) => outcome.truncated_to(most),
        Ok(Err(error)) => ToolResult::failed(error.0).truncated_to(most),
        Err(_) => {
            ToolResult::failed(format!("The tool `{}` crashed; this is a fault of the tool.", call.tool))
        }
    };
    info!(who = %cx.who, tool = call.tool, status = ?outcome.status, "tool returned");
    outcome
}

/// Models use tool names that no provider accepts in a history, and reuse ids: both would make later requests
/// invalid. They also write arguments that are nearly JSON.
pub(super) fn make_calls_legal(parts: &mut [Part], view: &View, tools: &[ToolSpec]) {
    let mut taken: Vec<String> = Vec::new();
    for part in parts {
        let Part::ToolCall(call) = part else { continue };
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
