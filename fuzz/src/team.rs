//! Team files.

use polylogue_team::Overrides;

/// A team file: reading it does not panic.
pub fn team(text: &str) {
    let _ = polylogue_team::parse(text, "team.yaml", &Overrides::default());
}
