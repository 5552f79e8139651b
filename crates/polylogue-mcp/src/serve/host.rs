//! What is served: tools, their results, and tasks.

use std::future::{Future, ready};

use polylogue_core::ToolSpec;
use serde_json::{Map, Value};

use super::answer::Answer;
use super::caller::Caller;
use super::form::{FormAnswer, FormQuestion};
use super::task::TaskReport;

/// A tool as clients see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedTool {
    /// The name, description and arguments.
    pub spec: ToolSpec,
    /// The JSON Schema of [`Answer::value`], an object. Default: not declared.
    pub output: Option<Value>,
}

impl From<ToolSpec> for ServedTool {
    fn from(spec: ToolSpec) -> Self {
        Self { spec, output: None }
    }
}

/// The error for invalid parameters: what the caller names does not exist, or it may not see it, or what it sends back is not
/// what it received: it gets the error -32602.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidParams(pub String);

/// Handles the calls of clients.
pub trait ToolHost: Send + Sync + 'static {
    /// Whether it has tasks: calls whose result is read later. Default: no.
    const HAS_TASKS: bool = false;

    /// Returns the tools that the caller may use, always in the same order.
    fn tools(&self, caller: &Caller) -> impl Future<Output = Vec<ServedTool>> + Send;

    /// Handles a call of `tool`. When the caller [cancels](Caller::cancelled) the call, it should return soon; its result is then
    /// dropped.
    ///
    /// # Errors
    /// When there is no such tool, or the [state](Caller::state) is not valid.
    fn call(
        &self,
        tool: &str,
        args: Map<String, Value>,
        caller: &mut Caller,
    ) -> impl Future<Output = Result<Reply, InvalidParams>> + Send;

    /// Returns the state of a task.
    ///
    /// # Errors
    /// When there is no such task.
    fn task(
        &self,
        id: &str,
        caller: &Caller,
    ) -> impl Future<Output = Result<TaskReport, InvalidParams>> + Send {
        let _ = caller;
        ready(Err(InvalidParams(format!("there is no task `{id}`"))))
    }

    /// Gives a task the answers to its questions. Answers to what is not asked have no effect.
    ///
    /// # Errors
    /// When there is no such task.
    fn answer_task(
        &self,
        id: &str,
        answers: Vec<FormAnswer>,
        caller: &Caller,
    ) -> impl Future<Output = Result<(), InvalidParams>> + Send {
        let _ = (answers, caller);
        ready(Err(InvalidParams(format!("there is no task `{id}`"))))
    }

    /// Cancels a task. One that has ended stays unchanged.
    ///
    /// # Errors
    /// When there is no such task.
    fn cancel_task(
        &self,
        id: &str,
        caller: &Caller,
    ) -> impl Future<Output = Result<(), InvalidParams>> + Send {
        let _ = caller;
        ready(Err(InvalidParams(format!("there is no task `{id}`"))))
    }
}

/// What a client receives for a call.
#[derive(Debug, Clone, PartialEq, derive_more::From)]
pub enum Reply {
    /// The result.
    #[from]
    Answer(Answer),
    /// Questions to its user. The client repeats the call with answers and `state`. Only for callers that [take it](Caller::takes_questions).
    Questions {
        /// The questions.
        questions: Vec<FormQuestion>,
        /// What the client sends back: from an untrusted party.
        state: String,
    },
    /// The result follows later. Only for callers that [take it](Caller::takes_tasks).
    Task(TaskReport),
}
