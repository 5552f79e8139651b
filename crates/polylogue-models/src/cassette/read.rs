//! Reads the lines of a cassette.

use std::path::Path;

use polylogue_core::chain::{Link, unseal};

use super::error::CassetteError;
use super::line::{Header, Line};

/// The content of a cassette.
pub(super) struct Contents {
    pub(super) lines: Vec<Line<'static>>,
    /// How many bytes are readable. The rest is a truncated line.
    pub(super) intact: usize,
    /// Whether the last of them ends its line.
    pub(super) ended: bool,
    /// The link of the last line.
    pub(super) link: Link,
}

/// Reads `bytes`, the content of the file `place`.
///
/// A truncated last line is not damage: the program that wrote it did not finish the call.
pub(super) fn read(bytes: &[u8], place: &Path) -> Result<Contents, CassetteError> {
    let damaged =
        |line: usize, why: String| CassetteError::Damaged { place: place.display().to_string(), line, why };
    let mut rest = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    let first = rest.next().map(|(_, line)| line).unwrap_or_default();
    check_header(first, place)?;
    let (_, mut link) = linked(first, Header::link()).ok_or_else(|| damaged(1, CHANGED.to_owned()))?;
    let mut contents =
        Contents { lines: Vec::new(), intact: first.len(), ended: first.ends_with(b"\n"), link };
    for (index, text) in rest {
        let ended = text.ends_with(b"\n");
        let (line, next) = match linked(text, link) {
            Some((json, next)) => {
                let line = serde_json::from_slice(&json);
                (line.map_err(|error| damaged(index + 1, error.to_string()))?, next)
            }
            None if !ended => break,
            None => return Err(damaged(index + 1, CHANGED.to_owned())),
        };
        contents.lines.push(line);
        link = next;
        (contents.intact, contents.ended, contents.link) = (contents.intact + text.len(), ended, link);
    }
    Ok(contents)
}

const CHANGED: &str = "it is not what was written, or does not follow the line before";

/// The JSON of a line that is linked to `before`, and its own link.
fn linked(text: &[u8], before: Link) -> Option<(Vec<u8>, Link)> {
    let mut json = text.strip_suffix(b"\n").unwrap_or(text).to_vec();
    let link = unseal(&mut json)?;
    (before.next(&json) == link).then_some((json, link))
}

fn check_header(line: &[u8], place: &Path) -> Result<(), CassetteError> {
    let place = || place.display().to_string();
    // A struct could be read from a list too, so the key is checked.
    let header = serde_json::from_slice::<serde_json::Value>(line).unwrap_or_default();
    match header.get(Header::KEY).and_then(serde_json::Value::as_u64) {
        Some(Header::KNOWN) => Ok(()),
        Some(found) if found > Header::KNOWN => {
            Err(CassetteError::Newer { place: place(), found, known: Header::KNOWN })
        }
        _ => Err(CassetteError::NoCassette { place: place() }),
    }
}
