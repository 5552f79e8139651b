//! Tools: what agents can do besides speaking.

mod missing;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::missing::no_such_tool;
use crate::{Event, LogId, Meter, Name, Outcome, Path, Resources, Transcript};

/// Something an agent can call.
///
/// One tool value serves any number of conversations at once.
pub trait Tool: Send + Sync + 'static {
    /// What a model is told of it.
    fn spec(&self) -> &ToolSpec;

    /// Runs it with `args`, a JSON object.
    ///
    /// # Errors
    /// What went wrong, in words a model can act on; it becomes a failed outcome, and the turn goes on.
    fn call(&self, args: Value, cx: &ToolCx<'_>) -> impl Future<Output = Result<Outcome, ToolError>> + Send;
}

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name: 1 to 64 ASCII letters, digits, `_` and `-`.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
    /// Whether a call that was in flight when the process died may simply be made again.
    #[serde(default)]
    pub repeatable: bool,
    /// Whether the turn of the agent that calls it ends with its outcome, without asking the model again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_turn: bool,
}

impl ToolSpec {
    /// A tool that is not made again if it was in flight when the process died.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        let (name, description) = (name.into(), description.into());
        Self { name, description, parameters, repeatable: false, ends_turn: false }
    }

    /// The same tool, which may simply be called again: it only reads, or doing it twice is doing it once.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// The same tool, whose outcome is the last of the turn: what the model said with the call is what its agent says, or
    /// the outcome if it said nothing. A call that failed ends nothing, so that the model can do better.
    #[must_use]
    pub fn ends_turn(self) -> Self {
        Self { ends_turn: true, ..self }
    }
}

/// What a tool may know of the conversation it is called from.
#[derive(Clone, Copy)]
pub struct ToolCx<'a> {
    /// The conversation.
    pub log: &'a LogId,
    /// What tools hold for it as long as it is open in this process.
    pub resources: &'a Resources,
    /// The chat.
    pub at: &'a Path,
    /// The agent that calls.
    pub who: &'a Name,
    /// The chat's transcript as it was when the turn began.
    pub transcript: &'a Transcript,
    /// What happened in the turn before this call and those made at the same time: the replies that asked for them
    /// included, the last of them last.
    pub turn: &'a [Arc<Event>],
    /// What is [shared](Transcript::shared) of chats that ran within the turn before this call.
    pub within: &'a [Arc<Event>],
    /// The call's `id`.
    pub id: &'a str,
    /// What it may spend on models that it asks itself.
    pub meter: &'a Meter<'a>,
}

impl<'a> ToolCx<'a> {
    /// What is known at this call of earlier tool calls, their outcomes, and messages with values: of the whole team, or of this chat
    /// alone. Nothing that happens at the same time is known, so that it is the same after a crash.
    #[must_use]
    pub fn known(&self, scope: StateScope) -> Vec<&'a Arc<Event>> {
        if scope == StateScope::Chat {
            return self.transcript.events().iter().chain(self.turn).collect();
        }
        let mut turn: Vec<&Arc<Event>> = self.turn.iter().chain(self.within).collect();
        turn.sort_by_key(|event| event.seq);
        self.transcript.shared().chain(turn).collect()
    }
}

/// To what the state belongs that a tool keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateScope {
    /// To the team: to the outermost chat and all chats within it, and to their next runs.
    #[default]
    Team,
    /// To one run of one chat.
    Chat,
}

/// Why a tool failed, in words that the model is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

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
#[derive(Clone)]
pub struct AnyTool(Arc<dyn ErasedTool>);

trait ErasedTool: Send + Sync {
    fn spec(&self) -> &ToolSpec;
    fn call<'a>(
        &'a self,
        args: Value,
        cx: &'a ToolCx<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Outcome, ToolError>> + Send + 'a>>;
}

impl<T: Tool> ErasedTool for T {
    fn spec(&self) -> &ToolSpec {
        Tool::spec(self)
    }
    fn call<'a>(
        &'a self,
        args: Value,
        cx: &'a ToolCx<'_>,
    ) -> Pin<Box<dyn Future<Output = Result<Outcome, ToolError>> + Send + 'a>> {
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
    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<Outcome, ToolError> {
        self.0.call(args, cx).await
    }
}

impl fmt::Debug for AnyTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyTool").field(&self.0.spec().name).finish()
    }
}
