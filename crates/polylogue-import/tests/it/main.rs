//! AutoGen definitions converted to team files.

// Marked as tests, so that what the lints allow in tests is allowed in their helpers too.
#[cfg(test)]
mod bad;
#[cfg(test)]
mod classic;
#[cfg(test)]
mod component;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod patterns;
#[cfg(test)]
mod program;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod secrets;

use expect_test::Expect;
use polylogue_import::{Imported, import};
use serde_json::Value;

/// The team file, which can be used; then the variables to be set.
#[cfg(test)]
#[track_caller]
fn check(definition: &Value, expected: &Expect) {
    let Imported { yaml, variables, problems, .. } = imported(definition);
    expected.assert_eq(&format!("{yaml}---\n{}\n", variables.join("\n")));
    assert_eq!(problems.to_string(), "", "{yaml}");
}

#[cfg(test)]
#[track_caller]
fn imported(definition: &Value) -> Imported {
    let imported = import(&definition.to_string(), "team.json").unwrap();
    schema::accepts(definition, &imported);
    imported
}
