//! What those who follow a conversation learn of it.

use std::sync::Arc;

use super::pieces::OrderedDelta;

/// What has happened in a conversation that another process runs.
#[derive(Debug, Clone)]
pub(crate) enum News {
    /// It was looked at, and is not as before.
    Changed(Seen),
    /// The event with this number was stored.
    Stored(u64),
    /// A piece of a reply.
    Piece(Arc<OrderedDelta>),
    /// Its holder has lost it: replies that are not stored begin again.
    Broken,
    /// Pieces were left out.
    Missed,
}

/// What was seen in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// How many events there are; `None` when it does not exist any more.
    pub(crate) events: Option<u64>,
    /// The number of its last claim, and whether a process has it.
    pub(crate) claim: (u64, bool),
}
