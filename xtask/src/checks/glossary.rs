//! The types and functions that the glossary names exist in the library.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::repo::Repo;

const PAGE: &str = "docs/glossary.md";
/// The cell of a row that has the names in code; the text before the first bar is cell 0.
const HERE: usize = 3;
/// Crates that programs do not use as a library.
const OTHERS: [&str; 4] = [
    "crates/polylogue-cli/",
    "crates/polylogue-config",
    "crates/polylogue-import/",
    "crates/polylogue-team/",
];

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let Some(page) = repo.text(PAGE) else { return Vec::new() };
    let declared = declared(repo);
    let rows = (1..).zip(page.lines()).filter(|(_, row)| row.starts_with("| **"));
    let names = rows.flat_map(|(line, row)| {
        let here = row.split('|').nth(HERE).unwrap_or_default();
        here.split('`').skip(1).step_by(2).map(move |name| (line, name))
    });
    let missing = names.filter(|(_, name)| parts(name).iter().any(|part| !declared.contains(part)));
    let finding = |(line, name): (usize, &str)| {
        Finding::new(PAGE, line, format!("the library has no `{name}`"), "name what it has")
    };
    missing.map(finding).collect()
}

/// The names within `name` if it is one of Rust: `Chat`, `Chat::run`, `round_robin()`. Keys, events and commands have none.
fn parts(name: &str) -> Vec<&str> {
    let is_path = name.split("::").all(|part| !part.is_empty() && part.chars().all(is_of_name));
    match name.strip_suffix("()") {
        Some(function) => vec![function],
        None if is_path && name.starts_with(|c: char| c.is_ascii_uppercase()) => name.split("::").collect(),
        None => Vec::new(),
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The names of items and of variants in the sources of the library.
fn declared(repo: &Repo) -> BTreeSet<&str> {
    let is_library = |file: &str| {
        file.starts_with("crates/")
            && file.contains("/src/")
            && !OTHERS.iter().any(|other| file.starts_with(other))
    };
    let texts = repo.texts(".rs").filter(|(file, _)| is_library(file));
    texts.flat_map(|(_, text)| text.lines()).flat_map(names_of).collect()
}

/// The names that a line may declare: after the keyword of an item, or at its beginning if that is a variant.
fn names_of(line: &str) -> Vec<&str> {
    const ITEMS: [&str; 6] = ["const", "enum", "fn", "struct", "trait", "type"];
    if line.trim_start().starts_with("//") {
        return Vec::new();
    }
    let words: Vec<&str> = line.split(|c| !is_of_name(c)).filter(|word| !word.is_empty()).collect();
    let items = words.windows(2).filter_map(|pair| match pair {
        [item, name] if ITEMS.contains(item) => Some(*name),
        _ => None,
    });
    let variant = words.first().filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())).copied();
    items.chain(variant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    #[test]
    fn names_that_the_library_does_not_have_are_found() {
        let page = "| term | meaning | here |\n|---|---|---|\n\
                    | **chat** | - | `Chat::run`, `Act::Pass`, `stop()`; key `chat`; `show ID`; event `closed` |\n\
                    | **gone** | `Elsewhere` | `Gone`, `Chat::gone`, `gone()`, `Keys` |\n";
        let library = "// struct Gone\npub struct Chat;\npub enum Act {\n    Pass,\n}\npub async fn run() {}\nfn stop() {}\n";
        let files = [
            ("docs/glossary.md", page),
            ("crates/polylogue/src/lib.rs", library),
            ("crates/polylogue-team/src/lib.rs", "pub struct Keys;\n"),
        ];
        assert_eq!(
            brief(&check(&repo(&files))),
            ["`Gone`", "`Chat::gone`", "`gone()`", "`Keys`"]
                .map(|name| format!("docs/glossary.md:4: the library has no {name}"))
        );
    }
}
