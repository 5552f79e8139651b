//! Any bytes as a reply of any API: no panic, the same reply in pieces of any size, and the text that was streamed is the reply's.

#![no_main]

use libfuzzer_sys::fuzz_target;
use polylogue_models::{Api, fuzzing};

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (api, size, bytes) = input;
    let api = fuzzing::APIS[usize::from(api) % fuzzing::APIS.len()];
    let framed = (api == Api::Converse && size % 2 == 0).then(|| fuzzing::frames(bytes));
    let bytes = framed.as_deref().unwrap_or(bytes);
    let all = fuzzing::streamed(api, bytes, bytes.len());
    let pieces = fuzzing::streamed(api, bytes, usize::from(size).max(1));
    assert_eq!(all, pieces, "{api:?}: the size of the pieces makes a difference");
    fuzzing::whole(api, bytes);
});
