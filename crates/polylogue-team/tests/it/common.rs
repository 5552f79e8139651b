//! What the tests of this crate share.

use polylogue_team::{Overrides, Team, parse};

/// The team of a file.
pub(crate) fn team(text: &str) -> Team {
    parse(text, "t.yaml", &Overrides::default()).unwrap_or_else(|errors| panic!("{errors}")).team
}

/// What is said of a file: what is wrong with it, or its warnings.
pub(crate) fn said(text: &str) -> String {
    parse(text, "t.yaml", &Overrides::default())
        .map_or_else(|errors| errors.to_string(), |loaded| loaded.warnings.to_string())
}

/// What is wrong with a file.
pub(crate) fn wrong(text: &str) -> String {
    parse(text, "t.yaml", &Overrides::default()).unwrap_err().to_string()
}
