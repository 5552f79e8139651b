//! Agents with many tools, whose models search them.

use std::sync::{Arc, Mutex};

use polylogue::agents::ToolCalling;
use polylogue::tools::FunctionTool;
use polylogue::tools::approval::Approval;
use polylogue::tools::search::{ToolSearch, longest_result};
use polylogue::{AnyModel, Assistant, Chat, Tool, sequential};
use polylogue_core::{Body, Capabilities, DeltaSink, Model, ModelError, Reply, Request};
use polylogue_models::Script;
use serde_json::{Value, json};

use super::stage::{Cast, events, events_with, log, print};

const FOUND: &str = r#"[
    {"Ann": {"calls": [{"tool": "search_tools", "args": {"query": "city weather", "limit": 1}}]}},
    {"Ann": {"calls": [{"tool": "call_tool", "args": {"name": "tool_7", "arguments": {"text": "Oslo"}}}]}},
    {"Ann": {"calls": [{"tool": "tool_7", "args": {"text": "Rome"}}]}},
    {"Ann": "Rain."}
]"#;

/// The tool number `nth`, of which the seventh is about weather. It says its text again.
fn tool(nth: usize) -> impl Tool + use<> {
    let about = if nth == 7 { "Returns the weather of a city." } else { "Does something else." };
    FunctionTool::new(&format!("tool_{nth}"), about, async |args: Value| Ok(args["text"].clone()))
        .repeatable()
}

fn with_tools(agent: Assistant, count: usize) -> Assistant {
    (0..count).fold(agent, |agent, nth| agent.tool(tool(nth)))
}

fn alone(agent: Assistant) -> Chat {
    Chat::builder("group").participant(agent).policy(sequential()).build().unwrap()
}

fn ann(cast: &Cast<'_>) -> Assistant {
    with_tools(cast.assistant("Ann"), 41)
}

/// The names of the tools that an agent's model receives.
fn offered(agent: &Assistant) -> Vec<&str> {
    agent.specs().iter().map(|spec| &*spec.name).collect()
}

#[tokio::test]
async fn a_found_tool_is_called_by_call_tool_or_by_its_name_and_logged_as_itself() {
    let text = print(&events(FOUND, |cast| alone(ann(cast))).await);
    let found =
        r#"{"name":"tool_7","description":"Returns the weather of a city.","arguments":{"type":"object","#;
    assert!(text.contains("Ann calls search_tools") && text.contains(found), "{text}");
    assert_eq!(text.matches("Ann calls tool_7").count(), 2, "{text}");
    assert!(!text.contains("Ann calls call_tool"), "{text}");
    assert!(text.contains(": Oslo\n") && text.contains(": Rome\n"), "{text}");
    assert!(text.contains("Ann says: Rain."), "{text}");
}

/// Notes the names of the tools of every request.
#[derive(Clone)]
struct Spy(AnyModel, Arc<Mutex<Vec<Vec<String>>>>);

impl Model for Spy {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.1.lock().unwrap().push(request.tools.iter().map(|tool| tool.name.clone()).collect());
        self.0.complete(request, deltas).await
    }
}

#[tokio::test]
async fn the_tools_of_requests_do_not_change_when_one_is_found() {
    let script: Script = serde_json::from_str(FOUND).unwrap();
    let spy = Spy(AnyModel::new(script.model("test")), Arc::default());
    let search = ToolSearch::default().always(["tool_3"]);
    let ann = with_tools(Assistant::new("Ann", AnyModel::new(spy.clone())).unwrap(), 50).tool_search(search);
    let mut log = log().await;
    alone(ann).run_in(&mut log, "task").await.unwrap();
    assert_eq!(*spy.1.lock().unwrap(), vec![vec!["tool_3", "search_tools", "call_tool"]; 4]);
}

#[tokio::test]
async fn an_approval_asks_about_the_found_tool_and_not_about_the_search() {
    let chat = |cast: &Cast<'_>| alone(ann(cast).approval(Approval::always()));
    let text = print(&events_with(FOUND, &|_| "yes", chat).await);
    assert_eq!(text.matches(" is answered: yes").count(), 2, "{text}");
    assert!(text.contains(r#"`tool_7` with:\n\n```\n{"text":"Oslo"}"#), "{text}");
    let only = |cast: &Cast<'_>| alone(ann(cast).approval(Approval::of_tools(["tool_7"])));
    let rejected = print(&events_with(FOUND, &|_| "no", only).await);
    assert!(!rejected.contains(": Oslo\n") && rejected.contains("Ann says: Rain."), "{rejected}");
}

#[tokio::test]
async fn wrong_names_and_empty_searches_are_errors_for_the_model() {
    const SCRIPT: &str = r#"[
        {"Ann": {"calls": [{"tool": "search_tools", "args": {"query": " "}}]}},
        {"Ann": {"calls": [{"tool": "search_tools", "args": {"query": "astrology"}}]}},
        {"Ann": {"calls": [{"tool": "call_tool", "args": {"name": "get_weather", "arguments": {}}}]}},
        {"Ann": {"calls": [{"tool": "call_tool", "args": {"name": "call_tool", "arguments": {}}}]}},
        {"Ann": {"calls": [{"tool": "call_tool", "args": {"arguments": "x"}}]}},
        {"Ann": {"calls": [{"tool": "call_tool", "args": {"name": "tool_1", "arguments": "{\"text\": \"as text\"}"}}]}},
        {"Ann": {"calls": [{"tool": "call_tool", "args": {"name": "tool_1", "arguments": 3}}]}},
        {"Ann": "I give up."}
    ]"#;
    let text = print(&events(SCRIPT, |cast| alone(ann(cast))).await);
    for expected in [
        "`query` must say what the tool should do.",
        "None of the 41 tools matches `astrology`. Search with other words.",
        "There is no tool `get_weather`. Similar: `tool_7`. `search_tools` finds tools.",
        "There is no tool `call_tool`.",
        "`name` must be the name of a tool.",
        ": as text\n",
        "The arguments of `tool_1` must be a JSON object; got: 3",
        "Ann says: I give up.",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[tokio::test]
async fn models_that_call_tools_by_objects_search_too() {
    const SCRIPT: &str = r#"[
        {"Ann": "{\"say\": null, \"call\": {\"tool\": \"search_tools\", \"args\": {\"query\": \"weather\"}}}"},
        {"Ann": "{\"say\": null, \"call\": {\"tool\": \"call_tool\", \"args\": {\"name\": \"tool_7\", \"arguments\": {\"text\": \"Oslo\"}}}}"},
        {"Ann": "{\"say\": \"Rain.\", \"call\": null}"}
    ]"#;
    let text = print(&events(SCRIPT, |cast| alone(ann(cast).tool_calling(ToolCalling::Schema))).await);
    assert!(text.contains("Ann calls tool_7") && text.contains(": Oslo\n"), "{text}");
    assert!(!text.contains("`tool_8`"), "no definition but those of the search: {text}");
}

#[tokio::test]
async fn few_tools_and_names_of_the_search_are_offered_as_they_are() {
    let model = || AnyModel::new(serde_json::from_str::<Script>("[]").unwrap().model("test"));
    let ann = || Assistant::new("Ann", model()).unwrap();
    assert_eq!(offered(&with_tools(ann(), 40)).len(), 40);
    assert_eq!(offered(&with_tools(ann(), 41)), ["search_tools", "call_tool"]);
    assert_eq!(offered(&with_tools(ann(), 41).without_tool_search()).len(), 41);
    let own = FunctionTool::new("call_tool", "Calls a tool of a machine.", async |args: Value| Ok(args));
    assert_eq!(offered(&with_tools(ann(), 41).tool(own)).len(), 42);
    // The order of settings does not matter.
    let search = || ToolSearch::default().above(1);
    assert_eq!(offered(&with_tools(ann().tool_search(search()), 2)), ["search_tools", "call_tool"]);
    assert_eq!(offered(&with_tools(ann(), 2).tool_search(search())), ["search_tools", "call_tool"]);
}

/// The bound of a run rests on that: a result has at most 20 definitions, or a part of what the model wrote.
#[tokio::test]
async fn no_result_of_a_search_is_longer_than_its_bound() {
    let script = json!([
        {"Ann": {"calls": [{"tool": "search_tools", "args": {"query": "weather, something else", "limit": 99}}]}},
        {"Ann": {"calls": [{"tool": "search_tools", "args": {"query": "q".repeat(9_000)}}]}},
        {"Ann": {"calls": [{"tool": "call_tool", "args": {"name": "n".repeat(9_000), "arguments": {}}}]}},
        {"Ann": "Rain."}
    ]);
    let events = events(&script.to_string(), |cast| alone(ann(cast))).await;
    let results = events.iter().filter_map(|event| match &event.body {
        Body::ToolReturned { result: outcome, .. } => Some(outcome.text().into_owned()),
        _ => None,
    });
    let results: Vec<String> = results.collect();
    let model = || AnyModel::new(serde_json::from_str::<Script>("[]").unwrap().model("test"));
    let agent = |count| with_tools(Assistant::new("Ann", model()).unwrap(), count);
    assert_eq!((agent(40).searched().count(), agent(41).searched().count()), (0, 41));
    let most = longest_result(agent(41).searched());
    assert_eq!((results.len(), results[0].matches("\"name\":\"tool_").count()), (3, 20), "{results:?}");
    assert!(results.iter().all(|result| result.len() <= most), "{most}: {results:?}");
    assert!(results[0].len() + 200 > most, "{most}: {results:?}");
}
