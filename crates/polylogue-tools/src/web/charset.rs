//! Decodes pages as text.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far into a page its encoding declaration is searched, in bytes, as in browsers.
const LOOKED_AT: usize = 1024;

/// Decodes `bytes` by their byte order mark, the header of the server, the declaration of the page, or else by detection. Invalid
/// bytes become `\u{fffd}`.
pub(super) fn decode(bytes: &[u8], content_type: Option<&str>) -> String {
    let said = || content_type.and_then(label);
    let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let encoding = marked.or_else(said).or_else(|| within(bytes)).unwrap_or_else(|| guess(bytes));
    encoding.decode(bytes).0.into_owned()
}

/// The encoding that a header or an element names after `charset=`.
fn label(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let (_, after) = lower.split_once("charset")?;
    let value = after.trim_start().strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let end = value
        .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '>' | '/' | '?'))
        .unwrap_or(value.len());
    Encoding::for_label(value.get(..end)?.as_bytes())
}

/// The declaration of a page: `<meta charset=...>`, or `<?xml encoding=...?>`.
fn within(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(bytes.get(..LOOKED_AT).unwrap_or(bytes)).to_ascii_lowercase();
    let metas = head.split("<meta").skip(1).filter_map(|after| label(after.split('>').next()?));
    let xml = || {
        let declared = head.strip_prefix("<?xml")?.split("?>").next()?.replace("encoding", "charset");
        label(&declared)
    };
    // A page that can be read to here is not written in two bytes a letter, whatever it says.
    let found = metas.into_iter().next().or_else(xml)?;
    Some(if found.is_ascii_compatible() { found } else { UTF_8 })
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let is_utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        // A page that was cut may end within a letter.
        Err(error) => error.error_len().is_none(),
    };
    if is_utf8 { UTF_8 } else { WINDOWS_1252 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets_are_read_from_every_declaration() {
        for (bytes, content_type, expected) in [
            (&b"gr\xfc\xdfe"[..], Some("text/html; charset=ISO-8859-1"), "grüße"),
            ("grüße".as_bytes(), Some("text/html; Charset=\"UTF-8\""), "grüße"),
            ("grüße".as_bytes(), None, "grüße"),
            (b"gr\xfc\xdfe", None, "grüße"),
            (b"gr\xfc\xdfe", Some("text/plain; charset=no-such"), "grüße"),
            (b"<meta charset=windows-1251>\xcf\xf0", None, "<meta charset=windows-1251>Пр"),
            (
                b"<meta http-equiv=content-type content='text/html; charset=shift_jis'>\x83\x65",
                Some("text/html"),
                "<meta http-equiv=content-type content='text/html; charset=shift_jis'>テ",
            ),
            (
                b"<?xml version='1.0' encoding='iso-8859-1'?>\xe9",
                None,
                "<?xml version='1.0' encoding='iso-8859-1'?>é",
            ),
            (b"\xff\xfea\0b\0", Some("text/plain; charset=utf-8"), "ab"),
            (b"\xef\xbb\xbfa", Some("text/plain; charset=iso-8859-1"), "a"),
            // Wrong, and said to be right.
            (b"gr\xfc\xdfe", Some("text/html; charset=utf-8"), "gr\u{fffd}\u{fffd}e"),
            (b"<meta charset=utf-16>a", None, "<meta charset=utf-16>a"),
            (b"gr\xc3\xbc\xc3", None, "grü\u{fffd}"),
        ] {
            assert_eq!(decode(bytes, content_type), expected, "{content_type:?} {bytes:?}");
        }
    }
}
