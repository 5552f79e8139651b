//! The metadata of logs.

use std::sync::Arc;

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
    /// The conversation that it was forked from, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// Another version of the team of a conversation, with which it continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeamChanged {
    /// Identifies the content of the team file and of what it includes.
    pub digest: Arc<str>,
    /// What is different, in words.
    pub changes: Vec<Arc<str>>,
    /// Whether no change has an effect on a conversation that has begun: then the bound of the run still applies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub harmless: bool,
    /// What the creator needs to run the log again, instead of [`Meta::team`]; the kernel does not read it. `null` where that
    /// of another conversation began with the same events.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub team: Value,
}

/// The conversation that a log was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The log whose events it begins with.
    pub id: LogId,
    /// The first event that was not copied unchanged.
    pub event: u64,
    /// Whether the fork has another text there: that of the event, or a message instead of the one that follows in the
    /// original.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

impl Parent {
    /// How many events the fork began with, the one with another text included.
    pub(crate) fn copied(&self) -> u64 {
        self.event.saturating_add(self.edited.into())
    }
}
