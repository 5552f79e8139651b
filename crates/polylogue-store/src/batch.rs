//! Serialized events to be appended.

use std::sync::Arc;

use polylogue_core::{Event, Listing, LogId, StoreError};

/// Consecutive events as JSON.
#[derive(Debug)]
pub struct Batch {
    first: u64,
    /// Each event as an object.
    pub json: Vec<String>,
    /// The events.
    pub events: Vec<Arc<Event>>,
}

impl Batch {
    /// Serializes `events` on the caller's thread, because there are more callers than writers.
    ///
    /// # Errors
    /// [`StoreError::Gap`] when an event does not follow the one before.
    pub fn new(id: &LogId, events: &[Arc<Event>]) -> Result<Self, StoreError> {
        let first = events.first().map_or(0, |event| event.seq);
        follows(id, first, events)?;
        let json = events.iter().map(|event| {
            serde_json::to_string(event).map_err(|error| StoreError::Io {
                place: format!("event {} of `{id}`", event.seq),
                why: error.to_string(),
            })
        });
        Ok(Self { first, json: json.collect::<Result<_, _>>()?, events: events.to_vec() })
    }

    /// Checks that the events follow the first `kept` ones.
    ///
    /// # Errors
    /// [`StoreError::Gap`].
    pub fn follows(&self, id: &LogId, kept: u64) -> Result<(), StoreError> {
        if self.json.is_empty() || self.first == kept {
            Ok(())
        } else {
            Err(StoreError::Gap { id: id.clone(), kept, given: self.first })
        }
    }
}

/// Whether `events` follow the first `kept` ones, and one another.
pub(crate) fn follows(id: &LogId, kept: u64, events: &[Arc<Event>]) -> Result<(), StoreError> {
    match (kept..).zip(events).find(|(expected, event)| event.seq != *expected) {
        None => Ok(()),
        Some((kept, event)) => Err(StoreError::Gap { id: id.clone(), kept, given: event.seq }),
    }
}

/// Sorts a list as [`Store::list`](polylogue_core::Store::list) requires; ids decide between logs of the same time.
pub(crate) fn newest_first(listings: &mut [Listing]) {
    listings.sort_by(|a, b| (b.created, &b.id).cmp(&(a.created, &a.id)));
}
