//! The work directories of conversations: what is shown of them.

use std::path::{Path, PathBuf};

use polylogue_core::LogId;
use polylogue_runtime::refused_programs;
use polylogue_team::Team;

use crate::place;
use crate::screen::Looks;
use crate::screen::picture::{Draws, Pictures};
use crate::tell::tell_wrapped;

/// How many of its files are named.
const SHOWN: usize = 5;
/// How many are looked at.
const LOOKED_AT: usize = 10_000;

/// Says at once that programs will be refused here, rather than when a model has been paid for writing some.
pub(crate) fn tell_refusals(team: &Team) {
    for why in refused_programs(team) {
        let hint = "`polylogue doctor` says what else there is";
        tell_wrapped(&format!("warning: the programs of `{}` will be refused: {why}; {hint}.", team.name));
    }
}

/// Where the pictures of the conversation `id` are, and how they are shown.
pub(crate) fn pictures(store: Option<&Path>, id: &LogId, looks: Looks) -> Pictures {
    let draws = looks.live.then(Draws::of_terminal).flatten();
    Pictures::new(work_dir(store, id), draws)
}

/// What is said of the work directory of the conversation `id`; nothing when there is none, or nothing in it.
pub(crate) fn told(store: Option<&Path>, id: &LogId) -> Option<String> {
    let dir = work_dir(store, id)?;
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

fn work_dir(store: Option<&Path>, id: &LogId) -> Option<PathBuf> {
    place::of(store).ok()?.work_dir(id).ok()
}
