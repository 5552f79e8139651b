//! Digests: what identifies a request.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Identifies a request: the first 16 bytes of the BLAKE3 hash of its content, as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(pub(crate) [u8; 16]);

/// What a request begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPrefix {
    /// Identifies the system message.
    pub system: Digest,
    /// Identifies the tools.
    pub tools: Digest,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| text.len() == 32);
        number
            .map(|n| Self(n.to_be_bytes()))
            .ok_or_else(|| format!("`{text}` is not a digest of 32 hex digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_32_hex_digits() {
        let digest = Digest([0xab; 16]);
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json, format!("\"{}\"", "ab".repeat(16)));
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        assert!(serde_json::from_str::<Digest>("\"+b\"").is_err());
    }
}
