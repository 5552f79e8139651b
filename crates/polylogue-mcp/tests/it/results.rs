//! Results of calls that succeed.

use polylogue_core::{Media, Part, Tool};
use serde_json::{Value, json};

use crate::{Bench, Tools};

#[tokio::test]
async fn results_of_tools_become_outcomes() {
    let (bench, tools) = Bench::with_tools("fine", |_| ()).await;
    tools.echoes().await;
    assert_eq!(tools.failed("fail").await, "no such ticket");
    assert_eq!(tools.call("value", Value::Null).await.parts, [Part::Data(json!({"sum": 3}))]);
    let picture = tools.call("picture", json!({})).await.parts;
    let [Part::Media(Media { media_type: kind, url })] = &picture[..] else { panic!("{picture:?}") };
    assert_eq!(kind, "image/png");
    assert!(url.starts_with("data:image/png;base64,iVBOR"), "{url}");
    let raw = tools.call("echo", json!("raw text")).await;
    assert_eq!(raw.text(), "the arguments must be a JSON object");
    assert_eq!(bench.starts(), 1);
}

#[tokio::test]
async fn what_a_schema_cannot_say_is_not_sent_to_models() {
    let (_bench, tools) = Bench::with_tools("fine", |_| ()).await;
    let parameters = |name: &str| tools.get(name).spec().parameters.clone();
    let expected = json!({"type": "object", "properties": {"text": {"title": "T"}}});
    assert_eq!(parameters("value"), expected);
    let expected = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    assert_eq!((parameters("echo"), parameters("fail")), (expected.clone(), expected));
}

#[tokio::test]
async fn resources_are_read_by_tools() {
    let (bench, tools) = Bench::with_tools("library", |_| ()).await;
    let names: Vec<_> =
        tools.0.iter().map(|tool| (tool.spec().name.as_str(), tool.spec().repeatable)).collect();
    assert_eq!(names, [("test_list_resources", true), ("test_read_resource", true)]);
    let listed = "Volume 0: book:0 (A novel)\nVolume 1: book:1 (A novel)\nVolume 2: book:2 (A novel)";
    assert_eq!(tools.done("list_resources", json!({})).await, listed);
    assert_eq!(tools.done("read_resource", json!({"uri": "book:1"})).await, "book:1:\nCall me Ishmael.");
    assert_eq!(tools.failed("read_resource").await, "`uri` must be a text: which resource to read");
    let few = Tools::of(&bench.servers(|limits| limits.tools = 2)).await;
    let listed =
        "Volume 0: book:0 (A novel)\nVolume 1: book:1 (A novel)\n(there are more, which are not listed)";
    assert_eq!(few.done("list_resources", json!({})).await, listed);
}

#[tokio::test]
async fn calls_at_the_same_time_share_the_server() {
    let (bench, tools) = Bench::with_tools("fine", |_| ()).await;
    let calls = (0..20).map(|n| tools.done("echo", json!({"text": format!("no. {n}")})));
    let wanted: Vec<String> = (0..20).map(|n| format!("no. {n}")).collect();
    assert_eq!(futures_util::future::join_all(calls).await, wanted);
    assert_eq!(bench.starts(), 1);
}

#[tokio::test]
async fn servers_get_a_clean_environment() {
    let (_bench, tools) = Bench::with_tools("fine", |_| ()).await;
    let environment = tools.done("environment", json!({})).await;
    let environment: serde_json::Map<String, Value> = serde_json::from_str(&environment).unwrap();
    // It has the key, which a result does not show.
    assert_eq!(environment["KEY"], "***");
    // What starts interpreters may put more in front of it.
    assert!(environment["PATH"].as_str().unwrap().ends_with(&std::env::var("PATH").unwrap()));
    // Cargo sets these for every test.
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    let strangers: Vec<_> = environment.keys().filter(|name| name.starts_with("CARGO")).collect();
    assert!(strangers.is_empty(), "{strangers:?}");
}

#[tokio::test]
async fn what_a_server_says_is_marked_as_words_from_outside_when_it_fails_as_well() {
    let (_bench, tools) = Bench::with_tools("fine", |_| ()).await;
    for (tool, args) in
        [("echo", json!({"text": "hi"})), ("fail", json!({})), ("refuse", json!({})), ("die", json!({}))]
    {
        let outcome = tools.call(tool, args).await;
        assert_eq!(outcome.outside.as_deref(), Some("the MCP server `test`"), "{tool}");
        let shown = polylogue_core::text_of(&outcome.for_model()).into_owned();
        assert!(shown.starts_with("From the MCP server `test`. ") && shown.contains("<outside "), "{shown}");
    }
}
