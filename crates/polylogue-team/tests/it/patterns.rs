//! Which files know a pattern: a new one is a file with its `Part`, a variant, and the count of its turns.

use std::fs;
use std::path::{Path, PathBuf};

/// The files in `folder` and the folders in it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn a_pattern_is_named_by_nothing_but_its_variant_and_the_count_of_its_turns() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // Nothing depends on whether a chat is a debate, so a file that names this pattern has to name every one.
    let is_named = |path: &PathBuf| fs::read_to_string(path).unwrap().contains("Pattern::Debate");
    let found = sources(&src).into_iter().filter(is_named);
    let found: Vec<PathBuf> = found.map(|path| path.strip_prefix(&src).unwrap().to_owned()).collect();
    assert_eq!(found, [Path::new("bound/pattern.rs")]);
}
