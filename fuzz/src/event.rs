//! Events of logs.

use polylogue_core::Event;

/// An event of a log: what is read is written, and read again as the same.
///
/// # Panics
/// When it is not.
pub fn event(bytes: &[u8]) {
    let Ok(event) = serde_json::from_slice::<Event>(bytes) else { return };
    let written = serde_json::to_vec(&event).expect("an event that was read can be written");
    let again: Event = serde_json::from_slice(&written).expect("an event that was written can be read");
    assert_eq!(serde_json::to_vec(&again).expect("it can be written again"), written);
}
