//! A reply of the agent's own model that is not an entry of its view yet.

use std::sync::Arc;

use super::words::spoken;
use crate::{Part, Verbatim};

/// A reply that is not an entry yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) parts: Vec<Part>,
    pub(super) verbatim: Option<Arc<Verbatim>>,
    /// Whether its provider could not parse it.
    pub(super) is_unparsed: bool,
}

impl Pending {
    /// Drops a reply that its provider could not parse.
    pub(super) fn discard_unparsed(&mut self) {
        if self.is_unparsed {
            *self = Self::default();
        }
    }

    fn is_sealed(&self) -> bool {
        self.verbatim.as_ref().is_some_and(|verbatim| verbatim.seals.is_some())
    }

    /// Whether it is sealed, and says what the agent says in its message.
    pub(super) fn is_sealed_as(&self, message: &[Part]) -> bool {
        self.is_sealed() && spoken(&self.parts) == message
    }
}
