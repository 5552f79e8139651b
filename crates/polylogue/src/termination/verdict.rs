//! Whether a task is complete, as whoever solves it says.

use std::sync::Arc;

use polylogue_core::{Message, Part};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What came of asking an agent whether its task is complete. In the log it is part of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Whether the task is complete.
    pub complete: bool,
    /// What was answered in the end.
    pub reply: Arc<str>,
    /// Whether the answer said neither, so that the task counts as not complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
}

impl Verdict {
    pub(crate) fn of_reply(reply: &str, complete: Option<bool>) -> Self {
        Self { complete: complete.unwrap_or(false), reply: reply.into(), unclear: complete.is_none() }
    }

    /// The verdict that `message` holds, if it holds one.
    #[must_use]
    pub fn of(message: &Message) -> Option<Self> {
        message.parts.iter().find_map(|part| match part {
            Part::Data(value) => serde_json::from_value(value.get("verdict")?.clone()).ok(),
            _ => None,
        })
    }

    pub(crate) fn part(&self) -> Part {
        Part::Data(json!({ "verdict": self }))
    }
}
