//! Errors before a program runs.

use std::io;

/// The reason why a program was not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine does not support the sandbox.
    #[error(
        "the sandbox does not work here: {why}\nhint: allow it, use a machine that does, ask for a container, or for \
         the unsafe host by name, which runs code with all your rights"
    )]
    Refused {
        /// What is missing.
        why: String,
    },
    /// The caller's configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    pub(crate) const fn system(what: &'static str, source: io::Error) -> Self {
        Self::System { what, source }
    }
}
