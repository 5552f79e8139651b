//! AutoGen definitions converted to team files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests"
)]

mod bad;
mod classic;
mod complete;
mod component;
mod mutations;
mod patterns;
mod program;
mod schema;
mod secrets;

use expect_test::Expect;
use polylogue_import::{Imported, import};
use polylogue_team::{Diagnostic, Overrides, parse};
use serde_json::Value;

/// The team file, which can be used; then the variables to be set.
#[track_caller]
fn check(definition: &Value, expected: &Expect) {
    let Imported { yaml, variables, problems, .. } = imported(definition);
    expected.assert_eq(&format!("{yaml}---\n{}\n", variables.join("\n")));
    assert_eq!(problems.to_string(), "", "{yaml}");
}

#[track_caller]
fn imported(definition: &Value) -> Imported {
    let imported = import(&definition.to_string(), "team.json").unwrap();
    schema::accepts(definition, &imported);
    if let Ok(loaded) = parse(&imported.yaml, "team.yaml", &Overrides::default()) {
        assert_eq!(imported.has_task, imported.yaml.contains("\ntask: "), "{}", imported.yaml);
        let false_alarms = loaded.warnings.iter().filter(|warning| !is_right(warning, definition));
        let false_alarms: Vec<String> = false_alarms.map(ToString::to_string).collect();
        assert_eq!(false_alarms.join("\n"), "", "{}", imported.yaml);
    }
    imported
}

/// Whether a warning is about something that the definition itself lacks.
fn is_right(warning: &Diagnostic, definition: &Value) -> bool {
    let text = definition.to_string();
    match &*warning.code {
        "no-stop" => !text.contains("max_turns") && !text.contains("termination_condition"),
        "stop-text" => text.contains("is_termination_msg"),
        "unreachable" => warning.message.ends_with("takes part in nothing"),
        _ => false,
    }
}
