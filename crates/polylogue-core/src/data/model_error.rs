//! Errors of models.

use std::num::NonZeroU32;
use std::time::Duration;

use super::capabilities::Capability;
use super::fault::Fault;

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{model}: {message}")]
pub struct ModelError {
    /// The kind of failure.
    pub kind: ModelErrorKind,
    /// The model, as `provider:model`.
    pub model: String,
    /// The error message. Never contains a key.
    pub message: String,
    /// The HTTP status, if one was received.
    pub status: Option<u16>,
    /// The beginning of the response body.
    pub body: Option<String>,
    /// How to fix the error.
    pub hint: Option<String>,
    /// The milliseconds for which the model is not to be called, if that is known: a rate limit is the cause. A caller that
    /// runs many conversations continues this one afterwards.
    pub wait_ms: Option<NonZeroU32>,
}

/// The kind of a model error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The caller's settings are wrong: no key, unknown model, invalid parameter.
    Config,
    /// The endpoint cannot be reached, or the connection broke.
    Connection,
    /// A timeout.
    Timeout,
    /// The provider cannot reply now: a rate limit, a server error.
    Unavailable,
    /// The account of the key has no credit left, or met its budget or a quota that does not end soon.
    QuotaExceeded,
    /// A filter of the provider refused the request because of what it says.
    ContentFiltered,
    /// A rate limit would have the call wait for longer than its caller does, which runs many conversations and makes it after
    /// [`wait`](ModelError::wait).
    Postponed,
    /// The provider's reply cannot be parsed.
    InvalidReply,
    /// A script or a recording has no such step.
    Script,
    /// The request breaks an invariant: a bug in Polylogue.
    Bug,
    /// The model or its server lacks a capability that the request needs. Another form of request may work.
    Unsupported(Capability),
    /// The request is longer than the model's context window.
    TooLong {
        /// The tokens of the request, if the provider says them.
        tokens: Option<u32>,
        /// The limit, if the provider says it.
        limit: Option<u32>,
    },
    /// The provider refused the seals of earlier replies: signatures or encrypted reasoning that it no longer
    /// accepts. The request works without them.
    SealsRefused,
    /// The provider refused a parameter that the model leaves out from now on
    /// ([`Model::ignored`](crate::Model::ignored)). The same request may be accepted.
    ParameterRefused,
}

impl ModelError {
    /// Creates an error of `model` with a message only.
    pub fn new(kind: ModelErrorKind, model: impl Into<String>, message: impl Into<String>) -> Self {
        let (model, message) = (model.into(), message.into());
        Self { kind, model, message, status: None, body: None, hint: None, wait_ms: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Sets how long the model is not to be called.
    #[must_use]
    pub fn wait_for(self, wait: Duration) -> Self {
        let milliseconds = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        Self { wait_ms: NonZeroU32::new(milliseconds), ..self }
    }

    /// Sets a wait like [`wait_for`](Self::wait_for), for a call that is only [put off](ModelErrorKind::Postponed).
    #[must_use]
    pub fn postponed_for(self, wait: Duration) -> Self {
        Self { kind: ModelErrorKind::Postponed, ..self.wait_for(wait) }
    }

    /// Returns how long to wait before the model is called again, if that is known.
    pub fn wait(&self) -> Option<Duration> {
        self.wait_ms.map(|wait| Duration::from_millis(wait.get().into()))
    }

    /// Whether the same request fails in the same way again until a person changes the request, the key, the account or the model: it was refused, such as
    /// with status 400, 401, 403 or 404. An account without credit is none of these: it may have some later.
    ///
    /// ```
    /// use polylogue_core::{ModelError, ModelErrorKind};
    ///
    /// let of = |kind| ModelError::new(kind, "provider:model", "status 401");
    /// assert!(of(ModelErrorKind::Config).is_permanent());
    /// assert!(!of(ModelErrorKind::Connection).is_permanent());
    /// ```
    pub const fn is_permanent(&self) -> bool {
        match self.kind {
            ModelErrorKind::Config
            | ModelErrorKind::ContentFiltered
            | ModelErrorKind::Script
            | ModelErrorKind::Bug
            | ModelErrorKind::Unsupported(_)
            | ModelErrorKind::TooLong { .. } => self.wait_ms.is_none(),
            // The next request has another form, or comes later.
            ModelErrorKind::SealsRefused
            | ModelErrorKind::ParameterRefused
            | ModelErrorKind::Connection
            | ModelErrorKind::Timeout
            | ModelErrorKind::Unavailable
            | ModelErrorKind::QuotaExceeded
            | ModelErrorKind::Postponed
            | ModelErrorKind::InvalidReply => false,
        }
    }

    /// Returns who can fix the error.
    pub const fn fault(&self) -> Fault {
        match self.kind {
            ModelErrorKind::Config
            | ModelErrorKind::Script
            | ModelErrorKind::Unsupported(_)
            | ModelErrorKind::TooLong { .. }
            | ModelErrorKind::ParameterRefused => Fault::Config,
            ModelErrorKind::Bug => Fault::Bug,
            _ => Fault::Provider,
        }
    }
}
