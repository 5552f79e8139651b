//! Recovers the intact part of a damaged log.

use polylogue_core::{Event, RecoveredEvents, StoreError};

use crate::head::Head;
use polylogue_core::chain::{Chain, Link};

/// Parses an event.
///
/// # Errors
/// The damage, if it is not event number `seq`.
pub fn parse_event(json: &[u8], seq: u64) -> Result<Event, String> {
    let event: Event = serde_json::from_slice(json).map_err(|error| {
        // It is always line 1 of the event, which could be mistaken for a line of the file.
        format!(
            "event {seq} is unreadable: {}",
            error.to_string().replace(" at line 1 column ", " at column ")
        )
    })?;
    match event.seq {
        found if found == seq => Ok(event),
        found => Err(format!("event {seq} is missing: event {found} is there instead")),
    }
}

/// The damage of an event with a wrong link.
pub(crate) fn changed(seq: u64) -> String {
    format!("event {seq} is not what was written")
}

/// Collects the readable events, and counts the intact beginning.
#[derive(Debug, Default)]
pub struct EventCollector {
    events: Vec<Event>,
    damage: Option<String>,
    /// The length of the intact beginning, once an event is damaged or missing. Links cannot prove what follows, so
    /// an event after the gap is not counted, even if it has the number of the lost one.
    unbroken: Option<u64>,
}

impl EventCollector {
    /// Adds the next event that was read, or why it could not be read.
    pub fn take(&mut self, event: Result<Event, String>) {
        let expected = self.next_seq();
        match event {
            Ok(event) if event.seq < expected => {
                self.break_at(format!("event {expected} is missing: event {} is there instead", event.seq));
            }
            Ok(event) => {
                if event.seq > expected {
                    self.break_at(format!("event {expected} is missing"));
                }
                self.events.push(event);
            }
            Err(damage) => self.break_at(damage),
        }
    }

    fn break_at(&mut self, damage: String) {
        self.unbroken.get_or_insert(self.events.len() as u64);
        self.note(damage);
    }

    /// Records damage; the first one is reported.
    pub fn note(&mut self, damage: String) {
        self.damage.get_or_insert(damage);
    }

    /// Whether no damage was found so far.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.damage.is_none()
    }

    /// The `seq` of the next event.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.events.last().map_or(0, |event| event.seq.saturating_add(1))
    }

    /// The readable events, with the damage as an error about `place`.
    #[must_use]
    pub fn finish(self, place: String) -> RecoveredEvents {
        let unbroken = self.unbroken.unwrap_or(self.events.len() as u64);
        let damage = self.damage.map(|why| StoreError::Damaged { place, why, intact: unbroken });
        RecoveredEvents { events: self.events, damage }
    }
}

/// The row of an event in a table.
#[derive(Debug)]
pub struct EventRow<'r> {
    /// Its number.
    pub seq: u64,
    /// The event as an object.
    pub json: &'r [u8],
    /// Its link.
    pub link: Option<Link>,
}

impl EventRow<'_> {
    /// The event, if its link follows those before and its number is `next`.
    ///
    /// # Errors
    /// The damage.
    pub fn event(&self, chain: &mut Chain, next: u64) -> Result<Event, String> {
        // Nothing vouches for a first event when it is lost what it follows.
        let is_known = chain.is_known() || self.seq > 0;
        let holds = is_known && chain.holds(self.json, self.link);
        let event = parse_event(self.json, self.seq).inspect_err(|_| chain.break_off())?;
        // Behind one that is missing, it follows nothing that could be compared.
        if holds || self.seq > next { Ok(event) } else { Err(changed(self.seq)) }
    }
}

/// The damage of a log of `events` events, compared with its `head`. `link` is that of the last event of the head, if
/// the log has it.
pub(crate) fn next_to_head(head: &Head, events: u64, link: Option<Link>) -> Option<String> {
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

/// Compares what was read with the writer's head.
pub(crate) struct HeadCheck<'h> {
    head: Option<&'h Head>,
    /// The number of events read so far.
    pub(crate) events: u64,
    /// The link of the last event of the head.
    link: Option<Link>,
}

impl<'h> HeadCheck<'h> {
    /// A reading that begins after `from` events, the last of which has `link`.
    pub(crate) fn of(head: Option<&'h Head>, from: u64, link: Option<Link>) -> Self {
        // Earlier events were not read.
        let head = head.filter(|head| head.events >= from);
        Self { head, events: from, link: link.filter(|_| head.is_some_and(|head| head.events == from)) }
    }

    pub(crate) fn pass(&mut self, seq: u64, link: Option<Link>) {
        self.events = seq.saturating_add(1);
        if self.head.is_some_and(|head| head.events == self.events) {
            self.link = link;
        }
    }

    /// The damage at the end.
    pub(crate) fn damage(&self) -> Option<String> {
        next_to_head(self.head?, self.events, self.link)
    }
}
