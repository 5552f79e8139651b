//! The addresses of pictures, sounds and documents, which can have the content.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::pdf::PdfSize;

/// The `https:` or `data:` URL of a [`Media`](crate::Media). Cloning shares it, and the size of its content, which is found once.
///
/// ```
/// use polylogue_core::{Media, MediaUrl};
/// let url = MediaUrl::from("https://example.org/a.png");
/// assert!(url.ends_with(".png"));
/// let media = Media { media_type: "image/png".into(), url };
/// # let _ = media;
/// ```
#[derive(Clone)]
pub struct MediaUrl(Arc<Shared>);

struct Shared {
    text: Box<str>,
    /// The size of the PDF that it has.
    pdf: OnceLock<Option<PdfSize>>,
    /// The size of the picture that it has.
    pixels: OnceLock<Option<(u32, u32)>>,
}

impl MediaUrl {
    /// A `data:` URL with the content `bytes`.
    pub(super) fn of_bytes(kind: &str, bytes: &[u8]) -> Self {
        format!("data:{kind};base64,{}", BASE64.encode(bytes)).into()
    }

    /// The content, if it is a `data:` URL in base 64.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        let (head, text) = self.strip_prefix("data:")?.split_once(',')?;
        head.ends_with(";base64").then(|| decoded(text)).flatten()
    }

    /// The size of the PDF that it has. `None` if that cannot be told.
    pub(crate) fn pdf(&self) -> Option<PdfSize> {
        *self.0.pdf.get_or_init(|| PdfSize::of(&self.bytes()?))
    }

    /// Width and height of the picture that it has. `None` if that cannot be told.
    pub(super) fn pixels(&self) -> Option<(u32, u32)> {
        *self.0.pixels.get_or_init(|| pixels(&self.bytes()?))
    }
}

/// Width and height of the picture with the content `bytes`.
pub(super) fn pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = imagesize::blob_size(bytes).ok()?;
    let size = (u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?);
    (size.0 > 0 && size.1 > 0).then_some(size)
}

impl Deref for MediaUrl {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl From<String> for MediaUrl {
    fn from(text: String) -> Self {
        Self(Arc::new(Shared { text: text.into(), pdf: OnceLock::new(), pixels: OnceLock::new() }))
    }
}

impl From<&str> for MediaUrl {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl PartialEq for MediaUrl {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl Eq for MediaUrl {}

impl fmt::Debug for MediaUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for MediaUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Serialize for MediaUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for MediaUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

/// With or without padding.
static BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes base 64 in the standard alphabet or the one for URLs.
fn decoded(text: &str) -> Option<Vec<u8>> {
    match text.contains(['-', '_']) {
        true => BASE64.decode(text.replace('-', "+").replace('_', "/")).ok(),
        false => BASE64.decode(text).ok(),
    }
}
