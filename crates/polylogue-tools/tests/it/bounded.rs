//! Tools with bounds of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polylogue_core::{Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use polylogue_tools::LimitedTool;
use serde_json::{Value, json};

use crate::{done, failed};

/// Returns the given text, or fails with it, after a delay.
struct Slow {
    spec: ToolSpec,
    is_over: Arc<AtomicBool>,
}

impl Slow {
    fn new() -> Self {
        let spec = ToolSpec::new("slow", "Takes its time.", json!({"type": "object"})).repeatable();
        Self { spec, is_over: Arc::default() }
    }
}

impl Tool for Slow {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        tokio::time::sleep(Duration::from_secs(args["seconds"].as_u64().unwrap_or_default())).await;
        self.is_over.store(true, Ordering::Relaxed);
        let text = args["text"].as_str().unwrap_or("done").to_owned();
        if args["fails"] == json!(true) { Err(ToolError(text)) } else { Ok(ToolResult::done(text)) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_given_up() {
    let slow = Slow::new();
    let is_over = Arc::clone(&slow.is_over);
    let tool = LimitedTool::new(slow).within(Duration::from_secs(5));
    assert_eq!(done(&tool, json!({"seconds": 4})).await, "done");
    is_over.store(false, Ordering::Relaxed);
    let said = failed(&tool, json!({"seconds": 600})).await;
    assert_eq!(said, "`slow` timed out: it did not return within 5s.");
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert!(!is_over.load(Ordering::Relaxed), "nothing of it continues");
    assert!(tool.spec().repeatable);
    assert_eq!(done(&LimitedTool::new(Slow::new()), json!({"seconds": 9999})).await, "done");
}

#[tokio::test]
async fn results_beyond_the_limit_are_cut() {
    let tool = LimitedTool::new(Slow::new()).max_bytes(10);
    assert_eq!(done(&tool, json!({"text": "0123456789"})).await, "0123456789");
    assert_eq!(done(&tool, json!({"text": "0123456789ab"})).await, "0123456789\n(2 more bytes are left out)");
    // Cut at a letter's beginning.
    assert_eq!(done(&tool, json!({"text": "012345678é"})).await, "012345678\n(2 more bytes are left out)");
    let said = failed(&tool, json!({"text": "it broke in many words", "fails": true})).await;
    assert_eq!(said, "it broke i\n(12 more bytes are left out)");
}
