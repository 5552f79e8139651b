//! What is left of a damaged log.

use polylogue_core::{Event, Intact, StoreError};

/// Reads one event from JSON, and says what is wrong with it if it is not event number `seq`.
pub(crate) fn parse_event(json: &[u8], seq: u64) -> Result<Event, String> {
    let event: Event = serde_json::from_slice(json).map_err(|error| {
        // It is always line 1 of the one event, which would be mistaken for a line of the file.
        format!(
            "event {seq} is unreadable: {}",
            error.to_string().replace(" at line 1 column ", " at column ")
        )
    })?;
    match event.seq {
        found if found == seq => Ok(event),
        found => Err(format!("event {found} stands where event {seq} belongs")),
    }
}

/// Collects what can be read, and counts the unbroken beginning.
#[derive(Default)]
pub(crate) struct Salvage {
    events: Vec<Event>,
    flaw: Option<String>,
}

impl Salvage {
    /// Takes an event that was read after all those before, or the reason why it could not be.
    pub(crate) fn take(&mut self, event: Result<Event, String>) {
        match event {
            Ok(event) => {
                let expected = self.next_seq();
                if event.seq < expected {
                    return self.note(format!("event {} stands where event {expected} belongs", event.seq));
                }
                if event.seq > expected {
                    self.note(format!("event {expected} is missing"));
                }
                self.events.push(event);
            }
            Err(flaw) => self.note(flaw),
        }
    }

    /// Remembers what is wrong; the first flaw is the one that is told.
    pub(crate) fn note(&mut self, flaw: String) {
        self.flaw.get_or_insert(flaw);
    }

    /// The event that would follow.
    pub(crate) fn next_seq(&self) -> u64 {
        self.events.last().map_or(0, |event| event.seq.saturating_add(1))
    }

    /// All of it, with the damage as an error about `place`.
    pub(crate) fn finish(self, place: String) -> Intact {
        let unbroken = (0..).zip(&self.events).take_while(|(seq, event)| event.seq == *seq).count() as u64;
        let damage = self.flaw.map(|why| StoreError::Damaged { place, why, intact: unbroken });
        Intact { events: self.events, damage }
    }
}
