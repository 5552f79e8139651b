//! Any bytes as the body of an error, with any status, of any API: no panic, and the key is not shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use polylogue_models::fuzzing;

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (api, status, body) = input;
    let api = fuzzing::APIS[usize::from(api) % fuzzing::APIS.len()];
    let error = fuzzing::refused(api, 400 + status % 200, body);
    assert!(!error.to_string().contains(fuzzing::KEY));
});
