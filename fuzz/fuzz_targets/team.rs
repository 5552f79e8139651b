//! Any text as a team file: no panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use polylogue_team::Overrides;

fuzz_target!(|text: &str| {
    let _ = polylogue_team::parse(text, "team.yaml", &Overrides::default());
});
