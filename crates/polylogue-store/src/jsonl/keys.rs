//! Keys that are reserved for requests: a file of lines, which any process appends to.

use std::io::{self, Read as _};
use std::path::Path;

use polylogue_core::StoreError;
use polylogue_files::replace_private;
use serde::{Deserialize, Serialize};

use super::inbox::{append, lines, open, whole_lines};
use crate::clock::reserved_until;
use crate::head::now_ms;
use crate::io_error::writing;

/// The name of the file. No log has a file of this name.
pub(super) const FILE: &str = ".keys";

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct ReservedKey {
    key: String,
    request: String,
    /// When the reservation ends.
    until_ms: u64,
}

/// Reserves a key for a request, unless another one has it. Returns the request that has it.
pub(super) fn reserve(path: &Path, key: &str, request: &str) -> Result<String, StoreError> {
    let fail = |error: io::Error| writing(path, &error);
    let (mut file, mut bytes, now) = (open(path).map_err(fail)?, Vec::new(), now_ms());
    file.read_to_end(&mut bytes).map_err(fail)?;
    let (whole, mut lasting, mut expired) = (whole_lines(&bytes), Vec::new(), 0_usize);
    for line in lines(whole) {
        match serde_json::from_slice::<ReservedKey>(line) {
            Ok(reserved) if reserved.until_ms > now => {
                if reserved.key == key {
                    return Ok(reserved.request);
                }
                lasting.push(line);
            }
            _ => expired += 1,
        }
    }
    let new = ReservedKey { key: key.into(), request: request.into(), until_ms: reserved_until(now) };
    let mut line = serde_json::to_vec(&new).map_err(|error| fail(error.into()))?;
    line.push(b'\n');
    let written = if expired > lasting.len() {
        // Processes that wait for the lock of this file open the new one.
        let mut all: Vec<u8> = lasting.iter().flat_map(|line| line.iter().chain(b"\n")).copied().collect();
        all.extend_from_slice(&line);
        replace_private(path, &all)
    } else {
        append(&mut file, whole.len() as u64, &line)
    };
    written.map_err(fail)?;
    Ok(new.request)
}
