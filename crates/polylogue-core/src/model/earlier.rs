//! Which models replied to an agent before: what a fallback among models reads of a conversation.

use std::sync::Arc;
use std::time::Duration;

use crate::{Body, Event, Name, Timestamp};

/// The replies in the turns before that of a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct EarlierReplies<'a> {
    turns: &'a [Arc<Event>],
    now: Timestamp,
}

impl<'a> EarlierReplies<'a> {
    /// Reads the replies in the events of earlier `turns`, for a call at the time of day `now`.
    pub const fn new(turns: &'a [Arc<Event>], now: Timestamp) -> Self {
        Self { turns, now }
    }

    /// Returns the model that replied last to `who` instead of the model `asked`, and how long ago the first of such replies
    /// was without one of `asked` since. `None` if `asked` replied last, or nothing did.
    pub fn fallback(&self, who: &Name, asked: &str) -> Option<(&'a str, Duration)> {
        let mut found: Option<(&str, Timestamp)> = None;
        for event in self.turns.iter().rev() {
            let Body::ModelReplied(reply) = &event.body else { continue };
            match &reply.requested_model {
                _ if reply.who != *who => {}
                Some(of) if **of == *asked => {
                    found = Some((found.map_or(&*reply.model, |(last, _)| last), event.time));
                }
                None if *reply.model == *asked => break,
                _ => {}
            }
        }
        found.map(|(model, since)| (model, Duration::from_millis(self.now.0.saturating_sub(since.0))))
    }
}
