//! What is declared, and when it is started.

use polylogue_core::Tool;
use polylogue_mcp::{Allowed, Catalog, Servers, ToolDescription};
use serde_json::json;

use crate::{Bench, Tools};

fn wrong(text: &str) -> String {
    Servers::from_json(text).unwrap_err().to_string()
}

#[tokio::test]
async fn nothing_is_started_by_loading() {
    let bench = Bench::new("fine");
    let servers = bench.servers(|_| ());
    assert_eq!(servers.names().collect::<Vec<_>>(), ["test"]);
    assert_eq!(bench.starts(), 0);
    let (one, other) = ([("test", Allowed::All)], [("test", Allowed::include(["echo"]))]);
    servers.tools(one).await.unwrap();
    servers.clone().tools(other).await.unwrap();
    assert_eq!(bench.starts(), 1);
}

#[tokio::test]
async fn an_agent_gets_what_is_allowed() {
    let bench = Bench::new("fine");
    let servers = bench.servers(|_| ());
    let names = async |allowed| {
        let tools = servers.tools([("test", allowed)]).await?;
        Ok::<_, polylogue_core::Error>(tools.iter().map(|tool| tool.spec().name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(names(Allowed::include(["fail", "echo"])).await.unwrap(), ["test_echo", "test_fail"]);
    let twice = [("test", Allowed::include(["echo"])), ("test", Allowed::include(["fail", "echo"]))];
    let twice = servers.tools(twice).await.unwrap();
    assert_eq!(twice.iter().map(|tool| &*tool.spec().name).collect::<Vec<_>>(), ["test_echo", "test_fail"]);
    let rest = names(Allowed::exclude(["die", "hang"])).await.unwrap();
    assert_eq!(rest.len(), names(Allowed::All).await.unwrap().len() - 2);
    assert!(!rest.contains(&"test_die".to_owned()));
    let unknown = names(Allowed::exclude(["dei"])).await.unwrap_err().to_string();
    assert!(unknown.starts_with("unknown tool `dei` of the MCP server `test`"), "{unknown}");
}

#[tokio::test]
async fn what_is_known_of_tools_outlives_their_servers() {
    let bench = Bench::new("fine");
    let catalog = bench.servers(|_| ()).catalog(["test"]).await.unwrap();
    let stored = serde_json::to_string(&catalog.described()).unwrap();
    let known = Catalog::of_described(serde_json::from_str::<Vec<ToolDescription>>(&stored).unwrap());
    assert_eq!(known.described(), catalog.described());
    let tools = Tools(known.tools("test", &Allowed::include(["echo"])).unwrap());
    assert_eq!(tools.failed("echo").await, "the server of `test_echo` is not there");
    let other = known.tools("other", &Allowed::All).unwrap_err().to_string();
    assert_eq!(other, "the MCP server `other` was not asked for its tools");
}

#[tokio::test]
async fn specs_are_those_of_the_server() {
    let bench = Bench::new("fine");
    let tools = bench.servers(|_| ()).tools([("test", Allowed::include(["echo", "fail"]))]).await.unwrap();
    let echo = tools[0].spec();
    assert_eq!((echo.description.as_str(), echo.repeatable), ("Does echo", true));
    assert_eq!(echo.parameters["properties"]["text"], json!({"type": "string"}));
    // The server says that it takes a text, which no provider accepts.
    let fail = tools[1].spec();
    assert_eq!((&fail.parameters["type"], fail.repeatable), (&json!("object"), false));
}

#[tokio::test]
async fn lists_without_end_are_cut() {
    let bench = Bench::new("pages");
    let servers = bench.servers(|limits| limits.tools = 3);
    assert_eq!(servers.tools([("test", Allowed::All)]).await.unwrap().len(), 3);
}

#[tokio::test]
async fn servers_that_cannot_be_used_say_why() {
    let servers = Servers::with_variables(
        r#"{"mcpServers": {
            "gone": {"command": "/no/such/program"},
            "off": {"command": "true", "disabled": true},
            "far": {"url": "localhost:1"},
            "old": {"type": "sse", "url": "http://localhost:1/sse"},
            "keyless": {"command": "true", "env": {"KEY": "${NONE}"}},
            "mute": {"command": "true"}
        }}"#,
        |_| None,
    )
    .unwrap();
    let tools = async |name| servers.tools([(name, Allowed::All)]).await.unwrap_err().to_string();
    let gone = "the MCP server `gone` cannot be started: `/no/such/program`: the program or directory does not exist";
    assert_eq!(tools("gone").await, gone);
    assert_eq!(tools("off").await, "the MCP server `off` is disabled");
    assert_eq!(
        tools("keyless").await,
        "the MCP server `keyless` needs the variable `NONE`, which is not set"
    );
    let far = tools("far").await;
    assert!(far.starts_with("the MCP server `far` has a `url` that is none of HTTP"), "{far}");
    let old = tools("old").await;
    assert!(old.starts_with("the MCP server `old` is reached by the older kind of HTTP (`sse`)"), "{old}");
    let mute = tools("mute").await;
    assert!(mute.starts_with("the MCP server `mute` did not start as an MCP server"), "{mute}");
    let none = tools("none").await;
    assert!(none.starts_with("unknown MCP server `none`"), "{none}");
}

#[test]
fn documents_that_are_none_are_refused() {
    assert!(wrong("[]").starts_with("the document of MCP servers is invalid: "));
    assert!(wrong("{}").contains("missing field `mcpServers`"));
    let neither = wrong(r#"{"mcpServers": {"a": {}}}"#);
    assert_eq!(neither, "the MCP server `a` has neither a `command` nor a `url`");
    assert_eq!(Servers::from_json(r#"{"mcpServers": {}, "theme": "dark"}"#).unwrap().names().count(), 0);
}
