//! A hash chain over the events of a log: detects events that were changed, lost or moved. Recordings use the same
//! chain.
//!
//! The first link of a log is the digest of its metadata; the link of each event is the digest of the link before and
//! the event's JSON. It is not a signature: it detects accidents, not people who change a log and recompute its
//! links.
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

/// Length of a link in bytes; the digest is truncated to it.
const BYTES: usize = 16;

/// The digest of the log up to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link([u8; BYTES]);

impl Link {
    /// The length of a link as text.
    pub const HEX: usize = 2 * BYTES;

    /// Creates the link of a log without events, from its metadata in `parts`.
    pub fn first(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self::of(&hasher)
    }

    /// Returns the link of the next event, which is `json`.
    #[must_use]
    pub fn next(self, json: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(json);
        Self::of(&hasher)
    }

    fn of(hasher: &blake3::Hasher) -> Self {
        let mut link = [0; BYTES];
        link.iter_mut().zip(hasher.finalize().as_bytes()).for_each(|(to, from)| *to = *from);
        Self(link)
    }

    /// Returns the bytes of the link.
    pub const fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the link that has these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Parses a link in the form of its `Display`.
    pub fn parse(hex: &[u8]) -> Option<Self> {
        // Only the exact spelling: other digits of the same value are a change, too.
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
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

const BEGIN: &str = ",\"chain\":\"";
const END: &str = "\"}";

/// Adds its link to `json`, an object, as its last field.
pub fn seal(json: &str, link: Link) -> String {
    format!("{}{BEGIN}{link}{END}", json.strip_suffix('}').unwrap_or(json))
}

/// Removes the link from a line that [`seal`] wrote. `None`, with the line unchanged, if it has none.
pub fn unseal(line: &mut Vec<u8>) -> Option<Link> {
    let at = line.len().checked_sub(BEGIN.len() + Link::HEX + END.len())?;
    let link = line.get(at..)?.strip_prefix(BEGIN.as_bytes())?.strip_suffix(END.as_bytes())?;
    let link = Link::parse(link)?;
    line.truncate(at);
    line.push(b'}');
    Some(link)
}

/// Verifies the links of a log in order.
#[derive(Debug, Clone, Copy)]
pub struct Chain(Option<Link>);

impl Chain {
    /// Verifies after `link`; with `None` the next link is accepted.
    pub const fn from(link: Option<Link>) -> Self {
        Self(link)
    }

    /// Returns whether `link` is that of `json` after the previous ones. After a break, the next link is accepted: the damage
    /// is known.
    pub fn holds(&mut self, json: &[u8], link: Option<Link>) -> bool {
        let holds = link.is_some() && self.0.is_none_or(|before| Some(before.next(json)) == link);
        self.0 = link;
        holds
    }

    /// Returns whether the previous link is known.
    pub const fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// Marks a gap: the next event does not follow the last one.
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
