//! Events as they are stored in rows, and packed into one.

use std::io::{BufRead as _, BufReader, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use polylogue_core::chain::Link;

/// An event's columns.
pub(crate) struct StoredRow {
    pub(crate) seq: u64,
    pub(crate) json: String,
    pub(crate) link: Option<Link>,
}

/// Events as they are stored, in less space.
pub(crate) fn packed(rows: &[StoredRow]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    for StoredRow { json, link, .. } in rows {
        let hex: String = link.iter().flat_map(Link::bytes).map(|byte| format!("{byte:02x}")).collect();
        // Writing to memory does not fail.
        let _ = writeln!(encoder, "{hex} {json}");
    }
    encoder.finish().unwrap_or_default()
}

/// The events of an archive, as far as it can be read: what is missing shows as the end of a log that is lost.
pub(crate) fn unpacked(bytes: &[u8]) -> Vec<StoredRow> {
    let lines = BufReader::new(DeflateDecoder::new(bytes)).lines().map_while(Result::ok);
    let rows = (0..).zip(lines).map_while(|(seq, line)| {
        let (hex, json) = line.split_once(' ')?;
        Some(StoredRow { seq, json: json.to_owned(), link: link_of(hex) })
    });
    rows.collect()
}

fn link_of(hex: &str) -> Option<Link> {
    let pairs = hex.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    Link::from_bytes(&bytes.collect::<Option<Vec<u8>>>()?)
}
