//! The rows of one log.

use std::ops::Range;

use polylogue_core::chain::{Chain, Link};
use polylogue_core::{Event, LogId, Meta, Timestamp};
use rusqlite::{Connection, Error, ErrorCode, OptionalExtension, Result, Row};
use serde_json::Value;

use crate::head::Head;
use crate::intact::{EventRow, HeadCheck};
use crate::packed::{StoredRow, unpacked};
use crate::sealed::first_link;

/// Events of a log between two of them, upwards and downwards.
pub(super) const UP: &str =
    "SELECT seq, json, chain FROM events WHERE log = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq";
pub(super) const DOWN: &str =
    "SELECT seq, json, chain FROM events WHERE log = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq DESC";

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

pub(super) fn find(connection: &Connection, id: &LogId) -> Result<Option<i64>> {
    let by =
        |sql: &str| connection.prepare_cached(sql)?.query_row([id.as_str()], |row| row.get(0)).optional();
    match by("SELECT nr FROM logs WHERE id = ?1") {
        // The index may be damaged where the table is not.
        Err(error) if is_damage(&error) => by("SELECT nr FROM logs NOT INDEXED WHERE id = ?1"),
        log => log,
    }
}

/// The events in `range`, or `None` when one of them is damaged or lost.
pub(super) fn events(
    connection: &Connection,
    (id, log): (&LogId, i64),
    range: Range<u64>,
    acknowledged: Option<&Head>,
) -> Result<Option<Vec<Event>>> {
    let from = range.start;
    let link = match from {
        0 => {
            let stored_meta = stored_meta(connection, id, log)?;
            if stored_meta.damage.is_some() {
                return Ok(None);
            }
            stored_meta.link
        }
        _ => {
            match link_at(connection, log, from - 1)? {
                Some(link) => link,
                // It is not as long.
                None => {
                    let is_shorter = |head: &Head| {
                        head.events < from && acknowledged.is_none_or(|last| last.events <= head.events)
                    };
                    return Ok(head_of(connection, log)?.filter(is_shorter).map(|_| Vec::new()));
                }
            }
        }
    };
    let head = head_of(connection, log)?;
    let mut ends = HeadChecks::of(&head, acknowledged, from, link);
    let (mut events, mut whole, mut chain) = (Vec::new(), link.is_some(), Chain::from(link));
    collect(connection, UP, log, range.clone(), |row| match row.event(&mut chain, row.seq) {
        Ok(event) if event.seq == from.saturating_add(events.len() as u64) => {
            ends.pass(event.seq, row.link);
            events.push(event);
        }
        _ => whole = false,
    })?;
    // All that was asked for, and more follows: the end of the log was not read.
    let is_part = from.saturating_add(events.len() as u64) >= range.end
        && head.as_ref().is_some_and(|head| head.events > range.end);
    Ok((whole && (is_part || ends.damage().is_none())).then_some(events))
}

/// What is stored as the link of an event; `None` without the event.
fn link_at(connection: &Connection, log: i64, seq: u64) -> Result<Option<Option<Link>>> {
    let sql = "SELECT chain FROM events WHERE log = ?1 AND seq = ?2";
    let key = [log, i64::try_from(seq).unwrap_or(i64::MAX)];
    if let Some(link) = connection.prepare_cached(sql)?.query_row(key, |row| link_of(row, 0)).optional()? {
        return Ok(Some(link));
    }
    let rows = archived(connection, log, seq..seq.saturating_add(1))?.unwrap_or_default();
    Ok(rows.first().map(|row| row.link))
}

/// The events in `range` of an archived log, as far as they can be read; `None` if it is none.
pub(super) fn archived(
    connection: &Connection,
    log: i64,
    range: Range<u64>,
) -> Result<Option<Vec<StoredRow>>> {
    let mut select = connection.prepare_cached("SELECT bytes FROM archives WHERE log = ?1")?;
    select.query_row([log], |row| Ok(unpacked(row.get_ref(0)?.as_blob()?, range))).optional()
}

/// Checks the end of a log that is read against both of its heads.
pub(super) struct HeadChecks<'h> {
    /// The one in the database.
    stored: HeadCheck<'h>,
    /// The one that its writer has acknowledged, in the file of the writer.
    acknowledged: HeadCheck<'h>,
    /// How many events the database should have; `None` if its head is lost.
    events: Option<u64>,
}

impl<'h> HeadChecks<'h> {
    pub(super) fn of(
        head: &'h Option<Head>,
        acknowledged: Option<&'h Head>,
        from: u64,
        link: Option<Link>,
    ) -> Self {
        // What was acknowledged under an earlier claim counts no more.
        let acknowledged =
            acknowledged.filter(|last| head.as_ref().is_none_or(|head| last.fence >= head.fence));
        Self {
            stored: HeadCheck::of(head.as_ref(), from, link),
            acknowledged: HeadCheck::of(acknowledged, from, link),
            events: head.as_ref().map(|head| head.events),
        }
    }

    pub(super) fn pass(&mut self, seq: u64, link: Option<Link>) {
        self.stored.pass(seq, link);
        self.acknowledged.pass(seq, link);
    }

    /// What is wrong with the end, after all events have [passed](Self::pass).
    pub(super) fn damage(&self) -> Option<String> {
        let Some(wanted) = self.events else { return Some("its end is lost".to_owned()) };
        let found = self.stored.events;
        let more =
            (found > wanted).then(|| format!("it has {found} events, of which {wanted} were appended"));
        self.stored.damage().or_else(|| self.acknowledged.damage()).or(more)
    }
}

/// The head that was stored with the last event.
pub(super) fn head_of(connection: &Connection, log: i64) -> Result<Option<Head>> {
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

pub(super) fn collect(
    connection: &Connection,
    sql: &str,
    log: i64,
    range: Range<u64>,
    mut take: impl FnMut(EventRow<'_>),
) -> Result<()> {
    // An archived log has no row in the table.
    let mut packed = archived(connection, log, range.clone())?.unwrap_or_default();
    if sql == DOWN {
        packed.reverse();
    }
    packed.iter().for_each(|row| take(row.as_event_row()));
    let mut select = connection.prepare_cached(sql)?;
    let first = i64::try_from(range.start).unwrap_or(i64::MAX);
    let last = i64::try_from(range.end).map_or(i64::MAX, |end| end.saturating_sub(1));
    let mut rows = select.query([log, first, last])?;
    while let Some(row) = rows.next()? {
        let seq = row.get::<_, i64>(0)?.cast_unsigned();
        take(EventRow { seq, json: row.get_ref(1)?.as_bytes()?, link: link_of(row, 2)? });
    }
    Ok(())
}

/// The metadata of a log.
pub(super) struct StoredMeta {
    pub(super) meta: Meta,
    /// Its damage, if any.
    pub(super) damage: Option<String>,
    /// The link before its events.
    pub(super) link: Option<Link>,
}

pub(super) fn stored_meta(connection: &Connection, id: &LogId, log: i64) -> Result<StoredMeta> {
    let sql = "SELECT title, created_ms, team, chain, parent FROM logs WHERE nr = ?1";
    connection.prepare_cached(sql)?.query_row([log], |row| {
        let (title, created, team): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let link = link_of(row, 3)?;
        let parent: Option<String> = row.get(4)?;
        let is_whole = link == Some(first_link(id.as_str(), &title, created, &team, parent.as_deref()));
        let parent = parent.and_then(|json| serde_json::from_str(&json).ok());
        let (team, damage) = match serde_json::from_str(&team) {
            Ok(team) => (team, None),
            Err(error) => (Value::Null, Some(format!("its team is unreadable: {error}"))),
        };
        let changed = || "its title, time, team or name is not what was written".to_owned();
        let damage = damage.or_else(|| (!is_whole).then(changed));
        Ok(StoredMeta {
            meta: Meta { title, created: Timestamp(created.cast_unsigned()), team, parent },
            damage,
            link,
        })
    })
}
