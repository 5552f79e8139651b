//! Servers that run elsewhere, and misbehave there.

use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue_http::Proxies;
use polylogue_mcp::{Allowed, Limits, Servers};
use serde_json::json;

use crate::{PATIENCE, Tools, until};

/// A limit that tests mean to meet.
const SHORT: Duration = Duration::from_secs(3);

/// A server that is reached by HTTP; it ends with this.
struct There {
    dir: tempfile::TempDir,
    manner: &'static str,
    port: u16,
    child: Child,
}

impl There {
    async fn new(manner: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let child = start(&dir, manner, 0);
        let mut there = Self { dir, manner, port: 0, child };
        until("the server is there", || there.notes().contains("port ")).await;
        until("the port is written", || there.notes().ends_with('\n')).await;
        there.port = there.notes().lines().next().unwrap()["port ".len()..].parse().unwrap();
        there
    }

    /// Another process at the same port, as if it had been restarted.
    async fn again(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
        self.child = start(&self.dir, self.manner, self.port);
        until("the server is there again", || self.notes().matches("port ").count() == 2).await;
    }

    fn notes(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("notes")).unwrap_or_default()
    }

    fn servers(&self, limit: impl FnOnce(&mut Limits)) -> Servers {
        self.servers_at(&format!("http://127.0.0.1:{}/mcp", self.port), limit)
    }

    fn servers_at(&self, url: &str, limit: impl FnOnce(&mut Limits)) -> Servers {
        let mut limits = Limits::default();
        (limits.start, limits.call) = (PATIENCE, PATIENCE);
        limit(&mut limits);
        let headers = json!({"Authorization": "Bearer ${KEY}", "X-Team": "red"});
        let document =
            json!({"mcpServers": {"test": {"type": "http", "url": url, "headers": headers}}}).to_string();
        let look_up = |name: &str| (name == "KEY").then(|| "hunter22".to_owned());
        Servers::with_variables(&document, look_up).unwrap().limited(limits).through(Proxies::none())
    }

    async fn shown(&self) -> String {
        self.servers(|_| ()).tools([("test", Allowed::All)]).await.unwrap_err().to_string()
    }
}

impl Drop for There {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(dir: &tempfile::TempDir, manner: &str, port: u16) -> Child {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/http_server.py");
    let mut command = Command::new("python3");
    command.args([script, manner]).arg(dir.path().join("notes")).arg(port.to_string());
    command.spawn().unwrap()
}

#[tokio::test]
async fn answers_come_whole_or_as_streams_with_progress() {
    let there = There::new("locked").await;
    let received: Arc<Mutex<Vec<f64>>> = Arc::default();
    let kept = Arc::clone(&received);
    let servers = there.servers(|_| ()).on_progress(move |progress| kept.lock().unwrap().push(progress.done));
    let tools = Tools::of(&servers).await;
    tools.echoes().await;
    assert_eq!(tools.done("stream", json!({})).await, "streamed");
    assert_eq!(*received.lock().unwrap(), [1.0, 2.0]);
    let calls = (0..20).map(|n| tools.done("echo", json!({"text": format!("no. {n}")})));
    let wanted: Vec<String> = (0..20).map(|n| format!("no. {n}")).collect();
    assert_eq!(futures_util::future::join_all(calls).await, wanted);
    drop((tools, servers));
    until("the session is ended", || there.notes().contains("deleted")).await;
}

#[tokio::test]
async fn an_address_without_an_mcp_server_is_an_error() {
    let wanted = "the MCP server `test` cannot be reached as an MCP server: ";
    for (manner, why) in [
        ("moved", "HTTP 307: it has moved"),
        ("site", "the answer is neither JSON nor a stream of events"),
        ("ill", "HTTP 503: out of memory out of memory"),
    ] {
        let shown = There::new(manner).await.shown().await;
        assert!(shown.starts_with(&format!("{wanted}{why}")) && shown.len() < 500, "{shown}");
    }
    let there = There::new("locked").await;
    let document = json!({"mcpServers": {"test": {"url": format!("http://127.0.0.1:{}", there.port)}}});
    let servers = Servers::from_json(&document.to_string()).unwrap().through(Proxies::none());
    let shown = servers.tools([("test", Allowed::All)]).await.unwrap_err().to_string();
    assert_eq!(
        shown,
        format!("{wanted}HTTP 401: it does not know who asks: set a header such as `Authorization`")
    );
    let unreachable = there.servers_at("http://127.0.0.1:1/mcp", |_| ());
    let shown = unreachable.tools([("test", Allowed::All)]).await.unwrap_err().to_string();
    assert!(shown.starts_with(&format!("{wanted}connecting failed: ")), "{shown}");
    for url in ["ftp://example.org", "example.org/mcp", ""] {
        let wrong = there.servers_at(url, |_| ()).tools([("test", Allowed::All)]).await.unwrap_err();
        assert!(wrong.to_string().contains("has a `url` that is none of HTTP"), "{wrong}");
    }
}

#[tokio::test]
async fn one_that_hangs_costs_the_call() {
    let there = There::new("fine").await;
    let tools = Tools::of(&there.servers(|limits| limits.call = SHORT)).await;
    let shown = tools.failed("hang").await;
    assert_eq!(shown, "the MCP server `test` did not answer within 3 s, and the call was cancelled");
    until("the server receives it", || there.notes().contains("cancelled")).await;
    tools.echoes().await;
}

#[tokio::test]
async fn one_that_dies_costs_the_call_and_is_found_again_when_it_is_back() {
    let mut there = There::new("fine").await;
    let tools = Tools::of(&there.servers(|_| ())).await;
    let begun = std::time::Instant::now();
    let shown = tools.failed("die").await;
    assert!(begun.elapsed() < PATIENCE / 2, "it is noticed, and not waited for: {shown}");
    assert!(shown.contains("it is unknown whether it did what was asked"), "{shown}");
    // It accepts connections until the last of it is gone.
    there.child.wait().unwrap();
    let gone = tools.failed("echo").await;
    assert!(gone.contains(": connecting failed: "), "{gone}");
    there.again().await;
    tools.echoes().await;
}

#[tokio::test]
async fn one_that_was_restarted_or_forgot_its_session_is_not_missed() {
    let mut there = There::new("fine").await;
    let tools = Tools::of(&there.servers(|_| ())).await;
    tools.echoes().await;
    there.again().await;
    tools.echoes().await;
    assert_eq!(tools.done("forget", json!({})).await, "forgotten");
    tools.echoes().await;
}

#[tokio::test]
async fn answers_that_are_none_cost_the_call() {
    let there = There::new("fine").await;
    let tools = Tools::of(&there.servers(|limits| limits.message_bytes = 1 << 20)).await;
    for (name, why) in [
        ("break", "it is unknown whether it did what was asked"),
        ("page", "the answer is neither JSON nor a stream of events"),
        ("fail", "HTTP 500: the disk is on fire, key ***"),
        ("endless", "sent a message of more than 1048576 bytes"),
        ("large", "sent a message of more than 1048576 bytes"),
        ("refuse", "refused: not on Sundays"),
    ] {
        let shown = tools.failed(name).await;
        assert!(shown.starts_with("the MCP server `test` ") && shown.contains(why), "{name}: {shown}");
        assert!(!shown.contains("rmcp") && shown.len() < 300, "{name}: {shown}");
        tools.echoes().await;
    }
}
