//! Which pictures, sounds and documents requests can have, and where their content is.

use polylogue_core::Media;

/// Media types of pictures that every model with vision accepts. Others would make providers refuse every later request.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The media type of documents that most APIs accept.
pub(crate) const PDF: &str = "application/pdf";

/// Where the content of a medium is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// Here, in base64.
    Data(&'a str),
    /// At an address of the web.
    Web(&'a str),
}

/// The content of `media`. `None` if its address is neither one of the web nor has data in base64: providers would refuse
/// every later request.
pub(crate) fn source(media: &Media) -> Option<Source<'_>> {
    match media.url.strip_prefix("data:") {
        Some(_) => data(media).map(Source::Data),
        None => is_web(&media.url).then_some(Source::Web(&media.url)),
    }
}

/// The content of `media` in base64, if it is not elsewhere.
pub(crate) fn data(media: &Media) -> Option<&str> {
    let (_, data) = media.url.strip_prefix("data:")?.split_once(";base64,")?;
    is_base64(data).then_some(data)
}

/// The address of `media` with its content in it, whose type is that of `media`, or else the one of the web.
pub(crate) fn address(media: &Media) -> String {
    match data(media) {
        Some(data) => format!("data:{};base64,{data}", media.media_type),
        None => media.url.to_string(),
    }
}

/// Whether it is a picture of a type that every model with vision accepts.
pub(crate) fn is_picture(media: &Media) -> bool {
    PICTURES.contains(&&*media.media_type)
}

/// The format of sound that OpenAI's APIs accept, by its media type.
pub(crate) fn sound_format(kind: &str) -> Option<&'static str> {
    match kind {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Whether `text` is base64 with its padding, and not empty.
fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !digits.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sound_content_counts() {
        let source = |url: &str| {
            let media = Media { media_type: "image/png".into(), url: url.into() };
            source(&media).map(|source| format!("{source:?} {}", address(&media)))
        };
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(source("data:image/png;base64,AA=="), of("Data(\"AA==\") data:image/png;base64,AA=="));
        // The type of the medium counts, whatever the address says.
        assert_eq!(source("data:text/html;x=1;base64,AAAA"), of("Data(\"AAAA\") data:image/png;base64,AAAA"));
        assert_eq!(source("https://a.org/b"), of("Web(\"https://a.org/b\") https://a.org/b"));
        for url in [
            "",
            "data:",
            "data:,text",
            "data:image/png;base64,",
            "data:image/png;base64,====",
            "data:image/png;base64,AAA",
            "data:image/png;base64,A===",
            "data:image/png;base64,no base64!!!",
            "file:///etc/passwd",
            "gs://bucket/a",
        ] {
            assert_eq!(source(url), None, "{url}");
        }
    }
}
