//! What every crate says of itself.

use crate::finding::Finding;
use crate::repo::Repo;

/// A sandbox is made of system calls, and what the workspace forbids cannot be allowed again: this crate writes the
/// workspace's lints out, and allows unsafe code module by module.
const WRITES_LINTS_OUT: &str = "polylogue-sandbox";

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let mut found = Vec::new();
    for krate in &repo.crates {
        let mut lacks = |what: &str, hint| {
            found.push(Finding::new(
                &krate.file,
                1,
                format!("the crate `{}` has no {what}", krate.name),
                hint,
            ));
        };
        if !krate.described {
            lacks("description", "add `description = \"...\"` to `[package]`");
        }
        if !krate.licensed {
            lacks("license", "add `license.workspace = true` to `[package]`");
        }
        if !krate.linted && krate.name != WRITES_LINTS_OUT {
            lacks("lints", "add `[lints]` with `workspace = true`");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    fn found(text: &str) -> Vec<String> {
        brief(&check(&repo(&[("c/Cargo.toml", text)])))
    }

    #[test]
    fn a_crate_without_description_license_and_lints_is_found() {
        let flaws = ["description", "license", "lints"];
        let wanted = flaws.map(|what| format!("c/Cargo.toml:1: the crate `a` has no {what}"));
        assert_eq!(found("[package]\nname = \"a\""), wanted);
        let empty = "[package]\nname = \"a\"\ndescription = \" \"\nlicense.workspace = false\n[lints.rust]\nunsafe_code = \"forbid\"";
        assert_eq!(found(empty), wanted);
    }

    #[test]
    fn a_crate_with_description_license_and_lints_passes() {
        let text =
            "[package]\nname = \"a\"\ndescription = \"b\"\nlicense = \"MIT\"\n[lints]\nworkspace = true";
        assert!(found(text).is_empty());
    }
}
