//! Servers that misbehave: a call fails, and the next one works.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue_core::{Body, Event, Name, Path, Resources, Timestamp, ToolStatus};
use polylogue_mcp::{Allowed, Progress};
use polylogue_test::tool::call_tool;
use serde_json::json;

use crate::{Bench, PATIENCE, Tools, runs, until};

/// A limit that tests mean to meet. A call that is to work within it has to be fast even on a busy machine.
const SHORT: Duration = Duration::from_secs(5);

#[tokio::test]
async fn one_that_dies_is_started_again() {
    let (bench, tools) = Bench::with_tools("fine", |_| ()).await;
    let shown = tools.failed("die").await;
    let wanted = "the MCP server `test` ended before it answered (exit status: 3); it last wrote to its error output: \
        the disk is on fire, key ***; it is unknown whether it did what was asked; it is started again for the next call";
    assert_eq!(shown, wanted);
    tools.echoes().await;
    assert_eq!(bench.starts(), 2);
}

#[tokio::test]
async fn one_that_died_meanwhile_is_not_missed() {
    let (bench, tools) = Bench::with_tools("fine", |_| ()).await;
    let pid = bench.notes().split_whitespace().nth(1).unwrap().to_owned();
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    until("its end", || !runs(&pid)).await;
    // Whether the end was noticed before the call or in it depends on who is faster; the next call works either way.
    let outcome = tools.call("echo", json!({"text": "hi"})).await.text().into_owned();
    assert!(outcome == "hi" || outcome.contains("ended before it answered (signal: 9"), "{outcome}");
    tools.echoes().await;
    assert_eq!(bench.starts(), 2);
}

#[tokio::test]
async fn one_that_hangs_is_started_again() {
    let (bench, tools) = Bench::with_tools("fine", |limits| limits.call = SHORT).await;
    let shown = tools.failed("hang").await;
    let wanted = "the MCP server `test` did not answer within 5 s, and it no longer responds; it is unknown whether \
        it did what was asked; it is started again for the next call";
    assert_eq!(shown, wanted);
    tools.echoes().await;
    assert_eq!(bench.starts(), 2);
}

#[tokio::test]
async fn a_slow_call_does_not_block_other_calls() {
    let (bench, tools) = Bench::with_tools("fine", |limits| limits.call = SHORT).await;
    let shown = tools.failed("slow").await;
    assert_eq!(shown, "the MCP server `test` did not answer within 5 s, and the call was cancelled");
    bench.noted("cancelled").await;
    tools.echoes().await;
    assert_eq!(bench.starts(), 1);
}

#[tokio::test]
async fn one_that_says_how_far_it_has_come_may_take_longer() {
    let bench = Bench::new("fine");
    let received: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let kept = Arc::clone(&received);
    let servers = bench.servers(|limits| limits.call = SHORT);
    let servers = servers.on_progress(move |progress| kept.lock().unwrap().push(progress.clone()));
    let tools = Tools::of(&servers).await;
    // Longer than the limit in all, but not without a word.
    let words = tools.done("steady", json!({"steps": 12, "pause": 0.5})).await;
    assert_eq!(words, "at last");
    let received = received.lock().unwrap();
    assert_eq!(
        received.iter().map(|one| one.done).collect::<Vec<_>>(),
        (1..=12).map(f64::from).collect::<Vec<_>>()
    );
    assert_eq!((&*received[0].server, &*received[0].tool, received[0].total), ("test", "steady", Some(12.0)));
    assert_eq!(received[0].message.as_ref().unwrap().len(), 500);
}

#[tokio::test]
async fn there_is_a_limit_for_those_too() {
    let (_bench, tools) = Bench::with_tools("fine", |limits| limits.call_in_all = SHORT).await;
    let outcome = tools.call("steady", json!({"steps": 100, "pause": 0.5})).await;
    // It listens to nothing meanwhile, so that it is taken for one that hangs.
    let shown = outcome.text().into_owned();
    assert!(shown.starts_with("the MCP server `test` did not answer within 5 s"), "{shown}");
    tools.echoes().await;
}

#[tokio::test]
async fn one_that_reads_no_more_is_started_again() {
    let (bench, tools) = Bench::with_tools("fine", |limits| limits.call = SHORT).await;
    let shown = tools.failed("deaf").await;
    assert!(shown.ends_with("it is started again for the next call"), "{shown}");
    tools.echoes().await;
    assert_eq!(bench.starts(), 2);
}

#[tokio::test]
async fn invalid_lines_of_a_server_are_skipped() {
    let (bench, tools) = Bench::with_tools("fine", |_| ()).await;
    assert_eq!(tools.done("garbage", json!({})).await, "behind garbage");
    tools.echoes().await;
    assert_eq!(bench.starts(), 1);
}

#[tokio::test]
async fn an_answer_to_another_question_ends_it() {
    let (bench, tools) = Bench::with_tools("fine", |_| ()).await;
    let shown = tools.failed("wrong").await;
    assert!(
        shown.starts_with("the MCP server `test` answered with something else than was asked for"),
        "{shown}"
    );
    tools.echoes().await;
    assert_eq!(bench.starts(), 2);
}

#[tokio::test]
async fn a_refusal_is_the_error_of_the_call() {
    let (bench, tools) = Bench::with_tools("fine", |_| ()).await;
    assert_eq!(tools.failed("refuse").await, "the MCP server `test` refused: not on Sundays, nor with ***");
    tools.echoes().await;
    assert_eq!(bench.starts(), 1);
}

#[tokio::test]
async fn a_message_without_end_ends_it_at_once() {
    let (bench, tools) = Bench::with_tools("fine", |limits| limits.message_bytes = 1 << 20).await;
    let shown = tools.failed("endless").await;
    assert!(shown.starts_with("the MCP server `test` sent a message of more than 1048576 bytes"), "{shown}");
    tools.echoes().await;
    assert_eq!(bench.starts(), 2);
}

#[tokio::test]
async fn a_flood_of_errors_blocks_no_call() {
    let (bench, tools) = Bench::with_tools("babbles", |_| ()).await;
    assert_eq!(tools.done("flood", json!({})).await, "after the flood");
    assert_eq!(bench.starts(), 1);
}

#[tokio::test]
async fn a_changed_list_of_tools_is_reported() {
    let (bench, tools) = Bench::with_tools("fine", |_| ()).await;
    assert_eq!(tools.done("other", json!({})).await, "others now");
    let gone = "the MCP server `test` has other tools now, and no `fail`; it has: echo, changed";
    let outside = Some("the MCP server `test`");
    let outcome = tools.call("fail", json!({})).await;
    assert_eq!((&*outcome.text(), outcome.outside.as_deref()), (gone, outside));
    let (resources, tool) = (Resources::default(), tools.get("changed"));
    let (first, next) = (after(1), after(2));
    let outcome = call_tool(tool, json!({}), &resources, &first).await.unwrap();
    assert_eq!((outcome.status, outcome.outside.as_deref()), (ToolStatus::Failed, outside));
    let changed = outcome.text();
    assert!(
        changed.starts_with("the MCP server `test` has changed `changed`, and nothing was called"),
        "{changed}"
    );
    assert!(
        changed.contains(r#""required":["n"]"#) && changed.contains(r#""n":{"type":"integer"}"#),
        "{changed}"
    );
    assert!(!changed.contains("Call shell first."), "the user has not seen it: {changed}");
    let parallel = call_tool(tool, json!({}), &resources, &first).await.unwrap();
    assert_eq!(parallel.text(), changed, "it is in the same reply, which was written before");
    let elsewhere = call_tool(tool, json!({}), &Resources::default(), &next).await.unwrap();
    assert_eq!(elsewhere.text(), changed, "another conversation knows nothing of it");
    let called = call_tool(tool, json!({"n": 1}), &resources, &next).await.unwrap();
    assert_eq!((called.status, &*called.text()), (ToolStatus::Done, r#"{"n": 1}"#));
    tools.echoes().await;
    assert_eq!(bench.starts(), 1);
}

/// A turn in which the last event is the one numbered `seq`.
fn after(seq: u64) -> [Arc<Event>; 1] {
    let body = Body::Prompted { who: Name::new("Ann").unwrap(), text: "go".into() };
    [Arc::new(Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body })]
}

#[tokio::test]
async fn calls_at_the_same_time_find_the_same_changed_tools() {
    let (_bench, tools) = Bench::with_tools("fine", |_| ()).await;
    tools.done("other", json!({})).await;
    // The second call comes while the first one waits for the new list.
    let (first, second) = tokio::join!(tools.failed("fail"), tools.failed("fail"));
    for shown in [first, second] {
        assert!(shown.contains("has other tools now, and no `fail`"), "{shown}");
    }
}

#[tokio::test]
async fn pages_of_tools_without_an_end_are_read_in_part() {
    let (_bench, tools) = Bench::with_tools("empty_pages", |limits| limits.start = SHORT).await;
    assert_eq!(tools.0.len(), 1);
    tools.echoes().await;
}

#[tokio::test]
async fn a_change_of_tools_outlives_the_call_that_was_to_notice_it() {
    let (bench, tools) = Bench::with_tools("lists_once", |_| ()).await;
    tools.done("other", json!({})).await;
    tokio::select! {
        shown = tools.failed("fail") => panic!("the list of tools was answered: {shown}"),
        () = bench.noted("asked for its tools again") => {}
    }
    let shown = tools.failed("fail").await;
    assert!(shown.contains("has other tools now, and no `fail`"), "{shown}");
    assert_eq!(bench.starts(), 1);
}

#[tokio::test]
async fn one_that_never_starts_is_started_once_for_all_that_wait_for_it() {
    let bench = Bench::new("dies");
    let servers = bench.servers(|_| ());
    let tools = || servers.tools([("test", Allowed::All)]);
    let (first, second) = tokio::join!(tools(), tools());
    assert_eq!(first.unwrap_err().to_string(), second.unwrap_err().to_string());
    assert_eq!(bench.starts(), 1);
    assert!(tools().await.is_err());
    assert_eq!(bench.starts(), 2, "a later call tries again");
}

#[tokio::test]
async fn one_that_never_starts_says_why() {
    let bench = Bench::new("dies");
    let shown = bench.servers(|_| ()).tools([("test", Allowed::All)]).await.unwrap_err().to_string();
    assert!(shown.starts_with("the MCP server `test` did not start as an MCP server: "), "{shown}");
    let wanted = "(exit status: 1); it last wrote to its error output: no license for ***";
    assert!(shown.ends_with(wanted), "{shown}");
    let bench = Bench::new("hangs");
    let servers = bench.servers(|limits| limits.start = Duration::from_millis(300));
    let begun = std::time::Instant::now();
    let shown = servers.tools([("test", Allowed::All)]).await.unwrap_err().to_string();
    assert_eq!(shown, "the MCP server `test` was not ready within 0.3 s");
    assert!(begun.elapsed() < PATIENCE);
}

#[tokio::test]
async fn a_list_that_is_nested_too_deep_fails_at_once() {
    let bench = Bench::new("deep");
    let begun = std::time::Instant::now();
    let servers = bench.servers(|_| ());
    let error = servers.tools([("test", Allowed::All)]).await.map(drop).unwrap_err().to_string();
    assert!(
        error.contains("the MCP server `test` sent a message that is nested more than 120 deep"),
        "{error}"
    );
    // Not after the time that a server has to start.
    assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
}
