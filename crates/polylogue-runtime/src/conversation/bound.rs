//! What a conversation takes at most, and whether that still applies.

use polylogue_core::{BoundException, RunBound};

use super::Conversation;

impl Conversation {
    /// Returns the bound of the conversation, what it takes at most, if that was computed before it began.
    pub fn bound(&self) -> Option<RunBound> {
        self.0.handle.bound()
    }

    /// Returns why its [bound](Self::bound) does not apply any more; `None` if it does, or if there is none.
    pub async fn bound_exception(&self) -> Option<BoundException> {
        self.0.handle.bound_exception().await
    }
}
