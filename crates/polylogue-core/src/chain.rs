//! What links an event to all before it, so that no part of a log is changed, lost or moved unnoticed. Recordings have the same links.
//!
//! A log's first link is the digest of what is said of it; each event's is the digest of the link before and the event's JSON.
//! It is no signature: it shows accidents, not those who change a log and compute its links anew.
//!
//! ```
//! use polylogue_core::chain::{Link, seal, unseal};
//!
//! let json = r#"{"seq":0}"#;
//! let link = Link::first(&[b"about the log"]).next(json.as_bytes());
//! let mut line = seal(json, link).into_bytes();
//! assert_eq!(unseal(&mut line), Some(link));
//! assert_eq!(line, json.as_bytes());
//! ```

use std::fmt;

/// How many bytes of the digest are kept.
const BYTES: usize = 16;

/// The digest of the beginning of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link([u8; BYTES]);

impl Link {
    /// How long a link is as text.
    pub const HEX: usize = 2 * BYTES;

    /// The link of a log without events, of which `parts` are said.
    #[must_use]
    pub fn first(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self::of(&hasher)
    }

    /// The link of the event that is `json`, after this one.
    #[must_use]
    pub fn next(self, json: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(json);
        Self::of(&hasher)
    }

    fn of(hasher: &blake3::Hasher) -> Self {
        let mut link = [0; BYTES];
        hasher.finalize_xof().fill(&mut link);
        Self(link)
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The link that has these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Reads a link as it is displayed.
    #[must_use]
    pub fn parse(hex: &[u8]) -> Option<Self> {
        // Only what is written: another spelling of the same digits is a change, too.
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let (pairs, rest) = hex.as_chunks::<2>();
        let bytes: Option<Vec<u8>> =
            pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
        Self::from_bytes(&bytes.filter(|_| rest.is_empty())?)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

const BEGIN: &str = ",\"chain\":\"";
const END: &str = "\"}";

/// `json`, an object, with its link as its last field.
#[must_use]
pub fn seal(json: &str, link: Link) -> String {
    format!("{}{BEGIN}{link}{END}", json.strip_suffix('}').unwrap_or(json))
}

/// Takes the link off a line that [`seal`] wrote. `None`, with the line as it was, when it has none.
pub fn unseal(line: &mut Vec<u8>) -> Option<Link> {
    let at = line.len().checked_sub(BEGIN.len() + Link::HEX + END.len())?;
    let link = line.get(at..)?.strip_prefix(BEGIN.as_bytes())?.strip_suffix(END.as_bytes())?;
    let link = Link::parse(link)?;
    line.truncate(at);
    line.push(b'}');
    Some(link)
}

/// Follows the links of a log.
#[derive(Debug, Clone, Copy)]
pub struct Chain(Option<Link>);

impl Chain {
    /// From `link` on, or from wherever there is the next one.
    #[must_use]
    pub const fn from(link: Option<Link>) -> Self {
        Self(link)
    }

    /// Whether `link` is that of `json` after those before. What follows a break is taken as it is: it is damage anyhow.
    #[must_use]
    pub fn holds(&mut self, json: &[u8], link: Option<Link>) -> bool {
        let holds = link.is_some() && self.0.is_none_or(|before| Some(before.next(json)) == link);
        self.0 = link;
        holds
    }

    /// Whether it is known what the next one follows.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// What comes next does not follow what came last.
    pub const fn break_off(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_line_is_unsealed_to_what_it_was() {
        let json = r#"{"seq":0,"chain":"of words"}"#;
        let link = Link::first(&[b"a", b"b"]).next(json.as_bytes());
        let mut line = seal(json, link).into_bytes();
        assert_eq!(unseal(&mut line), Some(link));
        assert_eq!(line, json.as_bytes());
        assert_eq!(unseal(&mut line), None);
        assert_eq!(line, json.as_bytes());
    }

    #[test]
    fn the_first_link_tells_apart_how_words_are_divided() {
        assert_ne!(Link::first(&[b"ab", b""]), Link::first(&[b"a", b"b"]));
    }
}
