//! What can go wrong, and whose fault it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ModelError, Name, NameError, Path, StopReason, StoreError};

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
    Limit(StopReason),
    /// An agent that was called ended its chat instead of replying. An agent that called it, and does not go on, ends its
    /// own in the same way.
    #[error("`{who}` did not reply: {reason}")]
    Ended {
        /// Who.
        who: Name,
        /// Why.
        reason: StopReason,
    },
    /// A person has to answer first. It is no failure: the run goes on when there is an answer.
    #[error("a person has to answer first")]
    Waiting,
    /// An agent that another one called failed.
    #[error("`{at}`: {error}")]
    Within {
        /// The room in which it was called, as labels with dots: `blogger.writer`.
        at: String,
        /// What went wrong there.
        error: Box<Error>,
    },
    /// The run was stopped from outside. It is no failure: the run can be resumed.
    #[error("stopped")]
    Cancelled,
    /// Something happened that must not: a policy that cues a stranger, a log that is no valid conversation.
    #[error("{0}")]
    Bug(String),
}

impl Error {
    /// The same error, of an agent called `at`; the innermost agent is named, and whoever is called at the root is known to
    /// the caller. What is no failure of it stays as it is.
    pub(crate) fn within(self, at: &Path) -> Self {
        match self {
            error if at.is_root() => error,
            error @ (Self::Config(_) | Self::Name(_) | Self::Model(_) | Self::Agent(_) | Self::Bug(_)) => {
                let at = at.as_str().trim_start_matches('/').replace('/', ".");
                Self::Within { at, error: Box::new(error) }
            }
            error => error,
        }
    }

    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Config(_) | Self::Name(_) | Self::Agent(_) => Fault::Config,
            Self::Model(error) => error.fault(),
            Self::Store(error) => error.fault(),
            Self::Limit(_) | Self::Cancelled | Self::Waiting | Self::Ended { .. } => Fault::Limit,
            Self::Within { error, .. } => error.fault(),
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
            Self::Within { error, .. } => error.hint(),
            Self::Waiting => Some("answer the open question, then resume".into()),
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
