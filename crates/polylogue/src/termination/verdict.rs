//! Verdicts on whether a task is complete.

use std::sync::Arc;

use polylogue_core::{Message, Part};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The answer of an agent to the question whether its task is complete. Logged as a part of its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Whether the task is complete.
    pub complete: bool,
    /// The final answer.
    pub reply: Arc<str>,
    /// Whether the answer was unclear, so that the task counts as not complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
}

impl Verdict {
    pub(crate) fn of_reply(reply: &str, complete: Option<bool>) -> Self {
        Self { complete: complete.unwrap_or(false), reply: reply.into(), unclear: complete.is_none() }
    }

    /// Returns the verdict in `message`, if there is one.
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
