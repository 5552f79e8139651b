//! Writes JSON directly into a buffer, without intermediate trees.

use bytes::{BufMut, BytesMut};
use serde::Serialize;

/// Appends `text` as the content of a JSON string, without the quotes.
///
/// The same bytes as `serde_json` writes. It exists because texts of several entries are joined within one string.
pub(crate) fn escape(out: &mut BytesMut, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else { return };
        escape_byte(out, byte);
        rest = after;
    }
}

/// Number of leading bytes that need no escaping.
fn plain_length(bytes: &[u8]) -> usize {
    /// Bytes that are checked together, which the compiler does in a few instructions.
    const CHUNK: usize = 32;
    let plain = |chunk: &&[u8]| !chunk.iter().fold(false, |any, &byte| any | is_special(byte));
    let chunks = bytes.chunks_exact(CHUNK).take_while(plain).count() * CHUNK;
    let rest = bytes.get(chunks..).unwrap_or_default();
    chunks + rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len())
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn escape_byte(out: &mut BytesMut, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short: &[u8] = match byte {
        b'"' => br#"\""#,
        b'\\' => br"\\",
        b'\n' => br"\n",
        b'\r' => br"\r",
        b'\t' => br"\t",
        0x08 => br"\b",
        0x0c => br"\f",
        _ => {
            out.extend_from_slice(br"\u00");
            let digit = |nibble: u8| HEX.get(usize::from(nibble & 15)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[digit(byte >> 4), digit(byte)]);
            return;
        }
    };
    out.extend_from_slice(short);
}

/// Appends `text` as a JSON string.
pub(crate) fn string(out: &mut BytesMut, text: &str) {
    out.put_u8(b'"');
    escape(out, text);
    out.put_u8(b'"');
}

/// Appends `before`, `text` as a JSON string, and `after`.
pub(crate) fn quoted(out: &mut BytesMut, before: &str, text: &str, after: &str) {
    out.extend_from_slice(before.as_bytes());
    string(out, text);
    out.extend_from_slice(after.as_bytes());
}

/// Appends `value` as JSON. A value that cannot be serialized (none of our types) becomes `null`.
pub(crate) fn value(out: &mut BytesMut, value: &impl Serialize) {
    let start = out.len();
    if serde_json::to_writer(out.writer(), value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// Appends a comma, except at the beginning of a list.
pub(crate) fn separate(out: &mut BytesMut) {
    if out.last() != Some(&b'[') {
        out.put_u8(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_are_escaped_as_serde_json_does(text in "\\PC*|[\\x00-\\x7f]*") {
            let mut out = BytesMut::new();
            string(&mut out, &text);
            let expected = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(&out[..], expected.as_bytes());
        }
    }
}
