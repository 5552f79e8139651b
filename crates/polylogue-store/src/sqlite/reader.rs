//! Reads the tables.

use std::ops::Range;
use std::path::Path;

use polylogue_core::chain::Chain;
use polylogue_core::{Event, ListQuery, Listing, LogId, Meta, Page, RecoveredEvents, StoreError, Summary};
use rusqlite::{Connection, Error, Result};

use super::connect::{self, ReadConnection};
use super::listing::{damaged, listings, page, quick_check, whole_check};
use super::process_lock::{self, Place};
use super::rows::{
    DOWN, HeadChecks, StoredMeta, UP, collect, events, find, head_of, is_damage, stored_meta, tolerated,
};
use super::write_error::store_error;
use crate::head::Head;
use crate::intact::{EventCollector, parse_event};
use crate::io_error::show;

/// A reading connection, opened on first use.
#[derive(Debug, Default)]
pub(super) struct Reader {
    reading: Option<ReadConnection>,
}

impl Reader {
    pub(super) fn reading<T>(
        &mut self,
        place: &Path,
        read: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T, StoreError> {
        let fail = |error| store_error(place, &error);
        // A database that was put in the place of the one that is open is another one.
        let reading = self.reading.take().filter(|reading| reading.files.check().is_ok());
        let reading = match reading {
            Some(reading) => reading,
            None => connect::to_read(place).map_err(fail)?,
        };
        let done = read(&reading.connection).map_err(fail);
        self.reading = Some(reading).filter(|reading| reading.lasts);
        done
    }

    /// The log's number, checked against its writer's head.
    fn log(&mut self, place: &Place, id: &LogId) -> Result<(Option<Head>, i64), StoreError> {
        // Looked at first: what was acknowledged by then is in the database.
        let acknowledged = process_lock::acknowledged_of(place, id);
        match (self.reading(place, |connection| find(connection, id))?, acknowledged) {
            (Some(log), acknowledged) => Ok((acknowledged, log)),
            // One that was claimed cannot have been removed.
            (None, Some(Head { events, lease_ms: 1.., .. })) => {
                let why = format!("it is lost, and {events} events of it were acknowledged");
                Err(StoreError::Damaged { place: format!("`{id}` in {}", show(place)), why, intact: 0 })
            }
            (None, _) => Err(StoreError::NotFound { id: id.clone() }),
        }
    }

    pub(super) fn read(
        &mut self,
        place: &Place,
        id: &LogId,
        range: Range<u64>,
    ) -> Result<Vec<Event>, StoreError> {
        let (acknowledged, log) = self.log(place, id)?;
        let events = self.reading(place, |connection| {
            let connection = &*connection.unchecked_transaction()?;
            match events(connection, (id, log), range, acknowledged.as_ref()) {
                Err(error) if is_damage(&error) => Ok(None),
                events => events,
            }
        })?;
        match events {
            Some(events) => Ok(events),
            None => Err(self.damage(place, id)),
        }
    }

    /// Why a log could not be read.
    fn damage(&mut self, place: &Place, id: &LogId) -> StoreError {
        match self.read_intact(place, id).map(|intact| intact.damage) {
            Ok(Some(damage)) => damage,
            Ok(None) => StoreError::Io { place: show(place), why: "it changed while it was read".into() },
            Err(error) => error,
        }
    }

    pub(super) fn read_intact(&mut self, place: &Place, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        let (acknowledged, log) = self.log(place, id)?;
        self.reading(place, |connection| {
            let connection = &*connection.unchecked_transaction()?;
            let mut collector = EventCollector::default();
            let (front, head) = match (stored_meta(connection, id, log), head_of(connection, log)) {
                (Ok(stored_meta), Ok(head)) => {
                    stored_meta.damage.into_iter().for_each(|damage| collector.note(damage));
                    (stored_meta.link, head)
                }
                (stored_meta, head) => {
                    let damage = stored_meta.err().or(head.err()).unwrap_or(Error::QueryReturnedNoRows);
                    collector.note(tolerated(damage)?);
                    (None, None)
                }
            };
            let mut ends = HeadChecks::of(&head, acknowledged.as_ref(), 0, front);
            let mut chain = Chain::from(front);
            let up = collect(connection, UP, log, 0..u64::MAX, |row| {
                let event = row.event(&mut chain, collector.next_seq());
                if let Ok(event) = &event {
                    ends.pass(event.seq, row.link);
                }
                collector.take(event);
            });
            if let Err(damage) = up {
                collector.note(tolerated(damage)?);
                // What is behind the damage is reached from the other end.
                let (mut behind, next) = (Vec::new(), collector.next_seq());
                let down = collect(connection, DOWN, log, next..u64::MAX, |row| {
                    behind.push(parse_event(row.json, row.seq));
                });
                if let Err(damage) = down {
                    tolerated(damage)?;
                }
                behind.into_iter().rev().for_each(|event| collector.take(event));
            }
            if let Some(damage) = ends.damage().filter(|_| collector.is_whole()) {
                collector.note(damage);
            }
            Ok(collector.finish(format!("`{id}` in {}", show(place))))
        })
    }

    pub(super) fn meta(&mut self, place: &Place, id: &LogId) -> Result<Meta, StoreError> {
        let (_, log) = self.log(place, id)?;
        let stored_meta = self.reading(place, |connection| match stored_meta(connection, id, log) {
            Err(error) if is_damage(&error) => {
                let damage = Some(error.to_string());
                Ok(StoredMeta { meta: Meta::default(), damage, link: None })
            }
            stored_meta => stored_meta,
        })?;
        match stored_meta.damage {
            None => Ok(stored_meta.meta),
            Some(_) => Err(self.damage(place, id)),
        }
    }

    pub(super) fn list(&mut self, place: &Place, query: &ListQuery) -> Result<Page, StoreError> {
        let acknowledged = process_lock::acknowledged(place, |id| query.matches_id(id));
        let page = self.reading(place, |connection| match page(connection, query, &acknowledged) {
            Err(error) if is_damage(&error) => Ok(None),
            page => page.map(Some),
        })?;
        if let Some(page) = page {
            return Ok(page);
        }
        let (listings, damage) = self.reading(place, |connection| listings(connection, acknowledged))?;
        match damage {
            None => Page::of(query, listings.into_iter().map(Ok)),
            Some(why) => Err(damaged(place, why, &listings)),
        }
    }

    /// How many logs there are, by an index.
    pub(super) fn count(&mut self, place: &Place) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM logs";
        let count =
            self.reading(place, |connection| connection.query_row(sql, [], |row| row.get::<_, i64>(0)))?;
        Ok(count.cast_unsigned())
    }

    pub(super) fn list_intact(
        &mut self,
        place: &Place,
    ) -> Result<(Vec<Listing>, Option<StoreError>), StoreError> {
        let acknowledged = process_lock::acknowledged(place, |_| true);
        let (mut listings, damage) = self.reading(place, |connection| listings(connection, acknowledged))?;
        let check = self.reading(place, quick_check)?;
        let damage = check.or(damage);
        if damage.is_some() {
            for listing in &mut listings {
                let intact = self.read_intact(place, &listing.id);
                let events = intact.map_or(Vec::new(), |intact| intact.events);
                listing.summary =
                    Summary { events: events.len() as u64, ..Summary::of(&events, listing.has_team) };
            }
        }
        let damage = damage.map(|why| damaged(place, why, &listings));
        Ok((listings, damage))
    }

    /// The damage that SQLite finds, if any.
    pub(super) fn check(&mut self, place: &Path) -> Result<Option<StoreError>, StoreError> {
        let why = self.reading(place, whole_check)?;
        Ok(why.map(|why| StoreError::Damaged { place: show(place), why, intact: 0 }))
    }
}
