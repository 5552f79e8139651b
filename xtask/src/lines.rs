//! Counts lines of code: without tests, comments, documentation and blank lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens;

use crate::repo::Repo;
use crate::source::{Source, is_doc};

/// A table of the crates: their files and their lines of code.
pub(crate) fn table(repo: &Repo) -> String {
    let mut crates: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for source in &repo.sources {
        let (files, lines) = crates.entry(crate_of(repo, &source.file)).or_default();
        *files += 1;
        *lines += of(source);
    }
    let mut text = format!("{:<26}{:>8}{:>10}\n", "crate", "files", "lines");
    let all = crates.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    for (name, (files, lines)) in crates.into_iter().chain([("all", all)]) {
        let _ = writeln!(text, "{name:<26}{files:>8}{lines:>10}");
    }
    text
}

/// The crate of a file: the innermost one around it.
fn crate_of<'r>(repo: &'r Repo, file: &str) -> &'r str {
    let folder = |manifest: &str| manifest.trim_end_matches("Cargo.toml").to_owned();
    let around = repo.crates.iter().filter(|krate| file.starts_with(&folder(&krate.file)));
    around.max_by_key(|krate| krate.file.len()).map_or("(none)", |krate| &krate.name)
}

/// The lines of code of one file.
fn of(source: &Source) -> usize {
    let mut lines = BTreeSet::new();
    add(source.code.to_token_stream(), &mut lines);
    lines.len()
}

fn add(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            // A documentation comment is an attribute for the parser.
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let inner =
                    tokens.next_if(|next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '!'));
                let doc = |next: &TokenTree| matches!(next, TokenTree::Group(group) if is_doc(group));
                if tokens.next_if(doc).is_none() {
                    mark(punct.span(), lines);
                    inner.iter().for_each(|mark_too| mark(mark_too.span(), lines));
                }
            }
            TokenTree::Group(group) => {
                // Groups without delimiters are made by the parser.
                if group.delimiter() != Delimiter::None {
                    mark(group.span_open(), lines);
                    mark(group.span_close(), lines);
                }
                add(group.stream(), lines);
            }
            other => mark(other.span(), lines),
        }
    }
}

/// All lines of a token: a text may have several.
fn mark(span: Span, lines: &mut BTreeSet<usize>) {
    lines.extend(span.start().line..=span.end().line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::repo;

    fn count(text: &str) -> usize {
        of(&Source::parse("c/src/lib.rs", text).unwrap())
    }

    #[test]
    fn only_code_is_counted() {
        assert_eq!(count(""), 0);
        assert_eq!(
            count("//! Docs.\n\n/// More.\n/* And\nmore. */\nfn f() {\n\n    // Why.\n    g(); // that\n}\n"),
            3
        );
        assert_eq!(count("const A: &str = \"one\ntwo\nthree\";\n"), 3, "a text is code");
        assert_eq!(count("#[derive(Debug)]\n#[doc(hidden)]\nstruct A;\n"), 2);
        assert_eq!(count("#![allow(x)]\nuse a::{\n    b,\n    c,\n};\n"), 5);
    }

    #[test]
    fn tests_are_not_counted() {
        assert_eq!(count("fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n#[test]\nfn h() {}\n"), 1);
    }

    #[test]
    fn crates_are_listed_with_their_sum() {
        let repo = repo(&[
            ("Cargo.toml", "[workspace]\n"),
            ("a/Cargo.toml", "[package]\nname = \"a\"\n"),
            ("a/src/lib.rs", "fn f() {}\nfn g() {}\n"),
            ("a/src/more_tests.rs", "fn f() {}\n"),
            ("a/tests/it.rs", "fn f() {}\n"),
            ("b/Cargo.toml", "[package]\nname = \"b\"\n"),
            ("b/src/main.rs", "fn main() {}\n"),
        ]);
        let rows: Vec<String> =
            table(&repo).lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(rows, ["crate files lines", "a 1 2", "b 1 1", "all 2 3"]);
    }
}
