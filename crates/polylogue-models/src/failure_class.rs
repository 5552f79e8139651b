//! Classes of failures.

use polylogue_core::{ModelError, ModelErrorKind};

/// A class of failures after which another model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// A rate limit, or an account without credit, whatever status the provider has for that.
    Rate,
    /// The provider is overloaded: status 503 or 529.
    Overload,
    /// An error of the provider: another status from 500 on, 408, 409, or a reply that cannot be parsed.
    Server,
    /// A timeout.
    Timeout,
    /// The provider cannot be reached, or the connection broke.
    Connection,
    /// The conversation is longer than the model's context window. A model whose window is known to be no larger is
    /// skipped.
    TooLong,
    /// The provider filtered the request or the reply, or the model refused to reply.
    Refusal,
}

impl FailureClass {
    /// The default classes: all but [`Refusal`](Self::Refusal).
    pub const DEFAULT: [Self; 6] =
        [Self::Rate, Self::Overload, Self::Server, Self::Timeout, Self::Connection, Self::TooLong];

    /// The class of `error`; `None` for errors of the caller, which another model would only hide.
    pub(crate) fn of(error: &ModelError) -> Option<Self> {
        Some(match (error.kind, error.status) {
            (ModelErrorKind::Connection, _) => Self::Connection,
            (ModelErrorKind::Timeout, _) => Self::Timeout,
            (ModelErrorKind::Protocol, _) => Self::Server,
            (ModelErrorKind::TooLong { .. }, _) => Self::TooLong,
            (ModelErrorKind::Filtered, _) => Self::Refusal,
            (ModelErrorKind::Spent | ModelErrorKind::Postponed, _) => Self::Rate,
            (ModelErrorKind::Refused, Some(402 | 429)) => Self::Rate,
            (ModelErrorKind::Refused, Some(503 | 529)) => Self::Overload,
            (ModelErrorKind::Refused, _) => Self::Server,
            _ => return None,
        })
    }
}
