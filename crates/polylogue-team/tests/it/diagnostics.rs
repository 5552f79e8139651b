//! What is said of team files that are wrong: every mistake at its place, all at once.

mod agents;
mod endpoints;
mod guessed;
mod mcp;
mod names;
mod patterns;
mod reasoning;
mod shapes;
mod society;
mod tasks;
mod vars;
mod working;
mod yaml;

use expect_test::Expect;
use polylogue_team::{Overrides, parse};

/// Compares what is said of a file with what is expected.
pub(super) fn check(text: &str, expected: &Expect) {
    let said = match parse(text, "t.yaml", &Overrides::default()) {
        Ok(loaded) => loaded.warnings.to_string(),
        Err(diagnostics) => diagnostics.to_string(),
    };
    expected.assert_eq(&said);
}

/// A file that is right but for `more`, which is put behind it.
fn check_with(more: &str, expected: &Expect) {
    let text = format!(
        "name: t\nagents: [{{name: A}}, {{name: B}}]\nchat: {{participants: [A, B], stop: {{max_turns: 4}}}}\n{more}"
    );
    check(&text, expected);
}
