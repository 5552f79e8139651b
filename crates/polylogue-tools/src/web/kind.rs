//! The kind of a response, by its header and its first bytes.

/// Kinds of readable responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Html,
    Text,
}

/// How much of a response is inspected, in bytes.
const LOOKED_AT: usize = 1024;

impl Kind {
    /// The kind of `body`.
    ///
    /// # Errors
    /// The media type, if it cannot be read.
    pub(super) fn of(content_type: Option<&str>, body: &[u8]) -> Result<Self, String> {
        let begin = body.get(..LOOKED_AT).unwrap_or(body);
        if begin.starts_with(b"%PDF-") {
            return Err("a PDF document, which is not read here".into());
        }
        let essence = content_type
            .and_then(|text| text.split(';').next())
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let kind = match essence.as_str() {
            "text/html" | "application/xhtml+xml" => Some(Self::Html),
            "application/pdf" => return Err("a PDF document, which is not read here".into()),
            "application/json"
            | "application/xml"
            | "application/javascript"
            | "application/x-ndjson"
            | "application/yaml"
            | "application/x-yaml"
            | "application/toml"
            | "application/x-sh"
            | "application/rtf"
            | "image/svg+xml" => Some(Self::Text),
            text if text.starts_with("text/") || text.ends_with("+json") || text.ends_with("+xml") => {
                Some(Self::Text)
            }
            // What servers say when they do not know.
            "" | "application/octet-stream" | "unknown/unknown" => None,
            other => return Err(format!("`{other}`, which is not text")),
        };
        let is_utf16 = begin.starts_with(&[0xff, 0xfe]) || begin.starts_with(&[0xfe, 0xff]);
        if begin.contains(&0) && !is_utf16 {
            return Err("not text, but data".into());
        }
        Ok(kind.unwrap_or_else(|| Self::guess(begin)))
    }

    fn guess(begin: &[u8]) -> Self {
        let text =
            String::from_utf8_lossy(begin).trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
        let beginnings =
            ["<!doctype html", "<html", "<head", "<body", "<title", "<h1", "<div", "<p>", "<!--"];
        if beginnings.iter().any(|beginning| text.starts_with(beginning)) { Self::Html } else { Self::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_distinguished() {
        for (said, body, expected) in [
            (Some("text/html; charset=x"), &b"a"[..], Ok(Kind::Html)),
            (Some("TEXT/HTML"), b"a", Ok(Kind::Html)),
            (Some("application/ld+json"), b"{}", Ok(Kind::Text)),
            (Some("text/markdown"), b"# a", Ok(Kind::Text)),
            (None, b" <!DOCTYPE html><p>", Ok(Kind::Html)),
            (None, b"just words", Ok(Kind::Text)),
            (Some("application/octet-stream"), b"just words", Ok(Kind::Text)),
            (None, b"", Ok(Kind::Text)),
            (Some("text/plain"), b"\xff\xfea\0", Ok(Kind::Text)),
            (Some("text/html"), b"%PDF-1.7", Err("a PDF document, which is not read here")),
            (Some("application/pdf"), b"", Err("a PDF document, which is not read here")),
            (Some("image/png"), b"\x89PNG", Err("`image/png`, which is not text")),
            (Some("application/zip"), b"PK", Err("`application/zip`, which is not text")),
            (Some("text/html"), b"\x7fELF\0\0", Err("not text, but data")),
            (None, b"\x89PNG\r\n\x1a\n\0", Err("not text, but data")),
        ] {
            assert_eq!(Kind::of(said, body), expected.map_err(str::to_owned), "{said:?} {body:?}");
        }
    }
}
