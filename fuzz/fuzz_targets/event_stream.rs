//! Any bytes as a binary event stream of Bedrock.

#![no_main]

use libfuzzer_sys::fuzz_target;
use polylogue_models::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::event_stream(bytes));
