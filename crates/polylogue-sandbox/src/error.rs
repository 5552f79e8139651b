//! What can go wrong before a program runs.

use std::io;

/// Why a program was not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine cannot enclose programs.
    #[error(
        "programs cannot be enclosed here: {why}\nhint: allow it, use a machine that does, ask for a container, or for \
         the unsafe host by name, which runs code with all your rights"
    )]
    Refused {
        /// What is missing.
        why: String,
    },
    /// What was asked for cannot be: the caller's fault.
    #[error("{0}")]
    Config(String),
    /// The system did not do its part.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    pub(crate) const fn system(what: &'static str, source: io::Error) -> Self {
        Self::System { what, source }
    }
}
