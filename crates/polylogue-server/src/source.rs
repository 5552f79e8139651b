//! Where a server has its teams from. The program that starts it decides what they may use.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use polylogue_core::LogId;
use polylogue_runtime::stored::StoredDocument;
use polylogue_runtime::{Prepared, Runtime, StoreLocation};
use polylogue_team::{Diagnostics, Loaded};

/// The reason why a team cannot be read or prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SourceError {
    /// What is wrong.
    pub what: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// Whether the values that the caller gave are wrong, and not the file or the machine.
    pub is_usage: bool,
}

/// The source of a server's teams: which there are, how they are read, and what they may use.
pub trait TeamSource: Send + Sync + 'static {
    /// Returns the ids of the teams, in the order in which they are listed: letters, digits, `-`, `_` and `.`.
    fn ids(&self) -> Vec<String>;

    /// Looks up which teams there are now. Returns those whose files have changed since they were looked at last, or all if
    /// `again`.
    fn rescan(&self, again: bool) -> Vec<String>;

    /// Returns the file of the team, if clients with the right may replace its text.
    fn file(&self, team: &str) -> Option<PathBuf>;

    /// Checks `text` as a new content of the file of `team`, or as that of a new file. Must start nothing, connect to nothing, and read
    /// nothing outside the folder of the file and none of the files `hidden`, such as those of teams that the caller does not see.
    ///
    /// # Errors
    /// All mistakes in the text at once.
    fn check(&self, team: Option<&str>, text: &str, hidden: &[PathBuf]) -> Result<Loaded, Diagnostics>;

    /// Prepares the team to run at `place`. Its models should stream.
    ///
    /// # Errors
    /// When the file is wrong, or it asks for what is missing or was not allowed.
    fn prepare<'a>(
        &'a self,
        team: &'a str,
        place: &'a StoreLocation,
    ) -> BoxFuture<'a, Result<Prepared, SourceError>>;

    /// Prepares the team that is stored with the conversation `id`, to continue it and others with the same `document`.
    ///
    /// # Errors
    /// When it cannot run here any more.
    fn prepare_stored<'a>(
        &'a self,
        runtime: &'a Runtime,
        id: &'a LogId,
        document: &'a StoredDocument,
    ) -> BoxFuture<'a, Result<Prepared, SourceError>>;

    /// Returns whether a team that was prepared for a stored conversation is for others, too, whose documents differ in the
    /// task alone: nothing may be allowed because of that document. Default: no.
    fn is_for_any_task(&self, prepared: &Prepared) -> bool {
        let _ = prepared;
        false
    }
}
