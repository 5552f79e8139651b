//! Reads the tables.

use std::path::Path;

use polylogue_core::{Event, Intact, Listing, LogId, Meta, StoreError, Timestamp};
use rusqlite::{Connection, Error, ErrorCode, OptionalExtension, Result, Row};
use serde_json::Value;

use super::connect::{self, Reading};
use super::listing::{damaged, listings, quick_check, whole_check};
use super::process_lock;
use super::transaction::first_link;
use super::write_error::store_error;
use crate::head::Head;
use crate::intact::{Ends, Salvage, changed, parse_event};
use crate::io_error::show;
use polylogue_core::chain::{Chain, Link};

/// A reading connection, opened on first use.
#[derive(Debug, Default)]
pub(super) struct Reader {
    reading: Option<Reading>,
}

/// Events of a log upwards from one of them, and downwards to it.
const UP: &str = "SELECT seq, json, chain FROM events WHERE log = ?1 AND seq >= ?2 ORDER BY seq";
const DOWN: &str = "SELECT seq, json, chain FROM events WHERE log = ?1 AND seq >= ?2 ORDER BY seq DESC";

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
    fn log(&mut self, place: &Path, id: &LogId) -> Result<(Option<Head>, i64), StoreError> {
        // Looked at first: what was acknowledged by then is in the database.
        let said = process_lock::acknowledged(place).remove(id);
        match (self.reading(place, |connection| find(connection, id))?, said) {
            (Some(log), said) => Ok((said, log)),
            // One that was claimed cannot have been removed.
            (None, Some(Head { events, lease_ms: 1.., .. })) => {
                let why = format!("it is lost, and {events} events of it were acknowledged");
                Err(StoreError::Damaged { place: format!("`{id}` in {}", show(place)), why, intact: 0 })
            }
            (None, _) => Err(StoreError::NotFound { id: id.clone() }),
        }
    }

    pub(super) fn read(&mut self, place: &Path, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        let (said, log) = self.log(place, id)?;
        let events =
            self.reading(place, |connection| match events(connection, (id, log), from, said.as_ref()) {
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
        let (said, log) = self.log(place, id)?;
        self.reading(place, |connection| {
            let connection = &*connection.unchecked_transaction()?;
            let mut salvage = Salvage::default();
            let (front, head) = match (about(connection, id, log), head_of(connection, log)) {
                (Ok(about), Ok(head)) => {
                    about.flaw.into_iter().for_each(|flaw| salvage.note(flaw));
                    (about.link, head)
                }
                (about, head) => {
                    let flaw = about.err().or(head.err()).unwrap_or(Error::QueryReturnedNoRows);
                    salvage.note(tolerated(flaw)?);
                    (None, None)
                }
            };
            let mut ends = Heads::of(&head, said.as_ref(), 0, front);
            let mut chain = Chain::from(front);
            let up = collect(connection, UP, log, 0, |row| {
                let event = row.event(&mut chain, salvage.next_seq());
                if let Ok(event) = &event {
                    ends.pass(event.seq, row.link);
                }
                salvage.take(event);
            });
            if let Err(flaw) = up {
                salvage.note(tolerated(flaw)?);
                // What is behind the damage is reached from the other end.
                let (mut behind, next) = (Vec::new(), salvage.next_seq());
                if let Err(flaw) =
                    collect(connection, DOWN, log, next, |row| behind.push(parse_event(row.json, row.seq)))
                {
                    tolerated(flaw)?;
                }
                behind.into_iter().rev().for_each(|event| salvage.take(event));
            }
            if let Some(flaw) = ends.flaw().filter(|_| salvage.is_whole()) {
                salvage.note(flaw);
            }
            Ok(salvage.finish(format!("`{id}` in {}", show(place))))
        })
    }

    pub(super) fn meta(&mut self, place: &Path, id: &LogId) -> Result<Meta, StoreError> {
        let (_, log) = self.log(place, id)?;
        let about = self.reading(place, |connection| match about(connection, id, log) {
            Err(error) if is_damage(&error) => {
                let flaw = Some(error.to_string());
                Ok(About { meta: Meta::default(), flaw, link: None })
            }
            about => about,
        })?;
        match about.flaw {
            None => Ok(about.meta),
            Some(_) => Err(self.damage(place, id)),
        }
    }

    pub(super) fn list(&mut self, place: &Path) -> Result<Vec<Listing>, StoreError> {
        let said = process_lock::acknowledged(place);
        let (listings, flaw) = self.reading(place, |connection| listings(connection, said))?;
        match flaw {
            None => Ok(listings),
            Some(why) => Err(damaged(place, why, &listings)),
        }
    }

    pub(super) fn list_intact(
        &mut self,
        place: &Path,
    ) -> Result<(Vec<Listing>, Option<StoreError>), StoreError> {
        let said = process_lock::acknowledged(place);
        let (mut listings, flaw) = self.reading(place, |connection| listings(connection, said))?;
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

    /// The damage that SQLite finds, if any.
    pub(super) fn check(&mut self, place: &Path) -> Result<Option<StoreError>, StoreError> {
        let why = self.reading(place, whole_check)?;
        Ok(why.map(|why| StoreError::Damaged { place: show(place), why, intact: 0 }))
    }
}

/// Whether an error is damage of the database, not of access to it.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        || matches!(
            error,
            Error::InvalidColumnType(..) | Error::FromSqlConversionFailure(..) | Error::Utf8Error(..)
        )
}

/// The damage of the database; other errors are returned.
pub(super) fn tolerated(error: Error) -> Result<String> {
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

/// The events from `from` on, or `None` when one of them is damaged or lost.
fn events(
    connection: &Connection,
    (id, log): (&LogId, i64),
    from: u64,
    said: Option<&Head>,
) -> Result<Option<Vec<Event>>> {
    let connection = &*connection.unchecked_transaction()?;
    let link = match from {
        0 => {
            let about = about(connection, id, log)?;
            if about.flaw.is_some() {
                return Ok(None);
            }
            about.link
        }
        _ => {
            let sql = "SELECT chain FROM events WHERE log = ?1 AND seq = ?2";
            let before = i64::try_from(from - 1).unwrap_or(i64::MAX);
            let mut select = connection.prepare_cached(sql)?;
            match select.query_row([log, before], |row| link_of(row, 0)).optional()? {
                Some(link) => link,
                // It is not as long.
                None => {
                    let is_shorter = |head: &Head| {
                        head.events < from && said.is_none_or(|said| said.events <= head.events)
                    };
                    return Ok(head_of(connection, log)?.filter(is_shorter).map(|_| Vec::new()));
                }
            }
        }
    };
    let head = head_of(connection, log)?;
    let mut ends = Heads::of(&head, said, from, link);
    let (mut events, mut whole, mut chain) = (Vec::new(), link.is_some(), Chain::from(link));
    collect(connection, UP, log, from, |row| match row.event(&mut chain, row.seq) {
        Ok(event) if event.seq == from.saturating_add(events.len() as u64) => {
            ends.pass(event.seq, row.link);
            events.push(event);
        }
        _ => whole = false,
    })?;
    Ok((whole && ends.flaw().is_none()).then_some(events))
}

/// The stored heads of a log, in the database and beside it.
struct Heads<'h>([Ends<'h>; 2], u64);

impl<'h> Heads<'h> {
    fn of(head: &'h Option<Head>, said: Option<&'h Head>, from: u64, link: Option<Link>) -> Self {
        // What was said under an earlier claim counts no more.
        let said = said.filter(|said| head.as_ref().is_none_or(|head| said.fence >= head.fence));
        let events = head.as_ref().map_or(u64::MAX, |head| head.events);
        Self([Ends::of(head.as_ref(), from, link), Ends::of(said, from, link)], events)
    }

    fn pass(&mut self, seq: u64, link: Option<Link>) {
        self.0.iter_mut().for_each(|ends| ends.pass(seq, link));
    }

    fn flaw(&self) -> Option<String> {
        let [within, beside] = &self.0;
        let events = within.events;
        let more =
            (events > self.1).then(|| format!("it has {events} events, of which {} were appended", self.1));
        let unknown = (self.1 == u64::MAX).then(|| "its end is lost".to_owned());
        unknown.or_else(|| within.damage()).or_else(|| beside.damage()).or(more)
    }
}

/// The head that was stored with the last event.
fn head_of(connection: &Connection, log: i64) -> Result<Option<Head>> {
    let sql =
        "SELECT heads.fence, heads.events, heads.chain, id FROM heads JOIN logs ON nr = log WHERE log = ?1";
    let columns = |row: &Row<'_>| {
        let (fence, events, id): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(3)?);
        let (link, id) = (link_of(row, 2)?, LogId::new(&id).ok());
        Ok(link.zip(id).map(|(link, id)| Head {
            id,
            fence: fence.cast_unsigned(),
            events: events.cast_unsigned(),
            link,
            lease_ms: 0,
        }))
    };
    Ok(connection.prepare_cached(sql)?.query_row([log], columns).optional()?.flatten())
}

/// A link in a column.
pub(super) fn link_of(row: &Row<'_>, column: usize) -> Result<Option<Link>> {
    Ok(row.get_ref(column)?.as_blob_or_null()?.and_then(Link::from_bytes))
}

/// An event's row.
struct Found<'r> {
    seq: u64,
    json: &'r [u8],
    link: Option<Link>,
}

impl Found<'_> {
    /// The event, if its link follows those before and its number is `next`.
    fn event(&self, chain: &mut Chain, next: u64) -> Result<Event, String> {
        // Nothing vouches for a first event when it is lost what it follows.
        let is_known = chain.is_known() || self.seq > 0;
        let holds = is_known && chain.holds(self.json, self.link);
        let event = parse_event(self.json, self.seq).inspect_err(|_| chain.break_off())?;
        // Behind one that is missing, it follows nothing that could be compared.
        if holds || self.seq > next { Ok(event) } else { Err(changed(self.seq)) }
    }
}

fn collect(
    connection: &Connection,
    sql: &str,
    log: i64,
    from: u64,
    mut take: impl FnMut(Found<'_>),
) -> Result<()> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([log, i64::try_from(from).unwrap_or(i64::MAX)])?;
    while let Some(row) = rows.next()? {
        let seq = row.get::<_, i64>(0)?.cast_unsigned();
        take(Found { seq, json: row.get_ref(1)?.as_bytes()?, link: link_of(row, 2)? });
    }
    Ok(())
}

/// The metadata of a log.
struct About {
    meta: Meta,
    /// Its damage, if any.
    flaw: Option<String>,
    /// The link before its events.
    link: Option<Link>,
}

fn about(connection: &Connection, id: &LogId, log: i64) -> Result<About> {
    let sql = "SELECT title, created_ms, team, chain, parent FROM logs WHERE nr = ?1";
    connection.prepare_cached(sql)?.query_row([log], |row| {
        let (title, created, team): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let link = link_of(row, 3)?;
        let parent: Option<String> = row.get(4)?;
        let is_whole = link == Some(first_link(id.as_str(), &title, created, &team, parent.as_deref()));
        let parent = parent.and_then(|json| serde_json::from_str(&json).ok());
        let (team, flaw) = match serde_json::from_str(&team) {
            Ok(team) => (team, None),
            Err(error) => (Value::Null, Some(format!("its team is unreadable: {error}"))),
        };
        let changed = || "its title, time, team or name is not what was written".to_owned();
        let flaw = flaw.or_else(|| (!is_whole).then(changed));
        Ok(About {
            meta: Meta { title, created: Timestamp(created.cast_unsigned()), team, parent },
            flaw,
            link,
        })
    })
}
