//! What `cargo xtask tidy` checks, one check a file.

mod conformance;
mod glossary;
mod idioms;
mod layers;
mod lengths;
mod links;
mod manifests;
pub(crate) mod modules;
mod neutral;
mod one_command;
mod printing;
mod spelling;
mod teams;
mod wire;

use crate::finding::Finding;
use crate::repo::Repo;

/// What the checks found.
pub(crate) struct Report {
    /// In the order of files and lines.
    pub(crate) findings: Vec<Finding>,
    /// How long functions are.
    pub(crate) functions: lengths::Functions,
    /// How many files the repository has.
    pub(crate) files: usize,
}

/// Runs every check.
pub(crate) fn tidy(repo: &Repo) -> Report {
    let mut findings = repo.unread.clone();
    for check in [
        layers::check,
        manifests::check,
        modules::check,
        lengths::check,
        printing::check,
        neutral::check,
        teams::check,
        links::check,
        one_command::check,
        idioms::check,
        spelling::check,
        conformance::check,
        glossary::check,
        wire::check,
    ] {
        findings.extend(check(repo));
    }
    findings.sort();
    Report { findings, functions: lengths::functions(repo), files: repo.files.len() }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{brief, repo};

    #[test]
    fn the_flaws_of_all_checks_are_reported_at_once_in_order() {
        let repo = repo(&[
            ("README.md", "[gone](gone.md)"),
            ("a/Cargo.toml", "[package]\nname = \"xtask\"\n"),
            ("b/src/lib.rs", "fn f() { println!(); }"),
        ]);
        let found = super::tidy(&repo).findings;
        let files: Vec<_> = found.iter().map(|f| f.file.as_str()).collect();
        assert!(files.is_sorted() && files.len() >= 5, "{:?}", brief(&found));
    }
}
