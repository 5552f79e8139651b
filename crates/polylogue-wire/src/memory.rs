//! What agents remember from one conversation to the next.

use polylogue_core::{LogId, Name, Timestamp};
use serde::{Deserialize, Serialize};

/// Facts that agents have written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The facts.
    pub facts: Vec<Fact>,
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Its number, which is never used again.
    pub id: u64,
    /// Whose memory it belongs to.
    pub scope: String,
    /// The fact.
    pub text: String,
    /// Who wrote it down.
    pub by: Name,
    /// When.
    pub time_ms: Timestamp,
    /// In which conversation.
    pub conversation: LogId,
    /// In which call within it.
    pub call: String,
}

/// The fact was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// Always `true`.
    pub forgotten: bool,
}
