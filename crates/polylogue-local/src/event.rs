//! What a request receives from the thread of its model.

use polylogue_core::{Capability, Delta, Reply};

use crate::error::Defect;

/// What a request receives.
pub(crate) enum Event {
    Delta(Delta),
    End(Result<Reply, Failure>),
}

/// Why there is no reply.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The file turned out to be damaged.
    Defect(Defect),
    /// The model cannot be held to what the request needs.
    Lacks(Capability, String),
    /// A bug here or in the engine.
    Bug(String),
}

impl Failure {
    pub(crate) fn grammar(error: impl std::fmt::Display) -> Self {
        Self::Bug(format!("the grammar of the reply failed: {error}"))
    }

    pub(crate) fn no_token() -> Self {
        Self::Bug("no token can follow".into())
    }
}

impl From<candle_core::Error> for Failure {
    fn from(error: candle_core::Error) -> Self {
        Self::Defect(error.into())
    }
}
