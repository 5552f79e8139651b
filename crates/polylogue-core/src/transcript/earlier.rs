//! A chat as it was before.

use std::sync::Arc;

use super::Transcript;

/// The transcript of a chat as it was after earlier events, one after another, for policies that decide again what they decided then.
///
/// It has what chats around and within this one had shared by then. Its usage is that of the chat's own turns.
#[derive(Debug)]
pub struct EarlierTranscript<'t> {
    whole: &'t Transcript,
    past: Transcript,
    /// How many of the events and the shared events of `whole` it has.
    events: usize,
    shared: usize,
}

impl<'t> EarlierTranscript<'t> {
    /// Creates that of `whole` before its first event.
    #[must_use]
    pub fn of(whole: &'t Transcript) -> Self {
        let (at, inherited) = (whole.at.clone(), whole.inherited.clone());
        let past = Transcript { at, inherited, known_until: whole.known_until, ..Transcript::default() };
        Self { whole, past, events: 0, shared: 0 }
    }

    /// Moves to the point after the event at `end` of the [events](Transcript::events), unless it is further.
    pub fn advance(&mut self, end: usize) {
        for event in self.whole.events.get(self.events..=end).unwrap_or_default() {
            // Events that one transcript accepted are valid for another.
            let _ = self.past.apply(Arc::clone(event));
        }
        self.events = self.events.max(end + 1);
        // Those of this chat are among them, in their places.
        let known = self.whole.shared.partition_point(|(before, _)| *before < self.events);
        self.past.shared.truncate(self.shared);
        self.past.shared.extend_from_slice(self.whole.shared.get(self.shared..known).unwrap_or_default());
        self.shared = self.shared.max(known);
    }

    /// Returns the transcript at this point.
    pub const fn transcript(&self) -> &Transcript {
        &self.past
    }
}
