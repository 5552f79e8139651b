//! Events as they are stored in rows, and packed into one; blobs in less space.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::ops::Range;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use polylogue_core::chain::Link;

use crate::intact::EventRow;

/// Larger blobs are not packed, so that unpacking one has a bound.
const MAX_BLOB_BYTES: usize = 64 << 20;

/// An event's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRow {
    /// The number of the event.
    pub seq: u64,
    /// The event.
    pub json: String,
    /// Its link; `None` if what is stored is none.
    pub link: Option<Link>,
}

impl StoredRow {
    /// Returns the row as an event row, for checking it.
    pub fn as_event_row(&self) -> EventRow<'_> {
        EventRow { seq: self.seq, json: self.json.as_bytes(), link: self.link }
    }
}

/// Packs the first events of a log in less space: deflated lines of a link (hexadecimal), a space, and the JSON of an event.
pub fn packed(rows: &[StoredRow]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    for StoredRow { json, link, .. } in rows {
        let hex: String = link.iter().flat_map(Link::bytes).map(|byte| format!("{byte:02x}")).collect();
        // Writing to memory does not fail.
        let _ = writeln!(encoder, "{hex} {json}");
    }
    encoder.finish().unwrap_or_default()
}

/// Unpacks the events of an archive whose numbers are in `range`, as far as it can be read: what is missing shows as the end of a log
/// that is lost. What is behind the range is not unpacked, and what is before it is not kept.
pub fn unpacked(bytes: &[u8], range: Range<u64>) -> Vec<StoredRow> {
    let lines = BufReader::new(DeflateDecoder::new(bytes)).lines().map_while(Result::ok);
    let rows = (0..range.end).zip(lines).map_while(|(seq, line)| {
        let (hex, json) = line.split_once(' ')?;
        let row = || StoredRow { seq, json: json.to_owned(), link: link_of(hex) };
        Some((seq >= range.start).then(row))
    });
    rows.flatten().collect()
}

fn link_of(hex: &str) -> Option<Link> {
    let pairs = hex.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    Link::from_bytes(&bytes.collect::<Option<Vec<u8>>>()?)
}

/// Packs a blob in less space; `None` if it takes as much.
pub fn packed_blob(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() > MAX_BLOB_BYTES {
        return None;
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().filter(|packed| packed.len() < bytes.len())
}

/// Unpacks a blob, as far as it can be read: its digest tells whether it is whole.
pub fn unpacked_blob(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read before an error stays.
    let _ = DeflateDecoder::new(packed).take(MAX_BLOB_BYTES as u64).read_to_end(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked_and_what_was_changed_is_read_as_far_as_it_goes() {
        let rows: Vec<StoredRow> = (0..50)
            .map(|seq| {
                let json = format!("{{\"seq\":{seq},\"text\":\"\u{e9} {}\"}}", "again ".repeat(9));
                StoredRow { seq, link: Some(Link::first(&[json.as_bytes()])), json }
            })
            .collect();
        let bytes = packed(&rows);
        assert_eq!(unpacked(&bytes, 0..u64::MAX), rows);
        for range in [0..1, 3..7, 49..50, 49..90, 50..60] {
            let expected: Vec<_> = rows.iter().filter(|row| range.contains(&row.seq)).cloned().collect();
            assert_eq!(unpacked(&bytes, range), expected);
        }
        for cut in 0..bytes.len() {
            let read = unpacked(&bytes[..cut], 0..u64::MAX);
            assert!(read.len() <= rows.len() && rows.starts_with(&read[..read.len().saturating_sub(1)]));
        }
        let text = b"so many words ".repeat(1_000);
        let bytes = packed_blob(&text).unwrap();
        assert!(bytes.len() < 500 && unpacked_blob(&bytes) == text);
        assert_eq!(packed_blob(b"x"), None, "it would be longer");
        assert!(unpacked_blob(b"not packed").len() < 64);
    }

    #[test]
    fn a_blob_that_unpacks_without_end_takes_no_more_than_the_largest() {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        let zeros = vec![0; 1 << 20];
        (0..65).for_each(|_| encoder.write_all(&zeros).unwrap());
        assert_eq!(unpacked_blob(&encoder.finish().unwrap()).len(), MAX_BLOB_BYTES);
        assert_eq!(packed_blob(&vec![0; MAX_BLOB_BYTES + 1]), None);
    }
}
