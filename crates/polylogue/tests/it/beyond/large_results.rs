//! Results of tools that are too large for a context window: stored whole, and read back piece by piece.

use std::sync::Arc;

use polylogue::kernel::data::ToolSpec;
use polylogue::kernel::tool::AnyTool;
use polylogue::tools::results::LargeResults;
use polylogue::{Act, Chat, Function, sequential};
use polylogue_core::{BlobId, Body, Event, Log, Part, StoredResult, ToolCall, ToolResult, ToolStatus};
use polylogue_test::tool::tool_of;
use serde_json::{Value, json};

use super::stage::{Cast, events, log};

/// Lists so many lines, as one from outside.
fn list() -> AnyTool {
    let spec = ToolSpec::new("list", "Lists.", json!({"type": "object"})).repeatable();
    tool_of(spec, |args| {
        let lines = args["lines"].as_u64().ok_or("`lines` is missing")?;
        Ok(ToolResult::done(listed(lines)).from_outside("https://shop.example/"))
    })
}

fn listed(lines: u64) -> String {
    (1..=lines).map(|nth| format!("item {nth} costs {} euros\n", nth * 7)).collect()
}

fn outcome_of(event: &Event) -> Option<&ToolResult> {
    match &event.body {
        Body::ToolReturned { result: outcome, .. } => Some(outcome),
        _ => None,
    }
}

fn outcomes(events: &[Arc<Event>]) -> Vec<&ToolResult> {
    events.iter().filter_map(|event| outcome_of(event)).collect()
}

fn ann(cast: &Cast<'_>) -> Chat {
    let agent = cast.assistant("Ann").tools(LargeResults::default().tools([list()]));
    Chat::builder("group").participant(agent).policy(sequential()).build().unwrap()
}

#[tokio::test]
async fn a_large_result_is_stored_and_read_back_wherever_the_log_is_cut() {
    let text = listed(9_000);
    let id = BlobId::of(&text);
    let script = json!([
        {"Ann": {"calls": [{"tool": "list", "args": {"lines": 3}}, {"tool": "list", "args": {"lines": 9_000}}]}},
        {"Ann": {"calls": [
            {"tool": "read_result", "args": {"id": id, "search": "costs 35007 euros"}},
            {"tool": "read_result", "args": {"id": id, "line": 5_000, "lines": 2}},
        ]}},
        {"Ann": "Item 5001."},
    ]);
    let events = events(&script.to_string(), ann).await;
    let found = outcomes(&events);
    let [small, large, search, lines] = &found[..] else { panic!("{} results", found.len()) };
    assert_eq!((small.text().as_ref(), &small.stored), (listed(3).as_str(), &None));
    let stored = large.stored.as_ref().unwrap();
    assert_eq!((&stored.id, stored.bytes, stored.lines), (&id, text.len() as u64, 9_000));
    let shown = large.text();
    assert!(shown.len() <= LargeResults::SHOWN && shown.starts_with("item 1 costs 7 euros\n"), "{shown}");
    assert!(shown.ends_with("item 9000 costs 63000 euros\n"), "{shown}");
    // What the model receives: others wrote the text, and the program the reference, which is after the mark.
    let received: String = large
        .for_model()
        .iter()
        .map(|part| match part {
            Part::Text(text) => format!("{text}\n"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(received.starts_with("From https://shop.example/. "), "{received}");
    let note = received.split("</outside ").nth(1).unwrap();
    assert!(note.contains("Read more of it with `read_result`") && note.contains(id.as_str()), "{note}");
    assert!(search.text().starts_with("line 5001, byte "), "{}", search.text());
    assert!(
        lines.text().contains("\nitem 5000 costs 35000 euros\nitem 5001 costs 35007 euros\n"),
        "{}",
        lines.text()
    );
    assert_eq!(
        lines.outside.as_deref(),
        Some("https://shop.example/"),
        "what is read again is from outside, too"
    );
    let logged: usize = events.iter().map(|event| serde_json::to_string(event).unwrap().len()).sum();
    assert!(logged < text.len() / 5, "{logged} bytes are logged");
}

/// Makes `calls` in one turn of an agent.
async fn made(log: &mut Log, tools: Vec<AnyTool>, calls: Vec<ToolCall>) {
    let agent = Function::calling("Ann", [], move |turn| {
        let (tools, calls) = (tools.clone(), calls.clone());
        Box::pin(async move {
            turn.call_tools(&tools, &calls).await?;
            Ok(Act::say("done"))
        })
    });
    let agent = agent.unwrap();
    let chat = Chat::builder("group").participant(agent).policy(sequential()).build().unwrap();
    chat.run_in(log, "task").await.unwrap();
}

fn call(nth: u64, tool: &str, args: Value) -> ToolCall {
    ToolCall { id: format!("c{nth}"), tool: tool.into(), args }
}

#[tokio::test]
async fn a_conversation_stores_so_many_results_and_says_why_no_more() {
    let mut log = log().await;
    let most = StoredResult::MAX_COUNT as u64;
    // The first one a second time: it is one text.
    let lines = (0..=most).map(|nth| 100 + nth).chain([100]);
    let calls = (0..).zip(lines).map(|(nth, lines)| call(nth, "list", json!({"lines": lines}))).collect();
    made(&mut log, LargeResults::default().above(1_000).tools([list()]), calls).await;
    let events = log.events().await;
    let found = outcomes(&events);
    let (stored, others): (Vec<&ToolResult>, Vec<&ToolResult>) =
        found.into_iter().partition(|outcome| outcome.stored.is_some());
    assert_eq!((stored.len() as u64, others.len()), (most + 1, 1));
    let text = others[0].text();
    let why = "(The whole result is not stored: a conversation stores 1000 results and 256 MiB at most.)";
    assert!(text.ends_with(why) && text.len() < 1_000, "{text}");
    assert!(stored.iter().all(|outcome| outcome.text().len() < 1_000));
}

#[tokio::test]
async fn a_result_of_more_than_the_limit_is_truncated() {
    let lines = StoredResult::MAX_BYTES / 20;
    let mut log = log().await;
    made(&mut log, LargeResults::default().tools([list()]), vec![call(0, "list", json!({"lines": lines}))])
        .await;
    let events = log.events().await;
    let text = outcomes(&events)[0].text();
    let why = "(The whole result is not stored: results of more than 16 MiB are not stored.)";
    assert!(text.ends_with(why) && text.len() <= ToolResult::MAX_BYTES, "{} bytes", text.len());
}

#[tokio::test]
async fn only_results_of_the_conversation_are_read() {
    let other = listed(9_000);
    let id = BlobId::of(&other);
    let mut log = log().await;
    let calls = vec![
        call(0, "read_result", json!({"id": id})),
        call(1, "read_result", json!({"id": "../../etc/passwd"})),
        call(2, "read_result", json!({"line": 1})),
        call(3, "list", json!({})),
    ];
    made(&mut log, LargeResults::default().tools([list()]), calls).await;
    let events = log.events().await;
    let said: Vec<(ToolStatus, String)> =
        outcomes(&events).iter().map(|outcome| (outcome.status, outcome.text().into_owned())).collect();
    let failed = |text: &str| (ToolStatus::Failed, text.to_owned());
    assert!(said.contains(&failed(&format!("This conversation has no stored result {id}."))), "{said:?}");
    let wrong = "`id` must be the 32 digits that a result gives as its id; got ";
    assert!(said.contains(&failed(&format!("{wrong}`../../etc/passwd`"))), "{said:?}");
    assert!(said.contains(&failed(&format!("{wrong}``"))), "{said:?}");
    assert!(said.contains(&failed("`lines` is missing")), "{said:?}");
}
