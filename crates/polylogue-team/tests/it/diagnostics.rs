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

use crate::common::said;

/// Compares what is said of a file with what is expected.
pub(super) fn check(text: &str, expected: &Expect) {
    expected.assert_eq(&said(text));
}

/// The same, but that something takes part in nothing.
#[track_caller]
fn check_used(text: &str, expected: &Expect) {
    let said = said(text);
    let said: Vec<&str> = said.split("\n\n").filter(|part| !part.contains("takes part in nothing")).collect();
    expected.assert_eq(&said.join("\n\n"));
}

/// A file that is right but for `more`, which is put behind it.
fn check_with(more: &str, expected: &Expect) {
    let text = format!(
        "name: t\nagents: [{{name: A}}, {{name: B}}]\nchat: {{participants: [A, B], stop: {{max_turns: 4}}}}\n{more}"
    );
    check(&text, expected);
}
