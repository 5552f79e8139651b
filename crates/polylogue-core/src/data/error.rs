//! Errors, and who can fix them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::config_error::ConfigError;
use super::fault::Fault;
use super::model_error::{ModelError, ModelErrorKind};
use super::name::{Name, NameError};
use super::path::{LabelError, Path};
use super::pattern_error::PatternError;
use super::stop_reason::StopReason;
use super::store_error::StoreError;
use super::unknown_name::UnknownName;

/// A result with Polylogue's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a run could not continue. Events appended before stay, and running again continues from there.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The definition of agents or a chat is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A name is illegal.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A model call failed, after retries.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The log could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A custom agent failed, with an error of its own; see [`Error::agent`].
    #[error(transparent)]
    Agent(Arc<dyn std::error::Error + Send + Sync>),
    /// Not a failure: the turn or the run ends here, or waits.
    #[error(transparent)]
    Interrupt(#[from] Interrupt),
    /// An agent that another agent called failed.
    #[error("`{at}`: {error}")]
    Within {
        /// The path at which it was called, as labels with dots: `blogger.writer`.
        at: String,
        /// The error there.
        error: Box<Error>,
    },
    /// An internal error, such as a log that is not a valid conversation.
    #[error("{0}")]
    Bug(String),
}

/// An interruption of a turn or a run that is not a failure: return it from a turn, by `?`, and the run loop handles
/// it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Interrupt {
    /// A person must answer first. The run continues when there is an answer.
    #[error("a person must answer first")]
    Waiting,
    /// The run was cancelled. It can be resumed.
    #[error("stopped")]
    Cancelled,
    /// An agent that was called ended its chat instead of replying. If the caller does not handle it, its own chat
    /// ends with the same reason.
    #[error("`{who}` did not reply: {reason}")]
    Ended {
        /// The agent.
        who: Name,
        /// The reason.
        reason: StopReason,
    },
    /// A limit was reached. The chat whose limit it is, or the outermost one, is closed with this reason, unless a person is asked to
    /// raise it.
    #[error("{0}")]
    Limit(StopReason),
}

impl Error {
    /// Wraps the error of a custom agent, or its text: its turn fails, and is retried when the chat is run again.
    ///
    /// ```
    /// use std::num::ParseIntError;
    ///
    /// use polylogue_core::{Error, Result};
    ///
    /// fn number(text: &str) -> Result<u16> {
    ///     if text.is_empty() {
    ///         return Err(Error::agent("there is no number"));
    ///     }
    ///     text.trim().parse().map_err(Error::agent)
    /// }
    /// let error = number("twelve").unwrap_err();
    /// assert_eq!(error.to_string(), "invalid digit found in string");
    /// assert!(matches!(&error, Error::Agent(inner) if inner.is::<ParseIntError>()));
    /// ```
    pub fn agent(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let error: Box<dyn std::error::Error + Send + Sync> = error.into();
        Self::Agent(Arc::from(error))
    }

    /// The same error, of an agent called at `at`. The innermost agent is named, and an agent called at the root is
    /// known to the caller. Limits, cancellation and the like stay as they are.
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

    /// Returns who can fix the error.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Config(_) | Self::Name(_) | Self::Agent(_) => Fault::Config,
            Self::Model(error) => error.fault(),
            Self::Store(error) => error.fault(),
            Self::Interrupt(_) => Fault::Limit,
            Self::Within { error, .. } => error.fault(),
            Self::Bug(_) => Fault::Bug,
        }
    }

    /// Returns whether running again fails in the same way until a person changes something: the team, the request, a key, the
    /// model. Errors of custom agents and of the store are not permanent: they may be gone the next time.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Config(_) | Self::Name(_) | Self::Bug(_) => true,
            Self::Model(error) => error.is_permanent(),
            Self::Within { error, .. } => error.is_permanent(),
            Self::Store(_) | Self::Agent(_) | Self::Interrupt(_) => false,
        }
    }

    /// Whether a model call was refused before it was made.
    fn is_unsent(&self) -> bool {
        match self {
            Self::Model(error) => matches!(error.kind, ModelErrorKind::Script | ModelErrorKind::Bug),
            Self::Within { error, .. } => error.is_unsent(),
            _ => false,
        }
    }

    /// Whether a model call is only put off.
    fn is_postponed(&self) -> bool {
        match self {
            Self::Model(error) => error.kind == ModelErrorKind::Postponed,
            Self::Within { error, .. } => error.is_postponed(),
            _ => false,
        }
    }

    /// Whether it ends a run wherever it happens: it is not one of the work of an agent, but an interruption, or one of the setup,
    /// which its user must fix.
    pub(crate) fn ends_run(&self) -> bool {
        match self {
            Self::Config(_) | Self::Name(_) | Self::Store(_) | Self::Interrupt(_) | Self::Bug(_) => true,
            Self::Model(error) => {
                matches!(error.kind, ModelErrorKind::Config | ModelErrorKind::Script | ModelErrorKind::Bug)
            }
            Self::Within { error, .. } => error.ends_run(),
            Self::Agent(_) => false,
        }
    }

    /// Returns how to fix the error, if that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config(error) => error.hint(),
            Self::Name(error) => error.hint(),
            Self::Model(error) => error.hint.clone(),
            Self::Store(error) => error.hint(),
            Self::Within { error, .. } => error.hint(),
            Self::Interrupt(Interrupt::Waiting) => Some("answer the open question, then resume".into()),
            _ => None,
        }
    }
}

/// The logged form of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The party that can fix the error.
    pub fault: Fault,
    /// The error message.
    pub message: String,
    /// How to fix the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether a model call was refused before it was made, such as one that a script does not expect. The call that follows has
    /// its number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsent: bool,
    /// Whether nothing failed: a model call is put off, because a rate limit would have it wait for longer than a worker waits. The
    /// conversation continues when the wait is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub postponed: bool,
    /// Whether running again fails in the same way until a person changes something, such as the key that the provider refuses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
}

impl Failure {
    /// Describes what happened to an agent's turn, after its name: `failed (provider): status 429`, or `is put off: ...`.
    pub fn in_words(&self) -> String {
        match self.postponed {
            true => format!("is put off: {}", self.message),
            false => format!("failed ({}): {}", self.fault, self.message),
        }
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            fault: error.fault(),
            message: error.to_string(),
            hint: error.hint(),
            unsent: error.is_unsent(),
            postponed: error.is_postponed(),
            permanent: error.is_permanent(),
        }
    }
}

impl From<UnknownName> for Error {
    fn from(unknown: UnknownName) -> Self {
        Self::Config(unknown.into())
    }
}

impl From<PatternError> for Error {
    fn from(flaw: PatternError) -> Self {
        Self::Config(flaw.into())
    }
}

impl From<LabelError> for Error {
    fn from(error: LabelError) -> Self {
        Self::Config(error.into())
    }
}
