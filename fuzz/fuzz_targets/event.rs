//! Any bytes as an event of a log.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| polylogue_fuzz::event(bytes));
