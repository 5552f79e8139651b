//! The fuzz targets that are about no model hold of their seeds, without a fuzzer.

#[allow(unreachable_pub, reason = "it is a part of another crate")]
#[path = "../../../../fuzz/src/event.rs"]
mod event;
#[allow(unreachable_pub, reason = "it is a part of another crate")]
#[path = "../../../../fuzz/src/team.rs"]
mod team;

use std::fs;
use std::path::{Path, PathBuf};

use polylogue_core::Event;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    assert!(!files.is_empty());
    files
}

#[test]
fn events_are_written_as_they_were_read() {
    for seed in files("fuzz/seeds/event") {
        let bytes = fs::read(&seed).unwrap();
        serde_json::from_slice::<Event>(&bytes).unwrap_or_else(|why| panic!("{}: {why}", seed.display()));
        event::event(&bytes);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            event::event(&changed);
            event::event(&bytes[..at]);
        }
    }
}

#[test]
fn shipped_teams_cut_anywhere_do_not_panic() {
    for file in files("teams") {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for (at, _) in text.char_indices().step_by(769) {
            team::team(&text[..at]);
        }
        team::team(&text);
    }
}
