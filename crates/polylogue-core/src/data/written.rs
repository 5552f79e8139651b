//! The length of data as JSON.

use std::io::{self, Write};

use serde::Serialize;

/// The length of `value` as JSON, in bytes.
pub(crate) fn written(value: &impl Serialize) -> u64 {
    let mut length = Length(0);
    // A value of our types always serializes.
    serde_json::to_writer(&mut length, value).map_or(0, |()| length.0)
}

/// Counts what is written.
struct Length(u64);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
