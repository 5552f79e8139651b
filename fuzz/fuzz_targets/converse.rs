//! Any lines as events of Bedrock's Converse API.

#![no_main]

use libfuzzer_sys::fuzz_target;
use polylogue_models::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::converse(bytes));
