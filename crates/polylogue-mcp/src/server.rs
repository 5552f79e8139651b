//! A server that starts on first use and restarts after a failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue_core::{ConfigError, Result, ToolResult};
use rmcp::model::{JsonObject, Tool};
use tokio::sync::Mutex;

use crate::connection::{Broken, Connection};
use crate::declaration::Declaration;
use crate::expand::Variables;
use crate::progress::ActiveCalls;
use crate::schema::structure;
use crate::settings::Settings;

/// One declared server.
pub(crate) struct Server {
    pub(crate) name: String,
    declaration: Declaration,
    variables: Variables,
    settings: Settings,
    held: Mutex<Held>,
    /// How often it could not be started.
    failures: AtomicU64,
}

/// What calls in flight share.
#[derive(Default)]
struct Held {
    /// The connection. The first call that finds it broken removes it, and it ends with the last of them.
    connection: Option<Arc<Connection>>,
    /// Why it could not be started last.
    failure: String,
}

impl Server {
    pub(crate) fn new(
        name: String,
        declaration: Declaration,
        variables: Variables,
        settings: Settings,
    ) -> Self {
        Self { name, declaration, variables, settings, held: Mutex::default(), failures: AtomicU64::new(0) }
    }

    /// Its tools. Starts it if necessary.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) async fn tools(&self) -> Result<Arc<[Tool]>> {
        let wrong = |why| ConfigError::McpServer { name: self.name.clone(), why };
        let connection = self.connected().await.map_err(wrong)?;
        connection.refresh_tools().await.map_err(|broken| wrong(broken.why))?;
        Ok(connection.tools())
    }

    /// Calls `tool`, if `is_known` is true of the schema that it has now; otherwise the result is the schema. All that the result
    /// says is from outside: the text of a failure can come from the server, too.
    pub(crate) async fn call(
        &self,
        tool: &str,
        is_known: impl Fn(&Arc<JsonObject>) -> bool,
        args: JsonObject,
    ) -> ToolResult {
        let source = format!("the MCP server `{}`", self.name);
        let outcome = match self.called(tool, is_known, args).await {
            Ok(outcome) => outcome,
            Err(why) => ToolResult::failed(format!("{source} {why}")).truncated(),
        };
        outcome.from_outside(source)
    }

    async fn called(
        &self,
        tool: &str,
        is_known: impl Fn(&Arc<JsonObject>) -> bool,
        args: JsonObject,
    ) -> Result<ToolResult, String> {
        let connection = self.connected().await?;
        if let Err(broken) = connection.refresh_tools().await {
            return Err(self.settle(&connection, broken, "").await);
        }
        check_known(tool, is_known, &connection.tools())?;
        match connection.call(tool.to_owned(), args).await {
            Ok(outcome) => Ok(outcome),
            Err(broken) => {
                let unsure = "; it is unknown whether it did what was asked";
                Err(self.settle(&connection, broken, unsure).await)
            }
        }
    }

    /// Ends the connection. The next call starts the server again.
    pub(crate) async fn close(&self) {
        self.held.lock().await.connection = None;
    }

    /// The connection. Starts the server if necessary: once for all calls that wait for it, also if that fails, because each
    /// attempt can take as long as [`Limits::start`](crate::Limits::start).
    async fn connected(&self) -> Result<Arc<Connection>, String> {
        let failures = self.failures.load(Ordering::Acquire);
        let mut held = self.held.lock().await;
        if let Some(connection) = held.connection.as_ref().filter(|connection| connection.lives()) {
            return Ok(Arc::clone(connection));
        }
        if self.failures.load(Ordering::Acquire) != failures {
            return Err(held.failure.clone());
        }
        held.connection = None;
        match self.start().await {
            Ok(connection) => Ok(Arc::clone(held.connection.insert(Arc::new(connection)))),
            Err(why) => {
                held.failure.clone_from(&why);
                self.failures.fetch_add(1, Ordering::Release);
                Err(why)
            }
        }
    }

    async fn start(&self) -> Result<Connection, String> {
        if self.declaration.disabled {
            return Err("is disabled".into());
        }
        if self.declaration.is_of_older_kind() {
            return Err(OLDER_KIND.into());
        }
        if tokio::runtime::Handle::try_current().is_err() {
            return Err("can be used from within a runtime of Tokio only".into());
        }
        let location = self.declaration.location(&self.variables)?;
        let active = ActiveCalls::new(&self.name, self.settings.callback.clone());
        Connection::open(&location, &self.settings, active).await
    }

    /// Drops a broken connection, and describes what happens next.
    async fn settle(&self, connection: &Arc<Connection>, broken: Broken, unsure: &str) -> String {
        if broken.lives {
            return broken.why;
        }
        let mut held = self.held.lock().await;
        // Another call may have started it again already.
        held.connection.take_if(|held| Arc::ptr_eq(held, connection));
        let again = if self.declaration.command.is_some() { "started again" } else { "reached again" };
        format!("{}{unsure}; it is {again} for the next call", broken.why)
    }
}

/// The error for a server whose `type` is `sse`.
const OLDER_KIND: &str = "is reached by the older kind of HTTP (`sse`), which is not supported; most have the newer kind as well, \
    \"streamable HTTP\", often at an address that ends in `/mcp`";

/// Refuses a call whose arguments were written for another schema than the tool has now. Its descriptions, which the user has not
/// seen, are not in the error.
fn check_known(
    tool: &str,
    is_known: impl Fn(&Arc<JsonObject>) -> bool,
    tools: &[Tool],
) -> Result<(), String> {
    let Some(now) = tools.iter().find(|other| other.name == tool) else {
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        return Err(format!("has other tools now, and no `{tool}`; it has: {}", names.join(", ")));
    };
    if is_known(&now.input_schema) {
        return Ok(());
    }
    let schema = structure(&now.input_schema);
    Err(format!(
        "has changed `{tool}`, and nothing was called; call it again with arguments of this schema: {schema}"
    ))
}
