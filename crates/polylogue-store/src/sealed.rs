//! Values that are stored next to a log, sealed with its end: one that does not belong to it is detected.

use std::path::Path;
use std::sync::Arc;

use polylogue_core::chain::{Link, seal, unseal};
use polylogue_core::{BlobId, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::io_error::show;

/// Seals `value`, an object, as JSON that belongs to the log that ends with `link`.
pub fn sealed(value: &impl Serialize, link: Link) -> String {
    // Fails only for maps whose keys are no strings.
    let json = serde_json::to_string(value).unwrap_or_default();
    seal(&json, link.next(json.as_bytes()))
}

/// Unseals a value, if it was sealed for the log that ends with `link`.
pub fn unsealed<T: DeserializeOwned>(mut text: Vec<u8>, link: Link) -> Option<T> {
    let seal = unseal(&mut text)?;
    (link.next(&text) == seal).then(|| serde_json::from_slice(&text).ok())?
}

/// Returns the link of a log without events, from its metadata.
pub fn first_link(id: &str, title: &str, created_ms: i64, team: &str, parent: Option<&str>) -> Link {
    let created = created_ms.to_le_bytes();
    let parts = [id.as_bytes(), title.as_bytes(), &created, team.as_bytes()];
    let parts: Vec<&[u8]> = parts.into_iter().chain(parent.map(str::as_bytes)).collect();
    Link::first(&parts)
}

/// The `bytes` that were read in `place`, if they are those that were stored as `blob`.
pub(crate) fn checked(place: &Path, blob: &BlobId, bytes: Vec<u8>) -> Result<Arc<[u8]>, StoreError> {
    if BlobId::of(&bytes) == *blob {
        return Ok(bytes.into());
    }
    let place = format!("the blob {blob} in {}", show(place));
    Err(StoreError::Io { place, why: "it is not what was stored".into() })
}
