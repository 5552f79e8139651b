//! The timeline of calls, and what models were sent.

use std::sync::Arc;

use polylogue_core::{Entry, Name, Path};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::call_row::{CallKind, CallRow, CallStarts, call_rows};

/// A page of the timeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallPage {
    /// The rows, in the order of their events.
    pub calls: Vec<CallRow>,
    /// The number of the first row of the next page; `None` on the last one.
    pub next: Option<u64>,
}

/// The histories of agents: what they received and said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Histories {
    /// Each agent in each chat, in the order of the chats and of their participants.
    pub histories: Vec<AgentHistory>,
}

/// What an agent received and said in a chat, from its own point of view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentHistory {
    /// The chat.
    pub chat: Path,
    /// The agent.
    pub agent: Name,
    /// The system message.
    pub system: Option<Arc<str>>,
    /// The entries that it received and said, in the forms in which models take it.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub entries: Vec<Entry>,
}

/// The request that the model of an agent received in a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct View {
    /// The agent.
    pub agent: Name,
    /// The number of the call among the agent's model calls, counted from 1.
    pub call: u64,
    /// The number of model calls that the agent has made.
    pub calls: u64,
    /// The `seq` of the event of the reply.
    pub seq: u64,
    /// The chat.
    pub chat: Path,
    /// Whether it is exactly what was sent, by its digest. If not, the team was changed since.
    pub exact: bool,
    /// The request: model, system text, entries, tools, parameters and digest.
    #[schemars(with = "Map<String, Value>")]
    pub request: Value,
}
