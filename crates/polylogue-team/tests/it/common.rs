//! What the tests of this crate share.

use polylogue_team::{Overrides, Team, parse};

/// The team of a file.
pub(crate) fn team(text: &str) -> Team {
    parse(text, "t.yaml", &Overrides::default()).unwrap_or_else(|errors| panic!("{errors}")).team
}

/// What is wrong with a file.
pub(crate) fn wrong(text: &str) -> String {
    parse(text, "t.yaml", &Overrides::default()).unwrap_err().to_string()
}
