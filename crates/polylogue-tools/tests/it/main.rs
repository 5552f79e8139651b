//! Tools that do real work: programs, files.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "these are tests"
)]

mod attacks;
mod bounded;
mod calls;
mod code;
mod command;
mod files;
mod kept;
mod kills;
mod openapi;
mod python_session;
mod site;
mod venvs;
mod web;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use polylogue_core::{Body, Event, Resources, Tool, ToolError, ToolResult, ToolStatus, text_of};
use polylogue_test::skip::can_enclose;
use polylogue_test::tool::call_tool;
use polylogue_tools::code::{Sandbox, what_is_enforced};
use serde_json::Value;

/// A directory that is gone when the test is over.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NTH: AtomicU32 = AtomicU32::new(0);
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("polylogue-tools-{}-{nth}", std::process::id()));
        std::fs::create_dir_all(path.join("work")).unwrap();
        Self(path.canonicalize().unwrap())
    }

    /// The work directory within it.
    pub(crate) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.0.join(path)).unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A sandbox in the work directory of `dir`; none, with the reason on the error output, where the kernel forbids it.
pub(crate) fn sandbox(dir: &Dir) -> Option<Sandbox> {
    let missing = what_is_enforced().into_iter().find(|measure| measure.required && !measure.holds);
    can_enclose(missing.as_ref().map(|missing| &*missing.detail)).then(|| Sandbox::enclosed(dir.work()))
}

thread_local! {
    /// What tools hold for the test.
    static HELD: Arc<Resources> = Arc::default();
}

/// What tools hold for the test.
pub(crate) fn held() -> Arc<Resources> {
    HELD.with(Arc::clone)
}

/// The results of the calls of a log, in words.
pub(crate) fn returned(events: &[Arc<Event>]) -> Vec<String> {
    let shown = |event: &Arc<Event>| match &event.body {
        Body::ToolReturned { result: outcome, .. } => Some(outcome.text().into_owned()),
        _ => None,
    };
    events.iter().filter_map(shown).collect()
}

/// Calls `tool` in the conversation of the test.
pub(crate) async fn call(tool: &impl Tool, args: Value) -> Result<ToolResult, ToolError> {
    call_tool(tool, args, &held(), &[]).await
}

/// The outcome of a call, in words.
pub(crate) async fn result_of(tool: &impl Tool, args: Value) -> (ToolStatus, String) {
    match call(tool, args).await {
        Ok(outcome) => (outcome.status, text_of(&outcome.parts).into_owned()),
        Err(error) => (ToolStatus::Failed, error.0),
    }
}

/// The result of a call that worked.
pub(crate) async fn done(tool: &impl Tool, args: Value) -> String {
    match result_of(tool, args).await {
        (ToolStatus::Done, text) => text,
        other => panic!("{other:?}"),
    }
}

/// The error of a call that failed.
pub(crate) async fn failed(tool: &impl Tool, args: Value) -> String {
    match result_of(tool, args).await {
        (ToolStatus::Failed, text) => text,
        other => panic!("{other:?}"),
    }
}
