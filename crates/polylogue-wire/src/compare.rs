//! Two conversations side by side.

use polylogue_core::{Name, Path};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conversation::Conversation;

/// Two conversations side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The first one.
    pub a: Conversation,
    /// The second one.
    pub b: Conversation,
    /// The number of events with which both begin. Times do not count.
    pub common: usize,
    /// The messages after these, next to each other.
    pub messages: Vec<Pair>,
    /// Whether there are more messages.
    pub has_more: bool,
    /// How much more the second one used, for each number of either.
    pub difference: Map<String, Value>,
}

/// A message of each conversation; `None` where one has fewer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The message of the first one.
    pub a: Option<ComparedMessage>,
    /// The message of the second one.
    pub b: Option<ComparedMessage>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedMessage {
    /// The `seq` of the event.
    pub seq: u64,
    /// The chat.
    pub chat: Path,
    /// The author.
    pub who: Name,
    /// The text.
    pub text: String,
    /// Whether not every participant receives it.
    pub private: bool,
}
