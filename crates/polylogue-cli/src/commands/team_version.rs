//! The version of a team with which a stored conversation continues: that of the current file, or the stored one.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use polylogue_core::text::head;
use polylogue_core::{LogId, Timestamp};
use polylogue_models::Day;
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
    /// is gone: then the stored team counts, which was `accepted` at that time if the conversation began with another one.
    pub(super) fn of(
        self,
        id: &LogId,
        stored: &StoredTeam,
        accepted: Option<Timestamp>,
    ) -> Result<Option<NewerTeam>, CliError> {
        match self {
            Self::Pinned => return Ok(None),
            Self::Of(file) => return of_file(id, stored, file),
            Self::Harmless | Self::Current => {}
        }
        let file = stored.team.path().display().to_string();
        let (since, pinned) = match accepted {
            Some(time) => (since_version(id, stored, time), "that version"),
            None => (format!("`{id}` began"), "the stored team"),
        };
        let newer = match stored.team.reload() {
            None if self == Self::Current && !stored.team.file().is_empty() => {
                let what = format!("the team file `{file}` is gone, so it has no changes to accept");
                let hint = format!("without `--accept-changes`, `{id}` continues with {pinned}");
                return Err(CliError::usage(what).hint(hint));
            }
            None => return Ok(None),
            Some(Ok(newer)) => newer,
            // Lines of the file are not shown: a store from elsewhere may name any file.
            Some(Err(_)) => {
                let what = format!(
                    "the team file `{file}`, or a file that it names, has changed since {since}, and has errors"
                );
                let hint = format!("`polylogue check {file}` shows them; `--pinned` continues with {pinned}");
                return Err(CliError::usage(what).hint(hint));
            }
        };
        let changes = stored.team.changes_to(&newer.team);
        if changes.is_empty() {
            return Ok(None);
        }
        let what = format!("the team file `{file}` has changed since {since}:{}", listed(&changes));
        if self == Self::Current || are_harmless(&changes) {
            print_note(&with_bound(what, &changes));
            return Ok(Some(NewerTeam { loaded: newer, changes }));
        }
        let hint = format!("`--accept-changes` continues with the changed file, `--pinned` with {pinned}");
        Err(CliError::usage(what).hint(hint))
    }
}

/// When the conversation `id` continued with the version of its team that is stored, and which one that is.
fn since_version(id: &LogId, stored: &StoredTeam, time: Timestamp) -> String {
    /// How many characters of a digest are shown.
    const DIGITS: usize = 12;
    let day = UNIX_EPOCH.checked_add(Duration::from_millis(time.0)).map_or_else(Day::today, Day::of);
    let minutes = time.0 / 60_000;
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    let version = head(&stored.digest, DIGITS);
    format!("`{id}` continued with its version {version} on {day} at {hour:02}:{minute:02} UTC")
}

/// The team of `file`, if it differs from the stored one. Whether the conversation can continue with it shows later.
fn of_file(id: &LogId, stored: &StoredTeam, file: &Path) -> Result<Option<NewerTeam>, CliError> {
    let loaded = stored.team.load_version(file)?;
    let changes = stored.team.changes_to(&loaded.team);
    if changes.is_empty() {
        return Ok(None);
    }
    print_note(&format!("`{}` differs from the team of `{id}`:{}", file.display(), listed(&changes)));
    Ok(Some(NewerTeam { loaded, changes }))
}

fn are_harmless(changes: &[TeamChange]) -> bool {
    changes.iter().all(|change| change.is_harmless)
}

/// `what` has changed, and that the bound of the run does not apply any more if it does not.
pub(super) fn with_bound(what: String, changes: &[TeamChange]) -> String {
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
