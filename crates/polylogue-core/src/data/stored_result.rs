//! References to large results of tool calls, which are stored whole next to the log.

use serde::{Deserialize, Serialize};

use super::blob_id::BlobId;

/// A result of a tool call that is stored whole: the outcome has its beginning and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    /// Its id.
    pub id: BlobId,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its number of lines.
    pub lines: u64,
}

impl StoredResult {
    /// The tool that reads stored results.
    pub const READER: &'static str = "read_result";

    /// The largest result that is stored, in bytes.
    pub const MAX_BYTES: u64 = 16 << 20;

    /// The most results that a conversation stores.
    pub const MAX_COUNT: usize = 1_000;

    /// The most bytes of all results of a conversation.
    pub const MAX_TOTAL_BYTES: u64 = 256 << 20;

    /// That of `text`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self { id: BlobId::of(text), bytes: text.len() as u64, lines: text.lines().count() as u64 }
    }

    /// What the model reads after the beginning and the end.
    #[must_use]
    pub fn note(&self) -> String {
        let Self { id, bytes, lines } = self;
        format!(
            "(The whole result has {bytes} bytes in {lines} lines. Read more of it with `{}`: its id is {id}.)",
            Self::READER
        )
    }
}
