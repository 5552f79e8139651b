//! What a caller attaches to the first message of a run.

use polylogue_core::{Bound, InputTokens, Part};

/// The size of what a caller attaches to the first message of a run, as its bound counts it. Default: nothing.
///
/// ```
/// use polylogue_core::Part;
/// use polylogue_team::AttachedSize;
/// assert_eq!(AttachedSize::of(&[]), AttachedSize::default());
/// assert_ne!(AttachedSize::of(&[Part::text("notes")]), AttachedSize::default());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttachedSize {
    /// Bytes of texts.
    texts: u64,
    media: InputTokens,
    /// Pictures, sounds and documents.
    files: u64,
}

impl AttachedSize {
    /// Returns the size of `parts`. Reads documents to count their pages.
    pub fn of(parts: &[Part]) -> Self {
        parts.iter().fold(Self::default(), |size, part| match part {
            Part::Text(text) => Self { texts: size.texts.saturating_add(text.len() as u64), ..size },
            Part::Media(media) => {
                let files = size.files.saturating_add(1);
                Self { media: size.media.and(media.input_tokens()), files, ..size }
            }
            _ => size,
        })
    }

    /// What it adds to a request.
    pub(super) fn input(self, is_typical: bool) -> InputTokens {
        let usual = Bound::MEDIA_TOKENS.saturating_mul(self.files);
        let media = if is_typical { self.media.all.min(usual) } else { self.media.all };
        InputTokens { all: media.saturating_add(self.texts), ..self.media }
    }
}
