//! Conversations whose tools are a server's.

use polylogue::{AnyModel, Assistant, Chat, Log, Status, sequential};
use polylogue_core::{Body, ToolStatus};
use polylogue_mcp::Allowed;
use polylogue_models::Script;

use crate::Bench;

/// A chat of one turn, in which Ann calls tools and then speaks, and its log.
async fn chat(bench: &Bench, script: &str) -> (Chat, Log) {
    let tools = bench.servers(|_| ()).tools([("test", Allowed::All)]).await.unwrap();
    let script: Script = serde_json::from_str(script).unwrap();
    let ann = Assistant::new("Ann", AnyModel::new(script.model("test"))).unwrap().tools(tools);
    let chat = Chat::builder("calls").participant(ann).policy(sequential()).build().unwrap();
    (chat, Log::in_memory())
}

#[tokio::test]
async fn a_server_that_dies_costs_a_call_and_not_the_run() {
    let bench = Bench::new("fine");
    let script = r#"[
        {"Ann": {"calls": [{"tool": "test_die"}]}},
        {"Ann": {"calls": [{"tool": "test_echo", "args": {"text": "hi"}}]}},
        {"Ann": "It works again."}
    ]"#;
    let (chat, mut log) = chat(&bench, script).await;
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
    let outcomes: Vec<_> = log
        .events()
        .await
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolReturned { result: outcome, .. } => Some((outcome.status, outcome.text().into_owned())),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes.len(), 2);
    assert_eq!(outcomes[0].0, ToolStatus::Failed);
    assert!(outcomes[0].1.contains("ended before it answered (exit status: 3)"), "{outcomes:?}");
    assert_eq!(outcomes[1], (ToolStatus::Done, "hi".to_owned()));
    assert_eq!(bench.starts(), 2);
}

#[tokio::test]
async fn a_cancelled_run_cancels_the_call_at_the_server() {
    let bench = Bench::new("fine");
    let (chat, mut log) = chat(&bench, r#"[{"Ann": {"calls": [{"tool": "test_slow"}]}}]"#).await;
    let cancel = log.cancellation();
    let (ended, ()) = tokio::join!(chat.run_in(&mut log, "go"), async {
        bench.noted("begun").await;
        cancel.cancel_now();
    });
    assert!(matches!(ended.as_ref().map(|run| &run.status), Ok(Status::Cancelled)), "{ended:?}");
    bench.noted("cancelled").await;
}
