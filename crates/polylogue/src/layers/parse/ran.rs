//! What came of a call, for programs.

use polylogue_core::{Message, Part};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What became of what a message called: it rides on the reply of [`Actions`](super::Actions).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// The tool, by the name it was called by; nothing when nothing was called.
    pub tool: Option<String>,
    /// The arguments, as they were read.
    pub args: Value,
    /// How it ended.
    pub state: RunState,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunState {
    /// The tool did it.
    Done,
    /// A tool did it that [ends the turn](polylogue_core::ToolSpec::ends_turn): the work is done.
    Finished,
    /// There was nothing to run, or what was written could not be read. Nothing was run.
    NotRead,
    /// There is no such tool. Nothing was run.
    NoSuchTool,
    /// The arguments do not fit the tool: one is missing, unknown or of another type. Nothing was run.
    WrongArguments,
    /// A person who was asked before rejected it. Nothing was run.
    Rejected,
    /// The tool failed, and says why.
    Failed,
    /// It was running when the process died, and nobody knows what it did.
    Unknown,
}

impl Ran {
    /// What came of the call that `message` answers; nothing if it answers none.
    #[must_use]
    pub fn of(message: &Message) -> Option<Self> {
        message.parts.iter().rev().find_map(|part| match part {
            Part::Note(value) => serde_json::from_value(value.clone()).ok(),
            _ => None,
        })
    }

    /// Whether the tool did what was asked.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.state, RunState::Done | RunState::Finished)
    }
}
