//! References to large results of tool calls, which are stored whole next to the log.

use serde::{Deserialize, Serialize};

use super::blob_id::BlobId;

/// A result of a tool call that is stored whole: the log has its beginning and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    /// The id of the blob with the result.
    pub id: BlobId,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its number of lines.
    pub lines: u64,
}

impl StoredResult {
    /// The name of the tool that reads stored results.
    pub const READER: &'static str = "read_result";

    /// Maximum size of a stored result, in bytes.
    pub const MAX_BYTES: u64 = 16 << 20;

    /// Maximum number of results that a conversation stores.
    pub const MAX_COUNT: usize = 1_000;

    /// Maximum size of all results of a conversation, in bytes.
    pub const MAX_TOTAL_BYTES: u64 = 256 << 20;

    /// Creates the reference to this `text`.
    pub fn of(text: &str) -> Self {
        Self { id: BlobId::of(text), bytes: text.len() as u64, lines: text.lines().count() as u64 }
    }

    /// Returns what the model reads after the beginning and the end.
    pub fn note(&self) -> String {
        let Self { id, bytes, lines } = self;
        format!(
            "(The whole result has {bytes} bytes in {lines} lines. Read more of it with `{}`: its id is {id}.)",
            Self::READER
        )
    }
}
