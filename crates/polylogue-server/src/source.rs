//! Where a server has its teams from. The program that starts it decides what they may use.

use futures_util::future::BoxFuture;
use polylogue_runtime::{Prepared, StoreLocation};

/// Why a team cannot be read or prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SourceError {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub hint: Option<String>,
    /// Whether the values that the caller gave are wrong, and not the file or the machine.
    pub is_usage: bool,
}

/// The teams of a server: which there are, and what they may use.
pub trait TeamSource: Send + Sync + 'static {
    /// The ids of the teams, in the order in which they are listed: letters, digits, `-`, `_` and `.`.
    fn ids(&self) -> Vec<String>;

    /// Prepares the team to run at `place`. Its models should stream.
    ///
    /// # Errors
    /// When the file is wrong, or it asks for what is missing or was not allowed.
    fn prepare<'a>(
        &'a self,
        team: &'a str,
        place: &'a StoreLocation,
    ) -> BoxFuture<'a, Result<Prepared, SourceError>>;
}
