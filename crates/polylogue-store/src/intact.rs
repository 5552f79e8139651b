//! What is left of a damaged log.

use polylogue_core::{Event, Intact, StoreError};

use crate::head::Head;
use polylogue_core::chain::Link;

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

/// What is told of an event whose link is not that of its words.
pub(crate) fn changed(seq: u64) -> String {
    format!("event {seq} is not what was written")
}

/// Collects what can be read, and counts the unbroken beginning.
#[derive(Default)]
pub(crate) struct Salvage {
    events: Vec<Event>,
    flaw: Option<String>,
    /// The length of the unbroken beginning, once an event is damaged or missing. Links cannot vouch for what follows, so
    /// an event behind the gap is not counted, even if it has the number of the lost one.
    unbroken: Option<u64>,
}

impl Salvage {
    /// Takes an event that was read after all those before, or the reason why it could not be.
    pub(crate) fn take(&mut self, event: Result<Event, String>) {
        let expected = self.next_seq();
        match event {
            Ok(event) if event.seq < expected => {
                self.break_at(format!("event {} stands where event {expected} belongs", event.seq));
            }
            Ok(event) => {
                if event.seq > expected {
                    self.break_at(format!("event {expected} is missing"));
                }
                self.events.push(event);
            }
            Err(flaw) => self.break_at(flaw),
        }
    }

    fn break_at(&mut self, flaw: String) {
        self.unbroken.get_or_insert(self.events.len() as u64);
        self.note(flaw);
    }

    /// Remembers what is wrong; the first flaw is the one that is told.
    pub(crate) fn note(&mut self, flaw: String) {
        self.flaw.get_or_insert(flaw);
    }

    /// Whether nothing is wrong so far.
    pub(crate) const fn is_whole(&self) -> bool {
        self.flaw.is_none()
    }

    /// The event that would follow.
    pub(crate) fn next_seq(&self) -> u64 {
        self.events.last().map_or(0, |event| event.seq.saturating_add(1))
    }

    /// All of it, with the damage as an error about `place`.
    pub(crate) fn finish(self, place: String) -> Intact {
        let unbroken = self.unbroken.unwrap_or(self.events.len() as u64);
        let damage = self.flaw.map(|why| StoreError::Damaged { place, why, intact: unbroken });
        Intact { events: self.events, damage }
    }
}

/// What is wrong with a log of `events` events whose writer has said `head` of it. `link` is that of the event that the head
/// speaks of, if the log has it.
pub(crate) fn beside_head(head: &Head, events: u64, link: Option<Link>) -> Option<String> {
    match head.events {
        acknowledged if acknowledged > events => {
            Some(format!("it has {events} events, and {acknowledged} were acknowledged: the last are lost"))
        }
        acknowledged => (link != Some(head.link)).then(|| match acknowledged {
            0 => "its beginning is not what was written".to_owned(),
            acknowledged => changed(acknowledged - 1),
        }),
    }
}

/// How far a reading came, beside what the writer said.
pub(crate) struct Ends<'h> {
    head: Option<&'h Head>,
    /// How many events there are, as far as it was read.
    pub(crate) events: u64,
    /// The link of the event that the writer spoke of.
    link: Option<Link>,
}

impl<'h> Ends<'h> {
    /// A reading that begins behind `from` events, the last of which has `link`.
    pub(crate) fn of(head: Option<&'h Head>, from: u64, link: Option<Link>) -> Self {
        // Of what is before, nothing is known.
        let head = head.filter(|head| head.events >= from);
        Self { head, events: from, link: link.filter(|_| head.is_some_and(|head| head.events == from)) }
    }

    pub(crate) fn pass(&mut self, seq: u64, link: Option<Link>) {
        self.events = seq.saturating_add(1);
        if self.head.is_some_and(|head| head.events == self.events) {
            self.link = link;
        }
    }

    /// What is wrong with the end.
    pub(crate) fn flaw(&self) -> Option<String> {
        beside_head(self.head?, self.events, self.link)
    }
}
