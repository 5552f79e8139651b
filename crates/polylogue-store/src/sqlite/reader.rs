//! What is read of the tables.

use std::path::Path;

use polylogue_core::{Event, Intact, Listing, LogId, Meta, StoreError, Timestamp};
use rusqlite::{Connection, Error, ErrorCode, OptionalExtension, Result, Row};
use serde_json::Value;

use super::connect::{self, Reading};
use super::fault::store_error;
use crate::batch;
use crate::intact::{Salvage, parse_event};
use crate::io_error::show;

/// A connection that reads, made when it is needed.
#[derive(Debug, Default)]
pub(super) struct Reader {
    reading: Option<Reading>,
}

/// Events of a log upwards from one of them, and downwards to it.
const UP: &str = "SELECT seq, json FROM events WHERE log = ?1 AND seq >= ?2 ORDER BY seq";
const DOWN: &str = "SELECT seq, json FROM events WHERE log = ?1 AND seq >= ?2 ORDER BY seq DESC";

impl Reader {
    pub(super) fn reading<T>(
        &mut self,
        place: &Path,
        read: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T, StoreError> {
        let fail = |error| store_error(place, &error);
        let reading = match self.reading.take() {
            Some(reading) => reading,
            None => connect::to_read(place).map_err(fail)?,
        };
        let done = read(&reading.connection).map_err(fail);
        self.reading = Some(reading).filter(|reading| reading.lasts);
        done
    }

    /// The log's number.
    fn log(&mut self, place: &Path, id: &LogId) -> Result<i64, StoreError> {
        let log = self.reading(place, |connection| find(connection, id))?;
        log.ok_or_else(|| StoreError::NotFound { id: id.clone() })
    }

    pub(super) fn read(&mut self, place: &Path, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        let log = self.log(place, id)?;
        let events = self.reading(place, |connection| match events(connection, log, from) {
            Err(error) if is_damage(&error) => Ok(None),
            events => events,
        })?;
        match events {
            Some(events) => Ok(events),
            None => Err(self.damage(place, id)),
        }
    }

    /// Why a log could not be read.
    fn damage(&mut self, place: &Path, id: &LogId) -> StoreError {
        match self.read_intact(place, id).map(|intact| intact.damage) {
            Ok(Some(damage)) => damage,
            Ok(None) => StoreError::Io { place: show(place), why: "it changed while it was read".into() },
            Err(error) => error,
        }
    }

    pub(super) fn read_intact(&mut self, place: &Path, id: &LogId) -> Result<Intact, StoreError> {
        let log = self.log(place, id)?;
        self.reading(place, |connection| {
            let mut salvage = Salvage::default();
            if let Err(flaw) = collect(connection, UP, log, 0, |event| salvage.take(event)) {
                salvage.note(tolerated(flaw)?);
                // What is behind the damage is reached from the other end.
                let (mut behind, next) = (Vec::new(), salvage.next_seq());
                if let Err(flaw) = collect(connection, DOWN, log, next, |event| behind.push(event)) {
                    tolerated(flaw)?;
                }
                behind.into_iter().rev().for_each(|event| salvage.take(event));
            }
            Ok(salvage.finish(format!("`{id}` in {}", show(place))))
        })
    }

    pub(super) fn meta(&mut self, place: &Path, id: &LogId) -> Result<Meta, StoreError> {
        let log = self.log(place, id)?;
        let sql = "SELECT title, created_ms, team FROM logs WHERE nr = ?1";
        let meta = self.reading(place, |connection| {
            let columns = |row: &Row<'_>| meta(row.get(0)?, row.get(1)?, row.get(2)?);
            connection.prepare_cached(sql)?.query_row([log], columns).optional()
        })?;
        let (meta, flaw) = meta.ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        match flaw {
            None => Ok(meta),
            Some(why) => {
                let intact = self.read_intact(place, id).map_or(0, |intact| intact.events.len() as u64);
                Err(StoreError::Damaged { place: format!("`{id}` in {}", show(place)), why, intact })
            }
        }
    }

    pub(super) fn list(&mut self, place: &Path) -> Result<Vec<Listing>, StoreError> {
        let (listings, flaw) = self.reading(place, listings)?;
        match flaw {
            None => Ok(listings),
            Some(why) => Err(damaged(place, why, &listings)),
        }
    }

    pub(super) fn list_intact(
        &mut self,
        place: &Path,
    ) -> Result<(Vec<Listing>, Option<StoreError>), StoreError> {
        let (mut listings, flaw) = self.reading(place, listings)?;
        let check = self.reading(place, quick_check)?;
        let damage = check.or(flaw);
        if damage.is_some() {
            for listing in &mut listings {
                let intact = self.read_intact(place, &listing.id);
                listing.events = intact.map_or(0, |intact| intact.events.len() as u64);
            }
        }
        let damage = damage.map(|why| damaged(place, why, &listings));
        Ok((listings, damage))
    }
}

fn damaged(place: &Path, why: String, listings: &[Listing]) -> StoreError {
    let why = format!("{why}; {} conversations can be listed", listings.len());
    StoreError::Damaged {
        place: show(place),
        why,
        intact: listings.iter().map(|listing| listing.events).sum(),
    }
}

/// Whether it is the database that is at fault, and not the way to it.
fn is_damage(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        || matches!(
            error,
            Error::InvalidColumnType(..) | Error::FromSqlConversionFailure(..) | Error::Utf8Error(..)
        )
}

/// What is wrong with the database; other errors go on.
fn tolerated(error: Error) -> Result<String> {
    if is_damage(&error) { Ok(error.to_string()) } else { Err(error) }
}

fn find(connection: &Connection, id: &LogId) -> Result<Option<i64>> {
    let by =
        |sql: &str| connection.prepare_cached(sql)?.query_row([id.as_str()], |row| row.get(0)).optional();
    match by("SELECT nr FROM logs WHERE id = ?1") {
        // The index may be damaged where the table is not.
        Err(error) if is_damage(&error) => by("SELECT nr FROM logs NOT INDEXED WHERE id = ?1"),
        log => log,
    }
}

/// The events from `from` on, or `None` when one of them is damaged.
fn events(connection: &Connection, log: i64, from: u64) -> Result<Option<Vec<Event>>> {
    let mut events = Vec::new();
    let mut whole = true;
    collect(connection, UP, log, from, |event| match event {
        Ok(event) if event.seq == from.saturating_add(events.len() as u64) => events.push(event),
        _ => whole = false,
    })?;
    Ok(whole.then_some(events))
}

fn collect(
    connection: &Connection,
    sql: &str,
    log: i64,
    from: u64,
    mut take: impl FnMut(Result<Event, String>),
) -> Result<()> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([log, i64::try_from(from).unwrap_or(i64::MAX)])?;
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        take(parse_event(row.get_ref(1)?.as_bytes()?, seq.cast_unsigned()));
    }
    Ok(())
}

/// A log's meta, and what is wrong with it.
fn meta(title: String, created: i64, team: String) -> Result<(Meta, Option<String>)> {
    let (team, flaw) = match serde_json::from_str(&team) {
        Ok(team) => (team, None),
        Err(error) => (Value::Null, Some(format!("its team is unreadable: {error}"))),
    };
    Ok((Meta { title, created: Timestamp(created.cast_unsigned()), team }, flaw))
}

/// All logs that can be read, newest first, and what is wrong with the table of logs, if anything.
fn listings(connection: &Connection) -> Result<(Vec<Listing>, Option<String>)> {
    let mut found = Vec::new();
    let mut flaw = None;
    for order in ["ASC", "DESC"] {
        let sql = format!("SELECT nr, id, title, created_ms, team FROM logs NOT INDEXED ORDER BY nr {order}");
        match rows(connection, &sql, &mut found) {
            Ok(()) => break,
            // What is behind the damage is reached from the other end.
            Err(error) => flaw = Some(tolerated(error)?),
        }
    }
    found.sort_by_key(|(nr, _)| *nr);
    found.dedup_by_key(|(nr, _)| *nr);
    let mut listings = Vec::with_capacity(found.len());
    for (log, mut listing) in found {
        (listing.events, listing.last) = last(connection, log)?;
        listings.push(listing);
    }
    batch::newest_first(&mut listings);
    Ok((listings, flaw))
}

fn rows(connection: &Connection, sql: &str, found: &mut Vec<(i64, Listing)>) -> Result<()> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(1)?;
        let (meta, _) = meta(row.get(2)?, row.get(3)?, row.get(4)?)?;
        // Another program may have put in what is no id.
        if let Ok(id) = LogId::new(&id) {
            found.push((row.get(0)?, Listing { id, meta, events: 0, last: None }));
        }
    }
    Ok(())
}

/// How many events a log has, and the last one, as far as that can be read.
fn last(connection: &Connection, log: i64) -> Result<(u64, Option<Event>)> {
    let sql = "SELECT seq, json FROM events WHERE log = ?1 ORDER BY seq DESC LIMIT 1";
    let columns = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, String>(1)?));
    match connection.prepare_cached(sql)?.query_row([log], columns).optional() {
        Ok(None) => Ok((0, None)),
        Ok(Some((seq, json))) => Ok((seq.saturating_add(1), parse_event(json.as_bytes(), seq).ok())),
        Err(error) => tolerated(error).map(|_| (0, None)),
    }
}

/// The first thing that SQLite finds wrong, if anything.
fn quick_check(connection: &Connection) -> Result<Option<String>> {
    let first = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match first {
        Ok(finding) if finding == "ok" => Ok(None),
        Ok(finding) => Ok(Some(finding.replace('\n', ", "))),
        Err(error) => tolerated(error).map(Some),
    }
}
