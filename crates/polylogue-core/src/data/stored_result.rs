//! References to large results of tool calls, which are stored whole next to the log.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Hexadecimal digits of an id: 128 bits of the digest.
const DIGITS: usize = 32;

/// The id of a stored result: a digest of its text, 32 hexadecimal digits. The same text has the same id.
///
/// ```
/// use polylogue_core::ResultId;
///
/// let id = ResultId::of("a long text");
/// assert_eq!(ResultId::parse(id.as_str()), Some(id));
/// assert_eq!(ResultId::parse("../../etc/passwd"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResultId(Arc<str>);

impl ResultId {
    /// The id of `text`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let hex = blake3::hash(text.as_bytes()).to_hex();
        Self(hex.get(..DIGITS).unwrap_or_default().into())
    }

    /// The id that `text` is; `None` if it has another form. Models write ids, so nothing else is accepted.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == DIGITS && text.bytes().all(is_digit)).then(|| Self(text.into()))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ResultId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is no id of a stored result"))
    }
}

impl From<ResultId> for String {
    fn from(id: ResultId) -> Self {
        id.0.as_ref().to_owned()
    }
}

/// A result of a tool call that is stored whole: the outcome has its beginning and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    /// Its id.
    pub id: ResultId,
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
        Self { id: ResultId::of(text), bytes: text.len() as u64, lines: text.lines().count() as u64 }
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
