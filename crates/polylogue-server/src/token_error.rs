//! Why tokens cannot be read or made.

use std::path::PathBuf;

/// Why tokens cannot be read or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("the tokens in `{path}` cannot be {what}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was done with it.
        what: &'static str,
        /// The error of the system, or the place of a mistake in the file.
        why: String,
    },
    /// The name of a tenant is empty, too long, or has other characters than letters, digits, `-` and `_`.
    #[error("`{0}` is not a tenant: up to 64 letters, digits, `-` and `_`")]
    BadTenant(String),
    /// A token without a scope could do nothing.
    #[error("a token needs at least one scope")]
    NoScope,
    /// The system has no randomness.
    #[error("the system gives no random bits: {0}")]
    NoRandomness(String),
}
