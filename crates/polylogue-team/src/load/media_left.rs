//! What a team can still attach.

use polylogue_core::Media;

/// How many files a team and the teams within it can still attach, and how large they can be together. They are kept with every
/// conversation.
pub(super) struct MediaLeft {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

impl MediaLeft {
    pub(super) const MOST_FILES: usize = 64;
}

impl Default for MediaLeft {
    fn default() -> Self {
        Self { files: Self::MOST_FILES, bytes: Media::MAX_BYTES }
    }
}
