//! The version of a team with which a stored conversation continues: that of the current file, or the stored one.

use std::path::Path;

use polylogue_core::LogId;
use polylogue_runtime::stored::StoredTeam;
use polylogue_team::{Loaded, TeamChange};

use crate::args;
use crate::error::CliError;
use crate::stderr::print_note;
use crate::view::NO_BOUND;

/// The most changes that are listed.
const LISTED: usize = 20;

/// The version that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TeamVersion<'a> {
    /// The current file, if its changes are harmless.
    Harmless,
    /// The current file.
    Current,
    /// The stored one.
    Pinned,
    /// That of this file.
    Of(&'a Path),
}

/// The team of the current file, and how it differs from the one with which a conversation continued last.
pub(super) struct NewerTeam {
    pub(super) loaded: Loaded,
    pub(super) changes: Vec<TeamChange>,
}

impl TeamVersion<'_> {
    /// The version that `args` ask for.
    pub(super) const fn wanted(args: &args::Resume) -> Self {
        match args {
            args::Resume { pinned: true, .. } => Self::Pinned,
            args::Resume { accept_changes: true, .. } => Self::Current,
            _ => Self::Harmless,
        }
    }

    /// The team of the current file, if the conversation `id` is to continue with it. `None` if the file has not changed or
    /// is gone: then the stored team counts.
    pub(super) fn of(self, id: &LogId, stored: &StoredTeam) -> Result<Option<NewerTeam>, CliError> {
        match self {
            Self::Pinned => return Ok(None),
            Self::Of(file) => return of_file(id, stored, file),
            Self::Harmless | Self::Current => {}
        }
        let file = stored.team.file();
        let newer = match stored.team.reload() {
            None => return Ok(None),
            Some(Ok(newer)) => newer,
            // Lines of the file are not shown: a store from elsewhere may name any file.
            Some(Err(_)) => {
                let what = format!("the team file `{file}` has changed since `{id}` began, and has errors");
                let hint =
                    format!("`polylogue check {file}` shows them; `--pinned` continues with the stored team");
                return Err(CliError::usage(what).hint(hint));
            }
        };
        let changes = stored.team.changes_to(&newer.team);
        if changes.is_empty() {
            return Ok(None);
        }
        let listed = listed(&changes);
        if self == Self::Current || are_harmless(&changes) {
            let what = format!("the team file `{file}` has changed since `{id}` began:{listed}");
            print_note(&with_bound(what, &changes));
            return Ok(Some(NewerTeam { loaded: newer, changes }));
        }
        let hint = "`--accept-changes` continues with the changed file, `--pinned` with the stored team";
        Err(CliError::usage(format!("the team file `{file}` has changed since `{id}` began:{listed}"))
            .hint(hint))
    }
}

/// The team of `file`, if it differs from the stored one.
fn of_file(id: &LogId, stored: &StoredTeam, file: &Path) -> Result<Option<NewerTeam>, CliError> {
    let loaded = stored.team.load_version(file)?;
    let changes = stored.team.changes_to(&loaded.team);
    if changes.is_empty() {
        return Ok(None);
    }
    let what = format!("`{}` differs from the team of `{id}`:{}", file.display(), listed(&changes));
    print_note(&with_bound(what, &changes));
    Ok(Some(NewerTeam { loaded, changes }))
}

fn are_harmless(changes: &[TeamChange]) -> bool {
    changes.iter().all(|change| change.is_harmless)
}

/// `what` has changed, and that the bound of the run does not apply any more if it does not.
fn with_bound(what: String, changes: &[TeamChange]) -> String {
    if are_harmless(changes) { what } else { format!("{what}\n{NO_BOUND}") }
}

fn listed(changes: &[TeamChange]) -> String {
    let line = |change: &TeamChange| {
        let harmless = if change.is_harmless { " (harmless)" } else { "" };
        format!("\n  {change}{harmless}")
    };
    let mut text: String = changes.iter().take(LISTED).map(line).collect();
    if let Some(more) = changes.len().checked_sub(LISTED).filter(|more| *more > 0) {
        text.push_str(&format!("\n  and {more} more"));
    }
    text
}
