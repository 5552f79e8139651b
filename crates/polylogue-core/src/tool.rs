//! Tools: functions that agents can call.

mod missing;

use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::missing::no_such_tool;
use crate::{Event, LogId, Meter, Name, Path, Resources, StoredResults, ToolResult, ToolSpec, Transcript};

/// A function that an agent can call.
///
/// One tool value serves any number of conversations at once.
///
/// # Example: a tool that adds two numbers
/// ```
/// use polylogue_core::{ToolResult, Tool, ToolCx, ToolError, ToolSpec};
/// use serde_json::{Value, json};
///
/// struct Add(ToolSpec);
///
/// impl Add {
///     fn new() -> Self {
///         let number = json!({"type": "number"});
///         let parameters = json!({"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]});
///         Self(ToolSpec::new("add", "Adds two numbers.", parameters).repeatable())
///     }
/// }
///
/// impl Tool for Add {
///     fn spec(&self) -> &ToolSpec {
///         &self.0
///     }
///
///     async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
///         let number = |name: &str| args[name].as_f64().ok_or_else(|| ToolError::new(format!("`{name}` must be a number")));
///         Ok(ToolResult::done((number("a")? + number("b")?).to_string()))
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// Returns what models see of the tool: name, description and schema.
    fn spec(&self) -> &ToolSpec;

    /// Runs it with `args`, a JSON object.
    ///
    /// # Errors
    /// The error message for the model; it becomes a failed result, and the turn continues.
    fn call(
        &self,
        args: Value,
        cx: &ToolCx<'_>,
    ) -> impl Future<Output = Result<ToolResult, ToolError>> + Send;
}

/// The context of a tool call.
#[derive(Clone, Copy)]
pub struct ToolCx<'a> {
    /// The conversation.
    pub log: &'a LogId,
    /// The resources that tools keep for it while it is open in this process.
    pub resources: &'a Resources,
    /// The path of the chat.
    pub chat: &'a Path,
    /// The agent that calls.
    pub who: &'a Name,
    /// The chat's transcript when the turn began.
    pub transcript: &'a Transcript,
    /// Events of the turn before this call and those made in parallel, including the replies that requested them, in
    /// order.
    pub turn: &'a [Arc<Event>],
    /// The [shared](Transcript::shared) events of chats that ran within the turn before this call.
    pub within: &'a [Arc<Event>],
    /// The call's `id`.
    pub id: &'a str,
    /// Reserves and counts the usage of models that it calls itself.
    pub meter: &'a Meter<'a>,
    /// The large results that the conversation stores whole.
    pub results: StoredResults<'a>,
}

impl<'a> ToolCx<'a> {
    /// Returns the shared events known at this call: earlier tool calls, their results, and messages with values, of the whole
    /// team or of this chat alone. Parallel events are not included, so that the result is the same after a crash.
    pub fn known(&self, scope: StateScope) -> Vec<&'a Arc<Event>> {
        if scope == StateScope::Chat {
            return self.transcript.events().iter().chain(self.turn).collect();
        }
        let mut turn: Vec<&Arc<Event>> = self.turn.iter().chain(self.within).collect();
        turn.sort_by_key(|event| event.seq);
        self.transcript.shared().chain(turn).collect()
    }
}

/// The scope of a tool's state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateScope {
    /// The team: the outermost chat and all chats within it, and their next runs.
    #[default]
    Team,
    /// One run of one chat.
    Chat,
}

/// The error message of a tool, for the model: say what is wrong in words that it can act on.
///
/// # Example: an error of another type
/// ```
/// use polylogue_core::ToolError;
///
/// let port: Result<u16, ToolError> = "70000".parse().map_err(ToolError::new);
/// assert_eq!(port.unwrap_err().to_string(), "number too large to fit in target type");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl ToolError {
    /// Creates an error with the text of `error`.
    pub fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl From<String> for ToolError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for ToolError {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Any tool. Cloning shares it.
#[derive(Clone, derive_more::Debug)]
#[debug("AnyTool({:?})", self.0.spec().name)]
pub struct AnyTool(Arc<dyn ErasedTool>);

trait ErasedTool: Send + Sync {
    fn spec(&self) -> &ToolSpec;
    fn call<'a>(
        &'a self,
        args: Value,
        cx: &'a ToolCx<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<ToolResult, ToolError>> + Send + 'a>>;
}

impl<T: Tool> ErasedTool for T {
    fn spec(&self) -> &ToolSpec {
        Tool::spec(self)
    }
    fn call<'a>(
        &'a self,
        args: Value,
        cx: &'a ToolCx<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<ToolResult, ToolError>> + Send + 'a>> {
        Box::pin(Tool::call(self, args, cx))
    }
}

impl AnyTool {
    /// Wraps `tool`.
    pub fn new(tool: impl Tool) -> Self {
        Self(Arc::new(tool))
    }
}

impl Tool for AnyTool {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }
    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        self.0.call(args, cx).await
    }
}
