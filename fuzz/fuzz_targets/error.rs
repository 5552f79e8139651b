//! Any bytes as the body of an error, of any API.

#![no_main]

use libfuzzer_sys::fuzz_target;
use polylogue_models::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::error(bytes));
