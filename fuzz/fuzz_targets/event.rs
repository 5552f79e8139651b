//! Any bytes as an event of a log: no panic, and what is read is written and read again as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use polylogue_core::Event;

fuzz_target!(|bytes: &[u8]| {
    let Ok(event) = serde_json::from_slice::<Event>(bytes) else { return };
    let written = serde_json::to_vec(&event).expect("an event that was read can be written");
    let again: Event = serde_json::from_slice(&written).expect("an event that was written can be read");
    assert_eq!(serde_json::to_vec(&again).expect("it can be written again"), written);
});
