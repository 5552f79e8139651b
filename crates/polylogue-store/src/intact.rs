//! Recovers the intact part of a damaged log.

use std::fmt;

use polylogue_core::{Body, Event, RecoveredEvents, StoreError};
use serde::Deserialize;

use crate::head::Head;
use polylogue_core::chain::{Chain, Link};

/// The reason why an event cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::From)]
pub enum EventError {
    /// The event is damaged.
    #[from]
    Damaged(String),
    /// The event is of this type, which only a later version knows.
    Unknown(String),
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(why) => f.write_str(why),
            Self::Unknown(kind) => write!(f, "an event of type `{kind}` is of a later version of Polylogue"),
        }
    }
}

/// The type of event number `seq`, if this version does not know it. What is no name of a type is damage.
pub(crate) fn unknown_type(json: &[u8], seq: u64) -> Option<String> {
    #[derive(Deserialize)]
    struct Typed {
        seq: u64,
        #[serde(rename = "type")]
        kind: String,
    }
    let typed: Typed = serde_json::from_slice(json).ok()?;
    (typed.seq == seq && is_type_name(&typed.kind) && !Body::has_type(&typed.kind)).then_some(typed.kind)
}

/// Whether a text can be the name of a type of events or instructions.
pub(crate) fn is_type_name(text: &str) -> bool {
    const LONGEST: usize = 64;
    let is_of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_of_name)
}

/// Parses an event.
///
/// # Errors
/// [`EventError::Unknown`] for one of a later version; the damage, if it is not event number `seq`.
pub fn parse_event(json: &[u8], seq: u64) -> Result<Event, EventError> {
    let event: Event = serde_json::from_slice(json).map_err(|error| {
        if let Some(kind) = unknown_type(json, seq) {
            return EventError::Unknown(kind);
        }
        // It is always line 1 of the event, which could be mistaken for a line of the file.
        EventError::Damaged(format!(
            "event {seq} is unreadable: {}",
            error.to_string().replace(" at line 1 column ", " at column ")
        ))
    })?;
    match event.seq {
        found if found == seq => Ok(event),
        found => Err(format!("event {seq} is missing: event {found} is there instead").into()),
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
    damage: Option<EventError>,
    /// The length of the intact beginning, once an event is damaged or missing. Links cannot prove what follows, so
    /// an event after the gap is not counted, even if it has the number of the lost one.
    unbroken: Option<u64>,
}

impl EventCollector {
    /// Adds the next event that was read, or why it could not be read.
    pub fn take(&mut self, event: Result<Event, EventError>) {
        let expected = self.next_seq();
        match event {
            Ok(event) if event.seq < expected => {
                let damage = format!("event {expected} is missing: event {} is there instead", event.seq);
                self.break_at(damage.into());
            }
            Ok(event) => {
                if event.seq > expected {
                    self.break_at(format!("event {expected} is missing").into());
                }
                self.events.push(event);
            }
            Err(damage) => self.break_at(damage),
        }
    }

    fn break_at(&mut self, damage: EventError) {
        self.unbroken.get_or_insert(self.events.len() as u64);
        self.damage.get_or_insert(damage);
    }

    /// Records damage; the first one is reported.
    pub fn note(&mut self, damage: String) {
        self.damage.get_or_insert(damage.into());
    }

    /// Returns whether no damage was found so far.
    pub const fn is_whole(&self) -> bool {
        self.damage.is_none()
    }

    /// Returns the `seq` of the next event.
    pub fn next_seq(&self) -> u64 {
        self.events.last().map_or(0, |event| event.seq.saturating_add(1))
    }

    /// Returns the readable events, with the damage as an error about `place`.
    #[must_use]
    pub fn finish(self, place: String) -> RecoveredEvents {
        let unbroken = self.unbroken.unwrap_or(self.events.len() as u64);
        let damage = self.damage.map(|error| match error {
            EventError::Damaged(why) => StoreError::Damaged { place, why, intact: unbroken },
            EventError::Unknown(kind) => StoreError::UnknownEvent { place, seq: unbroken, kind },
        });
        RecoveredEvents { events: self.events, damage }
    }
}

/// The row of an event in a table.
#[derive(Debug)]
pub struct EventRow<'r> {
    /// The number of the event.
    pub seq: u64,
    /// The event as an object.
    pub json: &'r [u8],
    /// The link of the event.
    pub link: Option<Link>,
}

impl EventRow<'_> {
    /// Returns the event, if its link follows those before and its number is `next`.
    ///
    /// # Errors
    /// As [`parse_event`]. One of a later version with a wrong link is damaged.
    pub fn event(&self, chain: &mut Chain, next: u64) -> Result<Event, EventError> {
        // Nothing vouches for a first event when it is lost what it follows.
        let is_known = chain.is_known() || self.seq > 0;
        let holds = is_known && chain.holds(self.json, self.link);
        let event = parse_event(self.json, self.seq).inspect_err(|_| chain.break_off());
        match event {
            // Behind one that is missing, it follows nothing that could be compared.
            Ok(event) if holds || self.seq > next => Ok(event),
            Ok(_) => Err(changed(self.seq).into()),
            Err(EventError::Unknown(_)) if !holds => Err(changed(self.seq).into()),
            Err(error) => Err(error),
        }
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
