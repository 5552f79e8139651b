//! Tools of servers that run, and misbehave: real processes.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod addresses;
mod declared;
mod failing;
mod leftovers;
mod official;
mod results;
mod run;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use polylogue_core::{AnyTool, Resources, Tool as _, ToolResult, ToolStatus};
use polylogue_mcp::{Allowed, Limits, Servers};
use polylogue_test::tool::call_tool;
use serde_json::{Value, json};

/// Long enough for a busy machine: nothing waits for it unless something is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The server of tests, and where it notes what happens.
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    manner: &'static str,
}

impl Bench {
    pub(crate) fn new(manner: &'static str) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), manner }
    }

    /// One whose tools are there, with the limits of [`servers`](Self::servers).
    pub(crate) async fn with_tools(manner: &'static str, limit: impl FnOnce(&mut Limits)) -> (Self, Tools) {
        let bench = Self::new(manner);
        let tools = Tools::of(&bench.servers(limit)).await;
        (bench, tools)
    }

    fn notes_file(&self) -> PathBuf {
        self.dir.path().join("notes")
    }

    pub(crate) fn declared(&self) -> Value {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
        json!({"mcpServers": {"test": {
            "command": "python3",
            "args": [script, self.manner, self.notes_file()],
            "env": {"KEY": "${KEY}"},
        }}})
    }

    /// The server, whose limits are too long for any test to meet but those named in `limit`.
    pub(crate) fn servers(&self, limit: impl FnOnce(&mut Limits)) -> Servers {
        let mut limits = Limits::default();
        (limits.start, limits.call) = (PATIENCE, PATIENCE);
        limit(&mut limits);
        let look_up = |name: &str| (name == "KEY").then(|| "hunter22".to_owned());
        Servers::with_variables(&self.declared().to_string(), look_up).unwrap().limited(limits)
    }

    pub(crate) fn notes(&self) -> String {
        std::fs::read_to_string(self.notes_file()).unwrap_or_default()
    }

    /// How often it was started.
    pub(crate) fn starts(&self) -> usize {
        self.notes().matches("started").count()
    }

    /// Waits until it has noted `what`.
    pub(crate) async fn noted(&self, what: &str) {
        until(what, || self.notes().contains(what)).await;
    }
}

/// Waits until `holds`.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether the process `pid` runs; one that ended and was not yet fetched does not.
pub(crate) fn runs(pid: &str) -> bool {
    let stat = std::process::Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap().stdout;
    let stat = String::from_utf8_lossy(&stat);
    !stat.trim().is_empty() && !stat.trim().starts_with('Z')
}

/// The tools of `servers`, to be found by the server's names for them.
pub(crate) struct Tools(pub(crate) Vec<AnyTool>);

impl Tools {
    pub(crate) async fn of(servers: &Servers) -> Self {
        Self(servers.tools([("test", Allowed::All)]).await.unwrap())
    }

    pub(crate) fn get(&self, name: &str) -> &AnyTool {
        let name = format!("test_{name}");
        self.0.iter().find(|tool| tool.spec().name == name).unwrap()
    }

    pub(crate) async fn call(&self, name: &str, args: Value) -> ToolResult {
        match call_tool(self.get(name), args, &Resources::default(), &[]).await {
            Ok(outcome) => outcome,
            Err(error) => ToolResult::failed(error.0),
        }
    }

    /// The result of a call that worked.
    pub(crate) async fn done(&self, name: &str, args: Value) -> String {
        let outcome = self.call(name, args).await;
        assert_eq!(outcome.status, ToolStatus::Done, "{outcome:?}");
        outcome.text().into_owned()
    }

    /// The error of a call that failed.
    pub(crate) async fn failed(&self, name: &str) -> String {
        let outcome = self.call(name, json!({})).await;
        assert_eq!(outcome.status, ToolStatus::Failed, "{outcome:?}");
        outcome.text().into_owned()
    }

    /// Whether the server is fine: it is called, and answers.
    pub(crate) async fn echoes(&self) {
        assert_eq!(self.done("echo", json!({"text": "hi"})).await, "hi");
    }
}
