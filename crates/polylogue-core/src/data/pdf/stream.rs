//! Streams of a PDF: what is packed in them, and the text that they show.

use std::borrow::Cow;

use super::lexer::{Lexer, Token, is_space};

/// The filters of pictures, which have no text.
const PICTURES: [&[u8]; 6] = [b"DCTDecode", b"DCT", b"JPXDecode", b"CCITTFaxDecode", b"CCF", b"JBIG2Decode"];

/// Whether a filter is one of pictures.
pub(super) fn is_of_picture(filter: &[u8]) -> bool {
    PICTURES.contains(&filter)
}

/// Unpacks `data`, to at most `most` bytes. `None` if it has more, is damaged, or is packed in a way that is rare today.
pub(super) fn unpacked<'d>(data: &'d [u8], filters: &[Cow<'_, [u8]>], most: usize) -> Option<Cow<'d, [u8]>> {
    let mut data = Cow::Borrowed(data);
    for filter in filters {
        data = Cow::Owned(match &**filter {
            b"FlateDecode" | b"Fl" => inflated(&data, most)?,
            b"ASCII85Decode" | b"A85" => of_ascii(&data)?,
            _ => return None,
        });
    }
    Some(data)
}

/// Data in the format of zlib, whose checksum readers ignore.
fn inflated(data: &[u8], most: usize) -> Option<Vec<u8>> {
    let (head, packed) = data.split_first_chunk::<2>()?;
    let [method, flags] = *head;
    let is_zlib = method & 0x0f == 8 && u16::from_be_bytes(*head).is_multiple_of(31) && flags & 0x20 == 0;
    let is_known = is_zlib && !packed.is_empty();
    is_known.then(|| miniz_oxide::inflate::decompress_to_vec_with_limit(packed, most).ok()).flatten()
}

/// Data in base 85: five characters for four bytes.
fn of_ascii(data: &[u8]) -> Option<Vec<u8>> {
    let with = |value: u32, digit: u8| value.checked_mul(85)?.checked_add(u32::from(digit));
    let mut out: Vec<u8> = Vec::with_capacity(data.len());
    let (mut value, mut count) = (0_u32, 0_usize);
    for byte in data.iter().filter(|byte| !is_space(**byte)) {
        match byte {
            b'~' => break,
            b'z' if count == 0 => out.extend([0_u8; 4]),
            b'!'..=b'u' => (value, count) = (with(value, byte - b'!')?, count + 1),
            _ => return None,
        }
        if count == 5 {
            out.extend(value.to_be_bytes());
            (value, count) = (0, 0);
        }
    }
    if count > 0 {
        for _ in count..5 {
            value = with(value, 84)?;
        }
        out.extend(value.to_be_bytes().into_iter().take(count - 1));
    }
    Some(out)
}

/// The bytes of the strings that `content` shows, and a separator after each: readers write one where there is space between them.
pub(super) fn shown(content: &[u8]) -> u64 {
    let (mut all, mut last, mut has_picture) = (0_u64, 0_u64, false);
    let mut tokens = Lexer::new(content);
    while let Some(token) = tokens.next() {
        match token {
            Token::Text(bytes) => last = last.saturating_add(bytes as u64 + 1),
            // The last two have a text that replaces what is shown.
            Token::Word(b"Tj" | b"TJ" | b"'" | b"\"" | b"BDC" | b"DP") => {
                all = all.saturating_add(std::mem::take(&mut last));
            }
            Token::Word(b"true" | b"false" | b"null") => {}
            Token::Word(b"ID") if has_picture => {
                has_picture = false;
                tokens.skip_picture();
            }
            Token::Word(word) => (last, has_picture) = (0, has_picture || word == b"BI"),
            _ => {}
        }
    }
    all
}
