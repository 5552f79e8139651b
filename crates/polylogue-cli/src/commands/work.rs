//! The work directories of conversations: who has one, what is in it, and what its programs may do.

use std::path::Path;

use polylogue::LogId;
use polylogue_sandbox::{remove_work_directory, what_is_enforced};
use polylogue_team::{BuildContext, SandboxBackend, Team};

use crate::error::CliError;
use crate::place;
use crate::runner::tell_wrapped;
use crate::screen::Looks;
use crate::screen::picture::{Draws, Pictures};
use crate::trust::Access;

/// How many of its files are named.
const SHOWN: usize = 5;
/// How many are looked at.
const LOOKED_AT: usize = 10_000;

/// Where the programs of the conversation `id` work, if its team has any.
pub(super) fn place_of(
    team: &Team,
    store: Option<&Path>,
    id: &LogId,
    access: &Access,
) -> Result<BuildContext, CliError> {
    let place = match team.needs_workplace() {
        true => BuildContext::at(place::of_work(store, id)?),
        false => BuildContext::none(),
    };
    let place = place.grant(access.grants()).with_env(access.env.clone());
    Ok(place.with_rules(access.always.rules.clone(), access.always.team.clone()))
}

/// Makes the work directory of the conversation `id` with the files that the team brings along, if it runs programs and the
/// directory is not there.
pub(super) fn prepare(team: &Team, store: Option<&Path>, id: &LogId) -> Result<(), CliError> {
    if !team.needs_workplace() {
        return Ok(());
    }
    let dir = place::of_work(store, id)?;
    let made = team.prepare(&dir);
    made.map_err(|error| CliError::failed(format!("`{}` cannot be made: {error}", dir.display())))
}

/// Says at once that programs will be refused here, rather than when a model has been paid for writing some.
pub(super) fn tell_refusals(team: &Team) {
    for why in team.runs_programs_at().into_iter().filter_map(refusal) {
        let hint = "`polylogue doctor` says what else there is";
        tell_wrapped(&format!("warning: the programs of `{}` will be refused: {why}; {hint}.", team.name));
    }
}

/// Why programs cannot run at `place` on this machine, if they cannot.
fn refusal(place: SandboxBackend) -> Option<String> {
    match place {
        SandboxBackend::Native => {
            let missing = what_is_enforced().into_iter().find(|measure| measure.required && !measure.holds);
            missing.map(|measure| measure.detail)
        }
        SandboxBackend::Docker => unanswered("docker"),
        SandboxBackend::Podman => unanswered("podman"),
        SandboxBackend::None => None,
    }
}

#[cfg(unix)]
fn unanswered(engine: &str) -> Option<String> {
    let error = polylogue_sandbox::Engine::new(engine, "").answers().err()?;
    let error = error.to_string();
    let why = error.lines().next()?;
    Some(why.strip_prefix("programs cannot be enclosed here: ").unwrap_or(why).to_owned())
}

#[cfg(not(unix))]
fn unanswered(_: &str) -> Option<String> {
    None
}

/// Where the pictures of the conversation `id` are, and how they are shown.
pub(crate) fn pictures(store: Option<&Path>, id: &LogId, looks: Looks) -> Pictures {
    let draws = looks.live.then(Draws::of_terminal).flatten();
    Pictures::new(place::of_work(store, id).ok(), draws)
}

/// What is said of the work directory of the conversation `id`; nothing when there is none, or nothing in it.
pub(crate) fn told(store: Option<&Path>, id: &LogId) -> Option<String> {
    let dir = place::of_work(store, id).ok()?;
    let mut names: Vec<String> = std::fs::read_dir(&dir)
        .ok()?
        .take(LOOKED_AT)
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if names.is_empty() {
        return None;
    }
    names.sort();
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    Some(format!("files: {} ({shown}{more})", dir.display()))
}

/// Removes the work directory of the conversation `id`, if there is one.
pub(super) fn remove(store: Option<&Path>, id: &LogId) -> Result<(), CliError> {
    let dir = place::of_work(store, id)?;
    let removed = remove_work_directory(&dir);
    removed.map_err(|error| CliError::failed(format!("`{}` cannot be removed: {error}", dir.display())))
}
