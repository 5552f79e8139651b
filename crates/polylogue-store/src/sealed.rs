//! Values that are stored next to a log, sealed with its end: one that does not belong to it is detected.

use polylogue_core::chain::{Link, seal, unseal};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// `value`, an object, as JSON that belongs to the log that ends with `link`.
pub(crate) fn sealed(value: &impl Serialize, link: Link) -> String {
    // Fails only for maps whose keys are no strings.
    let json = serde_json::to_string(value).unwrap_or_default();
    seal(&json, link.next(json.as_bytes()))
}

/// The value, if it was sealed for the log that ends with `link`.
pub(crate) fn unsealed<T: DeserializeOwned>(mut text: Vec<u8>, link: Link) -> Option<T> {
    let seal = unseal(&mut text)?;
    (link.next(&text) == seal).then(|| serde_json::from_slice(&text).ok())?
}
