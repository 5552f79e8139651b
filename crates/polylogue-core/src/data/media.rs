//! Pictures, sounds and documents of a message: content, file name and size.

use std::fmt;

use super::media_url::{MediaUrl, pixels};
use super::part::Media;

impl Media {
    /// Maximum size of a file that becomes media, in bytes: 20 MiB.
    pub const MAX_BYTES: u64 = 20 << 20;

    /// The types of [`detect_type`](Self::detect_type), in words.
    pub const TYPES: &str = "pictures are PNG, JPEG, GIF and WebP, documents PDF, sounds WAV and MP3";

    /// Returns the picture, sound or document with the content `bytes`, in a `data:` URL. `None` if its type is not one of
    /// [`detect_type`](Self::detect_type).
    ///
    /// ```
    /// use polylogue_core::Media;
    /// let media = Media::of_bytes(b"%PDF-1.7").unwrap();
    /// assert_eq!(&*media.url, "data:application/pdf;base64,JVBERi0xLjc=");
    /// assert_eq!(media.bytes().unwrap(), b"%PDF-1.7");
    /// ```
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let kind = Self::detect_type(bytes)?;
        Some(Self { media_type: kind.into(), url: MediaUrl::of_bytes(kind, bytes) })
    }

    /// Returns the type of a picture, a sound or a document that models read, by its first bytes: PNG, JPEG, GIF, WebP, WAV,
    /// MP3 and PDF.
    ///
    /// ```
    /// use polylogue_core::Media;
    /// assert_eq!(Media::detect_type(b"%PDF-1.7"), Some("application/pdf"));
    /// assert_eq!(Media::detect_type(b"hello"), None);
    /// ```
    pub const fn detect_type(bytes: &[u8]) -> Option<&'static str> {
        match bytes {
            [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
            [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
            [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
            [b'I', b'D', b'3', ..] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => Some("audio/mpeg"),
            [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
            _ => None,
        }
    }

    /// Returns whether the media is a sound, by its type.
    pub fn is_audio(&self) -> bool {
        self.media_type.starts_with("audio/")
    }

    /// Returns whether the media is a document with pages, by its type: PDF and those of office programs, but no text.
    pub fn is_document(&self) -> bool {
        self.media_type.get(..12).is_some_and(|begin| begin.eq_ignore_ascii_case("application/"))
    }

    /// Returns the content, if it is in the URL (a `data:` URL in base 64).
    pub fn bytes(&self) -> Option<Vec<u8>> {
        self.url.bytes()
    }

    /// Returns a file name made from the content, so that the same picture has the same name: `picture-` and 8 hex digits.
    /// `None` if the content is not in the URL, or it is not a picture of a common type.
    pub fn file_name(&self) -> Option<String> {
        let ending = match &*self.media_type {
            "image/png" => "png",
            "image/jpeg" => "jpg",
            "image/gif" => "gif",
            "image/webp" => "webp",
            "image/svg+xml" => "svg",
            _ => return None,
        };
        let hash = blake3::hash(&self.bytes()?).to_hex();
        Some(format!("picture-{}.{ending}", hash.get(..8)?))
    }

    /// Returns the width and height in pixels, if the content is in the URL and the header of its PNG, JPEG, GIF or WebP has
    /// them. They are found by the first call.
    pub fn pixels(&self) -> Option<(u32, u32)> {
        self.url.pixels()
    }

    /// Returns the number of pages of a PDF, if the content is in the URL and all readers find as many: not for one with several versions,
    /// or whose pages are not those that it says it has. They are counted by the first call.
    pub fn pages(&self) -> Option<u64> {
        self.url.pdf().filter(|pdf| pdf.is_exact).map(|pdf| pdf.pages)
    }

    /// Returns whether `bytes` begin like a picture and are none: their header has no size. Providers refuse a request with
    /// such a picture.
    ///
    /// ```
    /// use polylogue_core::Media;
    /// assert!(Media::is_damaged(b"\x89PNG and no more"));
    /// assert!(!Media::is_damaged(b"GIF89a\x02\x00\x03\x00\x00\x00"));
    /// assert!(!Media::is_damaged(b"%PDF-1.7"));
    /// ```
    pub fn is_damaged(bytes: &[u8]) -> bool {
        Self::detect_type(bytes).is_some_and(|kind| kind.starts_with("image/")) && pixels(bytes).is_none()
    }
}

/// What it is and how large, for people, without its content; or its address.
///
/// ```
/// use polylogue_core::Media;
/// let document = Media::of_bytes(b"%PDF-1.7").unwrap();
/// assert_eq!(document.to_string(), "document: application/pdf, 8 bytes");
/// let elsewhere = Media::new("audio/wav", "https://example.org/a.wav");
/// assert_eq!(elsewhere.to_string(), "audio/wav: https://example.org/a.wav");
/// ```
impl fmt::Display for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { media_type, url } = self;
        let Some(data) = url.strip_prefix("data:") else { return write!(f, "{media_type}: {url}") };
        let what = match media_type.split('/').next() {
            Some("image") => "picture",
            Some("audio") => "sound",
            _ => "document",
        };
        write!(f, "{what}: {media_type}")?;
        match data.split_once(',') {
            Some((head, text)) => write!(f, ", {}", size_in_words(content_bytes(head, text))),
            None => Ok(()),
        }
    }
}

/// How many bytes the content `text` of a `data:` URL has, after this `head`.
fn content_bytes(head: &str, text: &str) -> usize {
    match head.ends_with(";base64") {
        true => text.trim_end_matches('=').len().saturating_mul(3) / 4,
        false => text.len(),
    }
}

fn size_in_words(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..999_001 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_media_has_no_content() {
        let shown = |kind: &str, bytes: usize| {
            let mut content = b"%PDF-".to_vec();
            content.resize(bytes, b'x');
            let url = Media::of_bytes(&content).unwrap().url;
            Media { media_type: kind.into(), url }.to_string()
        };
        assert_eq!(shown("application/pdf", 11_001), "document: application/pdf, 12 KB");
        assert_eq!(shown("audio/wav", 999_000), "sound: audio/wav, 999 KB");
        assert_eq!(shown("image/png", 999_001), "picture: image/png, 0.9 MB");
        assert_eq!(shown("application/pdf", 2_590_000), "document: application/pdf, 2.5 MB");
        assert_eq!(
            Media::new("text/plain", "data:text/plain,Hello").to_string(),
            "document: text/plain, 5 bytes"
        );
        assert_eq!(Media::new("image/png", "data:broken").to_string(), "picture: image/png");
    }

    fn media(kind: &str, data: &str) -> Media {
        Media { media_type: kind.into(), url: format!("data:{kind};base64,{data}").into() }
    }

    #[test]
    fn base64_is_read() {
        let bytes = |text: &str| media("image/png", text).bytes();
        for (text, wanted) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(bytes(text).as_deref(), Some(wanted.as_bytes()), "{text}");
        }
        assert_eq!(bytes("+/-_"), Some(vec![0xfb, 0xff, 0xbf]));
        assert_eq!((bytes("Z"), bytes("Zm 9"), bytes("Zm9v\n")), (None, None, None));
        let elsewhere = Media { media_type: "image/png".into(), url: "https://example.org/a.png".into() };
        assert_eq!((elsewhere.bytes(), elsewhere.file_name(), elsewhere.pixels()), (None, None, None));
    }

    #[test]
    fn a_picture_has_a_name_and_a_size() {
        let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
        let picture = media("image/png", pixel);
        assert_eq!(picture.pixels(), Some((1, 1)));
        let name = picture.file_name().unwrap();
        assert!(name.starts_with("picture-") && name.ends_with(".png") && name.len() == 20, "{name}");
        assert_eq!(media("audio/wav", pixel).file_name(), None);
        // `GIF89a`, 2 columns and 3 rows.
        assert_eq!(media("image/gif", "R0lGODlhAgADAAAA").pixels(), Some((2, 3)));
        // A comment, then a frame of 5 columns and 4 rows.
        assert_eq!(media("image/jpeg", "/9j//gAEYWL/wAARCAAEAAUDASIA").pixels(), Some((5, 4)));
        for cut in 0..20 {
            let _ = media("image/jpeg", "/9j//gAEYWL/wAARCAAEAAUDASIA".get(..cut).unwrap()).pixels();
            let _ = media("image/png", pixel.get(..cut).unwrap()).pixels();
        }
    }

    proptest::proptest! {
        /// The size is read by a library: whatever follows the first bytes of a picture, it ends and does not panic.
        #[test]
        fn any_bytes_are_a_picture_with_a_size_or_damaged(
            begin in proptest::sample::select(vec![
                &b"\x89PNG\r\n\x1a\n"[..], b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 ", b"RIFF\0\0\0\0WEBPVP8L",
                b"RIFF\0\0\0\0WEBPVP8X",
            ]),
            rest in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        ) {
            let bytes = [begin, &rest].concat();
            let size = Media::of_bytes(&bytes).unwrap().pixels();
            proptest::prop_assert_eq!(size.is_none(), Media::is_damaged(&bytes));
        }
    }
}
