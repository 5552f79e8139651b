//! Pictures and documents in requests to Bedrock, which takes bytes and no URLs.

use bytes::BytesMut;
use polylogue_core::Media;

use crate::wire::{json, media};

/// A picture or document that Bedrock reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readable<'a> {
    Image { format: &'static str, data: &'a str },
    Document { format: &'static str, data: &'a str },
}

/// The formats of pictures and documents, by media type.
const IMAGES: [(&str, &str); 4] =
    [("image/png", "png"), ("image/jpeg", "jpeg"), ("image/gif", "gif"), ("image/webp", "webp")];
const DOCUMENTS: [(&str, &str); 9] = [
    ("application/pdf", "pdf"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/plain", "txt"),
    ("text/markdown", "md"),
    ("application/msword", "doc"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
];

/// Whether there is a form for `media`.
pub(super) fn takes(media: &Media) -> bool {
    readable(media).is_some()
}

/// `media` as a picture or document, if Bedrock reads it.
pub(super) fn readable(media: &Media) -> Option<Readable<'_>> {
    let data = media::data(media)?;
    let format = |table: &[(&str, &'static str)]| {
        table.iter().find(|(name, _)| media.media_type.eq_ignore_ascii_case(name)).map(|(_, format)| *format)
    };
    let image = format(&IMAGES).map(|format| Readable::Image { format, data });
    image.or_else(|| format(&DOCUMENTS).map(|format| Readable::Document { format, data }))
}

/// Writes a block.
pub(super) fn block(out: &mut BytesMut, media: Readable<'_>) {
    let (begin, format, data) = match media {
        Readable::Image { format, data } => (r#"{"image":{"#.to_owned(), format, data),
        Readable::Document { format, data } => {
            // Names must differ within a request, and may only have a few characters.
            let before = memchr::memmem::find_iter(out, DOCUMENT).count();
            (format!(r#"{{"document":{{"name":"document {}","#, before + 1), format, data)
        }
    };
    out.extend_from_slice(begin.as_bytes());
    json::quoted(out, r#""format":"#, format, "");
    json::quoted(out, r#","source":{"bytes":"#, data, "}}}");
}

/// The beginning of a document in a request. Texts do not have it, because their quotes are escaped.
const DOCUMENT: &[u8] = br#"{"document":{"name":"document "#;
