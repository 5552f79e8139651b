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
    /// The most tokens that it adds to a request: [`Bound::MEDIA_TOKENS`], or one for each byte of its address or content if that is more.
    #[must_use]
    pub fn most_tokens(&self) -> u64 {
        (self.url.len() as u64).max(Bound::MEDIA_TOKENS)
    }
}

fn part(part: &Part) -> InputTokens {
    match part {
        Part::Text(text) | Part::Thought(text) => (text.len() as u64).into(),
        Part::Media(media) => {
            let all = media.most_tokens();
            InputTokens { all, audio: if media.is_sound() { all } else { 0 } }
        }
        Part::Note(_) => 0.into(),
        other => written(other).into(),
    }
}
