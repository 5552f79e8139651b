//! A text of a reply while its pieces arrive, and the seal that lists which of them are signed.

use serde_json::{Value, json};

use crate::wire::think::Kind;

/// The most signatures on one text.
const MAX_SIGNATURES: usize = 64;

/// A text or thought that the next piece may continue.
#[derive(Debug)]
pub(super) struct Open {
    kind: Kind,
    /// Its length in bytes so far.
    length: usize,
    /// Its signed pieces: where they begin and end, and their signatures.
    signatures: Vec<Value>,
}

impl Open {
    pub(super) const fn new(kind: Kind) -> Self {
        Self { kind, length: 0, signatures: Vec::new() }
    }

    /// Whether a piece of this kind continues it.
    pub(super) fn takes(&self, kind: Kind) -> bool {
        self.kind == kind && self.signatures.len() < MAX_SIGNATURES
    }

    /// Adds a piece; returns the seal of the text if the piece is signed.
    pub(super) fn push(&mut self, piece: &str, signature: Option<&str>) -> Option<Value> {
        let from = self.length;
        self.length += piece.len();
        self.signatures.push(json!([from, self.length, signature?]));
        Some(Value::Array(self.signatures.clone()))
    }
}

/// The seal of a text of which two replies have a piece each: the signed pieces of the second begin `length` bytes later.
pub(super) fn joint(first: Option<&Value>, length: usize, second: Option<&Value>) -> Option<Value> {
    let pieces = |seal: Option<&Value>| seal.and_then(Value::as_array).cloned().unwrap_or_default();
    let later = |place: &Value| Value::from(place.as_u64().unwrap_or_default().saturating_add(length as u64));
    let moved = |piece: Value| match piece.as_array().map(Vec::as_slice) {
        Some([from, to, signature]) => Some(json!([later(from), later(to), signature])),
        _ => None,
    };
    let both: Vec<Value> =
        pieces(first).into_iter().chain(pieces(second).into_iter().filter_map(moved)).collect();
    (!both.is_empty()).then_some(Value::Array(both))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signed_pieces_of_the_second_text_begin_after_the_first() {
        let (first, second) = (json!([[0, 2, "a"]]), json!([[1, 3, "b"], "broken"]));
        assert_eq!(joint(Some(&first), 5, Some(&second)), Some(json!([[0, 2, "a"], [6, 8, "b"]])));
        assert_eq!(joint(None, 5, Some(&second)), Some(json!([[6, 8, "b"]])));
        assert_eq!(joint(Some(&first), 5, None), Some(first));
        assert_eq!(joint(None, 5, None), None);
    }
}
