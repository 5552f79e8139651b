//! An agent that calls a tool several times at once, and a tool that asks a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue::{Act, Agent, Name, Tool, Turn};
use polylogue_core::{
    AnyTool, Bound, Money, ToolCall, ToolCx, ToolError, ToolResult, ToolSpec, ToolStatus, ToolUsage, Usage,
};
use serde_json::{Value, json};

use super::name;

/// Calls its tool, named `search`, several times at the same time, and says how many calls had a result.
pub(crate) struct Seeker {
    name: Name,
    tool: AnyTool,
    calls: usize,
}

impl Seeker {
    pub(crate) fn new(who: &str, tool: AnyTool, calls: usize) -> Self {
        Self { name: name(who), tool, calls }
    }
}

impl Agent for Seeker {
    fn name(&self) -> &Name {
        &self.name
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        let call = |nth| ToolCall { id: format!("c{nth}"), tool: "search".into(), args: json!({}) };
        let calls: Vec<ToolCall> = (0..self.calls).map(call).collect();
        let outcomes = turn.call_tools(std::slice::from_ref(&self.tool), &calls).await?;
        let done = outcomes.iter().filter(|outcome| outcome.status == ToolStatus::Done).count();
        Ok(Act::say(format!("{done} of {}", self.calls)))
    }
}

/// A tool that asks a model for a cent, which it reserves, and counts in `asked` how often it did.
pub(crate) fn search(asked: &Arc<AtomicU64>) -> AnyTool {
    let spec = ToolSpec::new("search", "Searches.", json!({"type": "object"})).repeatable();
    AnyTool::new(Search(spec, Arc::clone(asked)))
}

struct Search(ToolSpec, Arc<AtomicU64>);

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    async fn call(&self, _: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let cent = Money::dollars(0.01);
        let bound = Bound::of_texts(&["a text".to_owned()], |_| Some(cent));
        let reserved = cx.meter.reserve("test:vectors", bound).await.map_err(|error| error.to_string())?;
        self.1.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        let usage = Usage { input: Some(38), output: Some(0), ..Usage::default() };
        let used = ToolUsage { model: "test:vectors".into(), usage, cost: Some(cent) };
        cx.meter.settle(reserved, &used);
        Ok(ToolResult::done("a hit").with_usage(used))
    }
}
