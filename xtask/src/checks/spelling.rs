//! Words are spelled as in the United States, in prose as in names: one word, one spelling, so that a search finds all.

use crate::finding::Finding;
use crate::repo::Repo;

/// What is refused anywhere in a word, and what to write.
const BRITISH: [(&str, &str); 22] = [
    ("behaviour", "behavior"),
    ("colour", "color"),
    ("labelled", "labeled"),
    ("labelling", "labeling"),
    ("modelled", "modeled"),
    ("signalled", "signaled"),
    ("traveller", "traveler"),
    ("neighbour", "neighbor"),
    ("favourite", "favorite"),
    ("honoured", "honored"),
    ("licence", "license"),
    ("catalogue", "catalog"),
    ("criticise", "criticize"),
    ("summarise", "summarize"),
    ("recognise", "recognize"),
    ("serialise", "serialize"),
    ("initialis", "initializ"),
    ("optimis", "optimiz"),
    ("normalis", "normaliz"),
    ("organis", "organiz"),
    ("synchronis", "synchroniz"),
    ("artefact", "artifact"),
];

/// Texts of others, and this list.
const EXEMPT: [&str; 2] = ["compat/original/", "xtask/src/checks/spelling.rs"];

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let read = [".rs", ".md", ".yaml", ".toml"].into_iter().flat_map(|end| repo.texts(end));
    let ours = read.filter(|(file, _)| !EXEMPT.iter().any(|exempt| file.starts_with(exempt)));
    ours.flat_map(|(file, text)| british(file, text)).collect()
}

fn british(file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let lower = line.to_lowercase();
        for (word, american) in BRITISH.iter().filter(|(word, _)| lower.contains(word)) {
            let flaw = format!("`{word}` is British for `{american}`");
            found.push(Finding::new(file, index + 1, flaw, "one word has one spelling, the American one"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    #[test]
    fn british_spellings_are_found_in_prose_names_and_team_files() {
        let mut found = check(&repo(&[
            ("a.md", "Colors.\nThe Behaviour of all.\n"),
            ("b.rs", "struct ColourWish;\n"),
            ("c.yaml", "task: Summarise it\n"),
            ("compat/original/d.md", "Behaviour\n"),
        ]));
        found.sort();
        assert_eq!(
            brief(&found),
            [
                "a.md:2: `behaviour` is British for `behavior`",
                "b.rs:1: `colour` is British for `color`",
                "c.yaml:1: `summarise` is British for `summarize`",
            ]
        );
    }
}
