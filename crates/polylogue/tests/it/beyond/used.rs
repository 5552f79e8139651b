//! Tools that ask models themselves: what that takes is part of what the run takes.

use polylogue::runs::report::Report;
use polylogue::{Assistant, Chat, Limits, Status, sequential};
use polylogue_core::{AnyTool, Money, StopReason, ToolResult, ToolSpec, ToolUsage, Usage};
use polylogue_test::tool::tool_of;
use serde_json::json;

use super::stage::{Cast, events, log};

/// A tool that calls a model: 1,000 tokens for a cent each time, or for an unknown cost.
fn search(cost: Option<Money>) -> AnyTool {
    let spec = ToolSpec::new("search", "Searches.", json!({"type": "object"})).repeatable();
    tool_of(spec, move |_| {
        let usage = Usage { input: Some(1_000), output: Some(0), ..Usage::default() };
        Ok(ToolResult::done("a hit").with_usage(ToolUsage { model: "toy:vectors".into(), usage, cost }))
    })
}

const SCRIPT: &str = r#"[
    {"Ann": {"calls": [{"tool": "search"}, {"tool": "search"}]}}, {"Ann": {"calls": [{"tool": "search"}]}}, {"Ann": "Found."}
]"#;

fn ann(cast: &Cast<'_>, cost: Option<Money>) -> Chat {
    let ann: Assistant = cast.assistant("Ann").tool(search(cost));
    Chat::builder("group").participant(ann).policy(sequential()).build().unwrap()
}

#[tokio::test]
async fn what_tools_ask_of_models_is_in_the_sum_and_in_a_row_of_its_own() {
    let events = events(SCRIPT, |cast| ann(cast, Some(Money::dollars(0.01)))).await;
    let report = Report::of_last_run(&events);
    assert_eq!((report.usage.calls, report.usage.tokens()), (3, 3_000), "{:?}", report.usage);
    assert_eq!(report.usage.cost, Money::dollars(0.03));
    let row = report.rows.iter().find(|row| &*row.model == "toy:vectors").unwrap();
    assert_eq!((row.who.as_str(), row.usage.calls, row.usage.input), ("Ann", 0, 3_000));
}

async fn stopped(limits: Limits, cost: Option<Money>) -> StopReason {
    let script: polylogue_models::Script = serde_json::from_str(SCRIPT).unwrap();
    let price = polylogue_core::Price::FREE;
    let model = polylogue::AnyModel::new(Free(script.model("test"), price));
    let ann = Assistant::new("Ann", model).unwrap().tool(search(cost));
    let chat = Chat::builder("group").participant(ann).policy(sequential()).build().unwrap();
    let mut log = log().await.limits(limits);
    match chat.run_in(&mut log, "task").await.unwrap().status {
        Status::Closed { reason, .. } => reason,
        status => panic!("{status:?}"),
    }
}

/// A model that costs nothing.
struct Free<M>(M, polylogue_core::Price);

impl<M: polylogue_core::Model> polylogue_core::Model for Free<M> {
    fn name(&self) -> &str {
        self.0.name()
    }
    async fn complete(
        &self,
        request: &polylogue_core::Request<'_>,
        deltas: &mut dyn polylogue_core::DeltaSink,
    ) -> Result<polylogue_core::Reply, polylogue_core::ModelError> {
        let usage = Usage { input: Some(0), output: Some(0), ..Usage::default() };
        Ok(polylogue_core::Reply { usage, ..self.0.complete(request, deltas).await? })
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.1.of(usage)
    }
}

#[tokio::test]
async fn limits_hold_for_what_tools_ask_of_models() {
    let cent = Some(Money::dollars(0.01));
    let cost = Limits { cost: Some(Money::dollars(0.015)), ..Limits::default() };
    let (limit, spent) = (Money::dollars(0.015), Money::dollars(0.02));
    assert_eq!(stopped(cost, cent).await, StopReason::Cost { limit, spent, next: None, cut: None });
    let tokens = Limits { tokens: Some(1_500), ..Limits::default() };
    assert_eq!(
        stopped(tokens, cent).await,
        StopReason::Tokens { limit: 1_500, used: 2_000, next: None, cut: None }
    );
    // A call of unknown cost is not repeated under a budget.
    assert_eq!(stopped(cost, None).await, StopReason::UnknownPrice { model: "toy:vectors".into() });
}
