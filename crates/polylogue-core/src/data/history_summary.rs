//! Summaries that replace the older part of an agent's history.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::name::Name;

/// What a model call is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPurpose {
    /// The turn of the agent: the reply is part of its view.
    #[default]
    Turn,
    /// A summary of the older part of the agent's history. The reply is in no view; [`Compacted`] has what follows from it.
    Compaction,
}

impl CallPurpose {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(crate) const fn is_turn(&self) -> bool {
        matches!(self, Self::Turn)
    }
}

/// The older part of an agent's history was replaced by a summary, in the agent's view only. The log keeps all, and the
/// views of others do not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// The agent.
    pub who: Name,
    /// The `seq` of the last event whose messages are replaced. The opening of the chat stays.
    pub through: u64,
    /// The events among these whose messages stay verbatim, before the summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<u64>,
    /// The event among these whose message the agent's turn works on: it stays verbatim after the summary, until the next
    /// compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u64>,
    /// How many messages, calls and results were replaced.
    pub replaced: u64,
    /// The size of the request before, in tokens, estimated from the last reported usage.
    pub tokens_before: u64,
    /// The size of the request after it, estimated in the same way.
    pub tokens_after: u64,
    /// The summary. Includes what an earlier summary had, and replaces it.
    pub summary: HistorySummary,
}

/// A structured summary of the older part of an agent's history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistorySummary {
    /// What the agent works on now.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// Decisions, with their reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// Facts that may be needed later.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Finished work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// Unfinished work and open questions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// Files that were read or written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Anything else, as text: the whole reply of a model that writes no JSON.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

impl HistorySummary {
    /// Returns the summary as text, as the view of the agent has it.
    pub fn text(&self) -> String {
        let mut text =
            String::from("The earlier part of this conversation was replaced by this summary of it.");
        let lists = [
            ("Decisions", &self.decisions),
            ("Facts", &self.facts),
            ("Done", &self.done),
            ("Open", &self.open),
            ("Files", &self.files),
        ];
        // Writing into a string cannot fail.
        if !self.task.is_empty() {
            let _ = write!(text, "\n\nTask: {}", self.task);
        }
        for (title, items) in lists.into_iter().filter(|(_, items)| !items.is_empty()) {
            let _ = write!(text, "\n\n{title}:");
            for item in items {
                let _ = write!(text, "\n- {item}");
            }
        }
        if !self.notes.is_empty() {
            let _ = write!(text, "\n\n{}", self.notes);
        }
        text
    }
}
