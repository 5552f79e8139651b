//! Any bytes as a reply by OpenAI's Responses API.

#![no_main]

use libfuzzer_sys::fuzz_target;
use polylogue_models::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::responses(bytes));
