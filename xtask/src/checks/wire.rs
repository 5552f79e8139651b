//! The bodies and documents of the native API are types of `polylogue-wire`, which clients read and write, too.

use crate::finding::Finding;
use crate::repo::Repo;

/// The handlers of the native API.
const HANDLERS: &str = "crates/polylogue-server/src/api/";

const HINT: &str =
    "define the type in polylogue-wire, so that clients have the same one; see ARCHITECTURE.md";

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let handlers = repo.texts(".rs").filter(|(file, _)| file.starts_with(HANDLERS));
    handlers.flat_map(|(file, text)| of_one_file(file, text)).collect()
}

fn of_one_file(file: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().enumerate();
    let derived =
        lines.filter(|(_, line)| line.trim_start().starts_with("#[derive(") && line.contains("erialize"));
    let flaw = "a handler defines a body or a document of the native API";
    derived.map(|(index, _)| Finding::new(file, index + 1, flaw, HINT)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    #[test]
    fn a_body_that_a_handler_defines_is_found() {
        let body = "#[derive(Debug, Deserialize)]\nstruct Body;\n";
        let repo = repo(&[
            ("crates/polylogue-server/src/api/new.rs", body),
            ("crates/polylogue-server/src/token.rs", body),
            ("crates/polylogue-server/src/api/old.rs", "#[derive(Debug)]\nstruct State;\n"),
        ]);
        assert_eq!(
            brief(&check(&repo)),
            [
                "crates/polylogue-server/src/api/new.rs:1: a handler defines a body or a document of the native API"
            ]
        );
    }
}
