//! The work directories of conversations: what is shown of them.

use std::path::PathBuf;

use polylogue_core::{Body, Event, LogId};
use polylogue_runtime::refused_programs;
use polylogue_team::Team;

use crate::limit::counted;
use crate::place::{self, NamedStore, PlaceOption};
use crate::screen::OutputStyle;
use crate::screen::picture::{ImageProtocol, Pictures};
use crate::stderr::print_note_wrapped;

/// How many of its files are named.
const SHOWN: usize = 5;
/// How many are looked at.
const LOOKED_AT: usize = 10_000;

/// Says at once that programs will be refused here, rather than when a model has been paid for writing some.
pub(crate) fn warn_of_refused_programs(team: &Team) {
    for why in refused_programs(team) {
        let hint = "`polylogue doctor` says what else there is";
        print_note_wrapped(&format!(
            "warning: the programs of `{}` will be refused: {why}; {hint}.",
            team.name
        ));
    }
}

/// Where the pictures of the conversation `id` are, and how they are shown.
pub(crate) fn pictures(store: &NamedStore, id: &LogId, style: OutputStyle) -> Pictures {
    let draws = style.live.then(ImageProtocol::of_terminal).flatten();
    Pictures::new(work_dir(store, id), draws)
}

/// How pictures of a conversation are shown whose work directory is not here.
pub(crate) fn pictures_of_server(style: OutputStyle) -> Pictures {
    Pictures::new(None, style.live.then(ImageProtocol::of_terminal).flatten())
}

/// What is said of the work directory of the conversation `id`; nothing when there is none, or nothing in it.
pub(crate) fn summary(store: &NamedStore, id: &LogId) -> Option<String> {
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

/// How many files are stored with the conversation of which `events` are the log.
pub(crate) fn stored_files(events: &[Event]) -> u64 {
    let files = events.iter().rev().find_map(|event| match &event.body {
        Body::ToolReturned { result: outcome, .. } => outcome.files.as_ref(),
        _ => None,
    });
    files.map_or(0, |files| files.files)
}

/// What is said of `count` files of the conversation `id` that are not on this machine.
pub(crate) fn stored_summary(id: &LogId, count: u64, place: &PlaceOption) -> Option<String> {
    let copy = place.command(&format!("files {id} --to FOLDER"));
    (count > 0).then(|| format!("files: {} stored; `{copy}` copies them", counted(count, "file")))
}

fn work_dir(store: &NamedStore, id: &LogId) -> Option<PathBuf> {
    place::of(store).ok()?.work_dir(id).ok()
}
