//! What agents remember from one conversation to the next.

use polylogue_core::{LogId, Name, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Facts that agents have written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// The facts.
    pub facts: Vec<Fact>,
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// The id, which is never used again.
    pub id: u64,
    /// The scope: whose memory it belongs to.
    pub scope: String,
    /// The fact.
    pub text: String,
    /// The agent that wrote it down.
    pub by: Name,
    /// The time at which it was written down.
    pub time_ms: Timestamp,
    /// The conversation in which it was written down.
    pub conversation: LogId,
    /// The call within it.
    pub call: String,
}

/// The fact was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forgotten {
    /// Always `true`.
    pub forgotten: bool,
}
