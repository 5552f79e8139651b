//! The most tokens of an entry, from its bytes: a token has at least one.

use super::entry::Entry;
use crate::data::written;
use crate::{Bound, InputTokens, Media, Part};

impl Entry {
    /// The most tokens that it adds to a request.
    pub(crate) fn most_tokens(&self) -> InputTokens {
        let more = match self {
            Self::Tool { id, tool, .. } => (id.len() + tool.len()) as u64,
            Self::Assistant { parts, verbatim: Some(verbatim) } => verbatim.bytes_besides(parts),
            _ => 0,
        };
        let around = InputTokens::from(more.saturating_add(Bound::MESSAGE_TOKENS));
        self.parts().iter().map(part).fold(around, InputTokens::and)
    }
}

impl Media {
    /// Returns the most tokens that it adds to a request. For a picture or a sound, [`Bound::MEDIA_TOKENS`], or one for each
    /// byte of its address or content if that is more.
    ///
    /// A document has pages, and a token for each byte of the text that they show; text that they draw several times counts once. The
    /// pages of a PDF are counted by the first call of this. Where they cannot be counted, they are [`Bound::MAX_PAGES`]: for a document that
    /// is damaged or encrypted, at another address, or no PDF.
    ///
    /// ```
    /// use polylogue_core::{Bound, Media};
    /// assert_eq!(Media::of_bytes(b"\xff\xd8\xff").unwrap().input_tokens().all, Bound::MEDIA_TOKENS);
    /// assert_eq!(Media::of_bytes(b"%PDF-1.7").unwrap().input_tokens().pages, Bound::MAX_PAGES);
    /// ```
    pub fn input_tokens(&self) -> InputTokens {
        let bytes = self.url.len() as u64;
        if !self.is_document() {
            let all = bytes.max(Bound::MEDIA_TOKENS);
            return InputTokens { all, audio: if self.is_audio() { all } else { 0 }, pages: 0 };
        }
        // Where it is not sent, its type and its address are.
        let address = if self.url.starts_with("data:") { 0 } else { bytes };
        let around = Bound::MESSAGE_TOKENS + self.media_type.len() as u64 + address;
        let (text, pages) = self.url.pdf().map_or((0, Bound::MAX_PAGES), |pdf| (pdf.text, pdf.pages));
        InputTokens { all: around.saturating_add(text), audio: 0, pages }
    }
}

fn part(part: &Part) -> InputTokens {
    match part {
        Part::Text(text) | Part::Thought(text) => (text.len() as u64).into(),
        Part::Media(media) => media.input_tokens(),
        Part::Note(_) => 0.into(),
        other => written(other).into(),
    }
}
