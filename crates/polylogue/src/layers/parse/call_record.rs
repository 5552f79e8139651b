//! The result of a call, for programs.

use polylogue_core::{Message, Part};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of the call in a message: part of the reply of [`ActionExecutor`](super::ActionExecutor).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The tool, by the name in the call; `None` when there was no call.
    pub tool: Option<String>,
    /// The parsed arguments.
    pub args: Value,
    /// The final state.
    pub state: RunState,
}

/// The final state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunState {
    /// The tool succeeded.
    Done,
    /// A tool that [ends the turn](polylogue_core::ToolSpec::ends_turn) succeeded: the work is done.
    Finished,
    /// There was no call, or it could not be parsed. Nothing ran.
    NotRead,
    /// There is no such tool. Nothing ran.
    NoSuchTool,
    /// The arguments do not fit the tool: one is missing, unknown or of a wrong type. Nothing ran.
    WrongArguments,
    /// A person rejected it. Nothing ran.
    Rejected,
    /// The tool failed, with an error.
    Failed,
    /// It was running when the process died; its effects are unknown.
    Unknown,
}

impl CallRecord {
    /// Returns the result of the call that `message` answers; `None` if it answers none.
    pub fn from_message(message: &Message) -> Option<Self> {
        message.parts.iter().rev().find_map(|part| match part {
            Part::Note(value) => serde_json::from_value(value.clone()).ok(),
            _ => None,
        })
    }

    /// Returns whether the tool succeeded.
    pub const fn is_done(&self) -> bool {
        matches!(self.state, RunState::Done | RunState::Finished)
    }
}
