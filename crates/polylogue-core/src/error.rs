//! What can go wrong, and whose fault it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ModelError, NameError, Reason, StoreError};

/// A result whose error is Polylogue's.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who has to do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Whoever wrote the team or the call.
    Config,
    /// The model's provider, or the way to it.
    Provider,
    /// A tool.
    Tool,
    /// A limit that was set.
    Limit,
    /// The machine: disk, permissions.
    System,
    /// Polylogue itself.
    Bug,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Config => "config",
            Self::Provider => "provider",
            Self::Tool => "tool",
            Self::Limit => "limit",
            Self::System => "system",
            Self::Bug => "bug",
        })
    }
}

/// Why a run could not go on. What was appended before stays, and running again goes on from there.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The definition of agents or chat is wrong.
    #[error("{0}")]
    Config(String),
    /// A name is illegal.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A model call failed for good.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The log could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An agent of the caller's own failed.
    #[error("{0}")]
    Agent(String),
    /// A limit of the whole run was met. The outermost chat is closed with this reason.
    #[error("{0}")]
    Limit(Reason),
    /// The run was stopped from outside. It is no failure: the run can be resumed.
    #[error("stopped")]
    Halted,
    /// Something happened that must not: a policy that cues a stranger, a log that is no valid conversation.
    #[error("{0}")]
    Bug(String),
}

impl Error {
    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Config(_) | Self::Name(_) | Self::Agent(_) => Fault::Config,
            Self::Model(error) => error.fault(),
            Self::Store(error) => error.fault(),
            Self::Limit(_) | Self::Halted => Fault::Limit,
            Self::Bug(_) => Fault::Bug,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Name(error) => error.suggestion().map(|name| format!("use `{name}`")),
            Self::Model(error) => error.hint.clone(),
            Self::Store(error) => error.hint(),
            _ => None,
        }
    }
}

/// An error as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Whose fault it is.
    pub fault: Fault,
    /// What happened.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self { fault: error.fault(), message: error.to_string(), hint: error.hint() }
    }
}
