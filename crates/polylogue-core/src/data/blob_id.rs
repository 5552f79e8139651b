//! Ids of what is stored next to a log.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Hexadecimal digits of an id: 128 bits of the digest.
const DIGITS: usize = 32;

/// The id of a blob, bytes that are stored next to a log: a digest of them, 32 hexadecimal digits. The same bytes have the same id.
///
/// ```
/// use polylogue_core::BlobId;
///
/// let id = BlobId::of("a long text");
/// assert_eq!(BlobId::parse(id.as_str()), Some(id));
/// assert_eq!(BlobId::parse("../../etc/passwd"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlobId(Arc<str>);

impl BlobId {
    /// Returns the id of `bytes`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        let hex = blake3::hash(bytes.as_ref()).to_hex();
        Self(hex.get(..DIGITS).unwrap_or_default().into())
    }

    /// Parses `text` as an id; `None` if it has another form. Models write ids, so nothing else is accepted.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == DIGITS && text.bytes().all(is_digit)).then(|| Self(text.into()))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for BlobId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is no id of a blob"))
    }
}

impl From<BlobId> for String {
    fn from(id: BlobId) -> Self {
        id.0.as_ref().to_owned()
    }
}
