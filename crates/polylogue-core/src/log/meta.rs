//! The metadata of logs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clock::Timestamp;
use crate::LogId;

/// The metadata of a log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The title in lists.
    pub title: String,
    /// The time of creation.
    #[serde(rename = "created_ms")]
    pub created: Timestamp,
    /// Anything that the creator needs to run the log again; the kernel does not read it.
    #[serde(default)]
    pub team: Value,
    /// Where it was forked from, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// Where a log was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The log whose events it begins with.
    pub id: LogId,
    /// The first event that was not copied unchanged.
    pub event: u64,
}
