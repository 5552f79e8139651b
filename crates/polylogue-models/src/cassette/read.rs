//! Reads the lines of a cassette.

use std::path::Path;

use super::error::CassetteError;
use super::line::{Header, Line};

/// What a cassette holds.
pub(super) struct Contents {
    pub(super) lines: Vec<Line<'static>>,
    /// How many bytes can be read. What follows is a line whose writing was broken off.
    pub(super) intact: usize,
    /// Whether the last of them ends its line.
    pub(super) ended: bool,
}

/// Reads `bytes`, the content of the file `place`.
///
/// A last line that is cut off is no damage: the call was not finished for the program that wrote it.
pub(super) fn read(bytes: &[u8], place: &Path) -> Result<Contents, CassetteError> {
    let mut rest = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    let first = rest.next().map(|(_, line)| line).unwrap_or_default();
    check_header(first, place)?;
    let mut contents = Contents { lines: Vec::new(), intact: first.len(), ended: first.ends_with(b"\n") };
    for (index, text) in rest {
        let ended = text.ends_with(b"\n");
        match serde_json::from_slice(text) {
            Ok(line) => contents.lines.push(line),
            Err(_) if !ended => break,
            Err(error) => {
                let (place, why) = (place.display().to_string(), error.to_string());
                return Err(CassetteError::Damaged { place, line: index + 1, why });
            }
        }
        contents.intact += text.len();
        contents.ended = ended;
    }
    Ok(contents)
}

fn check_header(line: &[u8], place: &Path) -> Result<(), CassetteError> {
    let place = || place.display().to_string();
    // A struct could be read from a list too, so the key is looked up.
    let header = serde_json::from_slice::<serde_json::Value>(line).unwrap_or_default();
    match header.get(Header::KEY).and_then(serde_json::Value::as_u64) {
        Some(Header::KNOWN) => Ok(()),
        Some(found) if found > Header::KNOWN => {
            Err(CassetteError::Newer { place: place(), found, known: Header::KNOWN })
        }
        _ => Err(CassetteError::NoCassette { place: place() }),
    }
}
