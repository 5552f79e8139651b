//! The reference servers of the protocol's authors, from the registries. `.ci/test` installs them; without them these
//! tests are skipped, and fail in CI.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use polylogue::{Assistant, Chat, Log, Status, sequential};
use polylogue_core::Body;
use polylogue_core::{AnyModel, Part, Tool, ToolStatus};
use polylogue_mcp::{Allowed, Limits, Servers};
use polylogue_models::Script;
use serde_json::{Value, json};

use crate::{PATIENCE, Tools, until};

/// Where they are installed.
fn place() -> Option<PathBuf> {
    polylogue_test::skip::mcp_servers(env!("CARGO_TARGET_TMPDIR"))
}

/// A server of the npm registry, called `test`; `args` are its own.
fn of_npm(name: &str, args: &[&str]) -> Option<Value> {
    let script = format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    let script = place()?.join(script).display().to_string();
    let args = [&[script.as_str()], args].concat();
    Some(json!({"command": "node", "args": args}))
}

/// A server of PyPI, called `test`.
fn of_pypi(module: &str) -> Option<Value> {
    let path = place()?.join("python");
    Some(json!({"command": "python3", "args": ["-m", module], "env": {"PYTHONPATH": path}}))
}

fn servers(declared: &Value) -> Servers {
    let mut limits = Limits::default();
    (limits.start, limits.call) = (PATIENCE, PATIENCE);
    Servers::from_json(&json!({"mcpServers": {"test": declared}}).to_string()).unwrap().limited(limits)
}

#[tokio::test]
async fn tools_progress_and_resources_of_the_reference_server_work() {
    let Some(declared) = of_npm("everything", &["stdio"]) else { return };
    let received: Arc<Mutex<Vec<f64>>> = Arc::default();
    let kept = Arc::clone(&received);
    let servers = servers(&declared).on_progress(move |progress| kept.lock().unwrap().push(progress.done));
    let tools = Tools::of(&servers).await;
    assert_eq!(tools.done("echo", json!({"message": "hi"})).await, "Echo: hi");
    assert!(tools.done("get-sum", json!({"a": 2, "b": 40})).await.contains("42"));
    let weather = tools.call("get-structured-content", json!({"location": "Chicago"})).await;
    assert!(
        weather.parts.iter().any(|part| matches!(part, Part::Data(data) if data["humidity"].is_number()))
    );
    let picture = tools.call("get-tiny-image", json!({})).await;
    assert!(
        picture
            .parts
            .iter()
            .any(|part| matches!(part, Part::Media(media) if &*media.media_type == "image/png"))
    );
    let long = json!({"duration": 0.4, "steps": 4});
    assert!(tools.done("trigger-long-running-operation", long).await.contains("completed"));
    assert_eq!(*received.lock().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let listed = tools.done("list_resources", json!({})).await;
    let uri =
        listed.split_whitespace().find(|word| word.starts_with("demo:") && word.ends_with("architecture.md"));
    let text = tools.done("read_resource", json!({"uri": uri.unwrap()})).await;
    assert!(text.starts_with("demo://") && text.contains("Architecture"), "{text}");
}

/// The same server, reached by HTTP, at a port that was free a moment ago.
fn everything_elsewhere() -> Option<(tokio::process::Child, Value)> {
    let script = place()?.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = tokio::process::Command::new("node");
    command.arg(script).arg("streamableHttp").env("PORT", port.to_string()).kill_on_drop(true);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    Some((child, json!({"type": "streamable-http", "url": format!("http://127.0.0.1:{port}/mcp")})))
}

#[tokio::test]
async fn the_reference_server_works_over_http() {
    let Some((mut child, declared)) = everything_elsewhere() else { return };
    let address = declared["url"].as_str().unwrap()["http://".len()..].trim_end_matches("/mcp").to_owned();
    until("it listens", || std::net::TcpStream::connect(&address).is_ok()).await;
    let received: Arc<Mutex<Vec<f64>>> = Arc::default();
    let kept = Arc::clone(&received);
    let servers = servers(&declared).on_progress(move |progress| kept.lock().unwrap().push(progress.done));
    let tools = Tools::of(&servers).await;
    assert_eq!(tools.done("echo", json!({"message": "hi"})).await, "Echo: hi");
    let long = json!({"duration": 0.4, "steps": 4});
    assert!(tools.done("trigger-long-running-operation", long).await.contains("completed"));
    assert_eq!(*received.lock().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let listed = tools.done("list_resources", json!({})).await;
    let uri = listed.split_whitespace().find(|word| word.starts_with("demo:"));
    let text = tools.done("read_resource", json!({"uri": uri.unwrap()})).await;
    assert!(text.starts_with("demo://"), "{text}");
    assert!(tools.failed("echo").await.contains("message"));
    let (called, ()) = tokio::join!(tools.failed("trigger-long-running-operation"), async {
        until("it has begun", || received.lock().unwrap().len() > 4).await;
        child.kill().await.unwrap();
    });
    assert!(called.contains("it is reached again for the next call"), "{called}");
    assert!(tools.failed("echo").await.contains("connecting failed"));
}

#[tokio::test]
async fn wrong_arguments_and_refusals_are_results_that_failed() {
    let Some(declared) = of_npm("everything", &["stdio"]) else { return };
    let tools = Tools::of(&servers(&declared)).await;
    let shown = tools.failed("echo").await;
    assert!(shown.contains("message"), "{shown}");
    let gone = tools.call("read_resource", json!({"uri": "demo://no/such"})).await;
    assert_eq!(gone.status, ToolStatus::Failed, "{gone:?}");
    assert_eq!(tools.done("echo", json!({"message": "hi"})).await, "Echo: hi");
}

#[tokio::test]
async fn files_are_read_within_the_directory_only() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "Call me Ishmael.").unwrap();
    let Some(declared) = of_npm("filesystem", &[dir.path().to_str().unwrap()]) else { return };
    let servers = servers(&declared);
    let allowed = Allowed::include(["read_text_file", "list_directory"]);
    let tools = Tools(servers.tools([("test", allowed)]).await.unwrap());
    assert_eq!(
        tools.0.iter().map(|tool| &*tool.spec().name).collect::<Vec<_>>(),
        ["test_read_text_file", "test_list_directory"]
    );
    assert!(tools.0.iter().all(|tool| tool.spec().repeatable), "reading is repeatable");
    let text = tools.done("read_text_file", json!({"path": dir.path().join("a.txt")})).await;
    assert!(text.contains("Call me Ishmael."), "{text}");
    let outside = tools.call("read_text_file", json!({"path": "/etc/passwd"})).await;
    assert_eq!(outside.status, ToolStatus::Failed);
    assert!(outside.text().contains("Access denied"), "{outside:?}");
}

#[tokio::test]
async fn a_server_in_python_tells_the_time() {
    let Some(declared) = of_pypi("mcp_server_time") else { return };
    let tools = Tools::of(&servers(&declared)).await;
    let asked = json!({"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let shown = tools.call("convert_time", asked).await;
    let [Part::Data(shown)] = &shown.parts[..] else { panic!("{shown:?}") };
    assert_eq!(shown["target"]["timezone"], "Asia/Tokyo", "{shown}");
    let wrong = tools.call("get_current_time", json!({"timezone": "Mars/Olympus"})).await;
    assert_eq!(wrong.status, ToolStatus::Failed, "{wrong:?}");
}

/// The processes whose command line holds `mark`.
fn pids(mark: &str) -> Vec<String> {
    let listed = Command::new("ps").args(["-eo", "pid=,stat=,args="]).output().unwrap().stdout;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let marked = listed.lines().filter(|line| line.contains(mark) && line.contains("index.js"));
    marked.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_server_killed_in_a_call_fails_the_call_and_the_run_continues() {
    let dir = tempfile::tempdir().unwrap();
    // It takes no notice of further arguments, and is found by this one.
    let mark = dir.path().to_str().unwrap().to_owned();
    let Some(declared) = of_npm("everything", &["stdio", &mark]) else { return };
    let (sent, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let servers =
        servers(&declared).on_progress(move |progress| sent.send(progress.done).unwrap_or_default());
    let script = r#"[
        {"Ann": {"calls": [{"tool": "test_trigger-long-running-operation", "args": {"duration": 600, "steps": 6000}}]}},
        {"Ann": {"calls": [{"tool": "test_echo", "args": {"message": "hi"}}]}},
        {"Ann": "It works again."}
    ]"#;
    let script: Script = serde_json::from_str(script).unwrap();
    let tools = servers.tools([("test", Allowed::All)]).await.unwrap();
    let ann = Assistant::new("Ann", AnyModel::new(script.model("test"))).unwrap().tools(tools);
    let chat = Chat::builder("calls").participant(ann).policy(sequential()).build().unwrap();
    let mut log = Log::in_memory();
    let (ended, ()) = tokio::join!(chat.run_in(&mut log, "go"), async {
        begun.recv().await.unwrap();
        let pid = pids(&mark).pop().unwrap();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    });
    assert!(matches!(ended.as_ref().map(|run| &run.status), Ok(Status::Closed { .. })), "{ended:?}");
    let events = log.events().await;
    let outcomes = events.iter().filter_map(|event| match &event.body {
        Body::ToolReturned { result: outcome, .. } => Some((outcome.status, outcome.text().into_owned())),
        _ => None,
    });
    let outcomes: Vec<_> = outcomes.collect();
    assert_eq!(outcomes[0].0, ToolStatus::Failed);
    assert!(outcomes[0].1.contains("ended before it answered (signal: 9"), "{outcomes:?}");
    assert_eq!(outcomes[1], (ToolStatus::Done, "Echo: hi".to_owned()));
    drop((chat, servers));
    until("nothing is left of it", || pids(&mark).is_empty()).await;
}
