//! The most tokens of an entry, from its bytes: a token has at least one.

use std::io::{self, Write};

use serde::Serialize;

use super::entry::Entry;
use crate::{Bound, InputTokens, Part};

impl Entry {
    /// The most tokens that it adds to a request.
    pub(crate) fn most_tokens(&self) -> InputTokens {
        let names = match self {
            Self::Tool { id, tool, .. } => (id.len() + tool.len()) as u64,
            _ => 0,
        };
        let around = InputTokens::from(names + Bound::MESSAGE_TOKENS);
        self.parts().iter().map(part).fold(around, InputTokens::and)
    }
}

fn part(part: &Part) -> InputTokens {
    match part {
        Part::Text(text) | Part::Thought(text) => (text.len() as u64).into(),
        Part::Media(media) => {
            let all = (media.url.len() as u64).max(Bound::MEDIA_TOKENS);
            InputTokens { all, audio: if media.is_sound() { all } else { 0 } }
        }
        Part::Note(_) => 0.into(),
        other => written(other).into(),
    }
}

/// The length of `value` as JSON, in bytes.
pub(crate) fn written(value: &impl Serialize) -> u64 {
    let mut length = Length(0);
    // A value of our types always serializes.
    serde_json::to_writer(&mut length, value).map_or(0, |()| length.0)
}

/// Counts what is written.
struct Length(u64);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
