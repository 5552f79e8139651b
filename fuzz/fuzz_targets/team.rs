//! Any text as a team file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| polylogue_fuzz::team(text));
