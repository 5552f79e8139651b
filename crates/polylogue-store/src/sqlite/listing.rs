//! Lists of all logs, without reading the logs.

use std::collections::HashMap;
use std::path::Path;

use polylogue_core::{Cursor, ListQuery, Listing, LogId, Page, StoreError, Summary, Timestamp};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::rows::{self, find, link_of, tolerated};
use crate::batch;
use crate::head::Head;
use crate::intact::next_to_head;
use crate::io_error::show;
use crate::sealed::unsealed;

pub(super) fn damaged(place: &Path, why: String, listings: &[Listing]) -> StoreError {
    let why = format!("{why}; {} conversations can be listed", listings.len());
    let intact = listings.iter().map(|listing| listing.summary.events).sum();
    StoreError::Damaged { place: show(place), why, intact }
}

/// The columns of a list: the team, which may be long, is behind them and is not loaded.
const COLUMNS: &str = "SELECT nr, id, title, created_ms, has_team, parent FROM logs";

/// A page of the logs, from their index. No event is read, except of logs whose summary is not what was written.
pub(super) fn page(
    connection: &Connection,
    query: &ListQuery,
    acknowledged: &HashMap<LogId, Head>,
) -> Result<Page> {
    let (created, id) = match &query.after {
        Some(Cursor { created, id }) => (created.0.cast_signed(), id.as_str()),
        None => (i64::MAX, LAST_ID),
    };
    let mut select = connection.prepare_cached(&match query.id {
        None => format!("{COLUMNS} WHERE (created_ms, id) < (?1, ?2) ORDER BY created_ms DESC, id DESC"),
        // By the index of ids, of which no character sorts behind `~`.
        Some(_) => format!(
            "{COLUMNS} WHERE id >= ?3 AND id < ?3 || '~' AND (+created_ms, +id) < (?1, ?2) ORDER BY +created_ms DESC, +id DESC"
        ),
    })?;
    let mut rows = match &query.id {
        None => select.query(params![created, id])?,
        Some(beginning) => select.query(params![created, id, beginning])?,
    };
    let found = std::iter::from_fn(|| {
        loop {
            match rows.next().transpose()?.and_then(base) {
                Ok(Some((log, listing))) => return Some(whole(connection, log, listing, acknowledged)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    });
    // Looked for where the page reaches the end of the list.
    let lost = std::iter::once_with(|| lost(connection, acknowledged)).flat_map(|lost| match lost {
        Ok(lost) => lost.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    });
    Page::of(query, found.chain(lost))
}

/// Claimed logs that are not in the database: one that is claimed cannot have been removed.
fn lost(connection: &Connection, acknowledged: &HashMap<LogId, Head>) -> Result<Vec<Listing>> {
    let mut lost = Vec::new();
    for head in acknowledged.values().filter(|head| head.lease_ms > 0) {
        if find(connection, &head.id)?.is_none() {
            lost.push(Listing::damaged(head.id.clone()));
        }
    }
    batch::newest_first(&mut lost);
    Ok(lost)
}

/// Sorts behind every id.
const LAST_ID: &str = "~";

/// All readable logs, newest first, and the damage of the table of logs, if any.
pub(super) fn listings(
    connection: &Connection,
    mut acknowledged: HashMap<LogId, Head>,
) -> Result<(Vec<Listing>, Option<String>)> {
    let mut found = Vec::new();
    let mut damage = None;
    for order in ["ASC", "DESC"] {
        match bases(connection, &format!("{COLUMNS} NOT INDEXED ORDER BY nr {order}"), &mut found) {
            Ok(()) => break,
            // What is behind the damage is reached from the other end.
            Err(error) => damage = Some(tolerated(error)?),
        }
    }
    found.sort_by_key(|(nr, _)| *nr);
    found.dedup_by_key(|(nr, _)| *nr);
    let mut listings = Vec::with_capacity(found.len());
    for (log, listing) in found {
        let unread = Listing { is_damaged: true, ..listing.clone() };
        listings.push(match whole(connection, log, listing, &acknowledged) {
            Ok(listing) => listing,
            Err(error) => tolerated(error).map(|_| unread)?,
        });
    }
    listings.iter().for_each(|listing| drop(acknowledged.remove(&listing.id)));
    let lost = acknowledged.into_values().filter(|head| head.lease_ms > 0);
    listings.extend(lost.map(|head| Listing::damaged(head.id)));
    batch::newest_first(&mut listings);
    Ok((listings, damage))
}

fn bases(connection: &Connection, sql: &str, found: &mut Vec<(i64, Listing)>) -> Result<()> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        found.extend(base(row)?);
    }
    Ok(())
}

/// What the table of logs has of a log. `None` if another program put in what is not an id.
fn base(row: &Row<'_>) -> Result<Option<(i64, Listing)>> {
    let Ok(id) = LogId::new(&row.get::<_, String>(1)?) else { return Ok(None) };
    let (title, created) = (row.get(2)?, Timestamp(row.get::<_, i64>(3)?.cast_unsigned()));
    let parent = row.get::<_, Option<String>>(5)?.and_then(|json| serde_json::from_str(&json).ok());
    let (has_team, summary) = (row.get(4)?, Summary::default());
    let (is_damaged, is_archived) = (false, false);
    let listing = Listing { id, title, created, has_team, parent, summary, is_damaged, is_archived };
    Ok(Some((row.get(0)?, listing)))
}

/// Whether the events of the log are packed; not, where that cannot be read.
fn is_archived(connection: &Connection, log: i64) -> Result<bool> {
    let mut select = connection.prepare_cached("SELECT EXISTS(SELECT 1 FROM archives WHERE log = ?1)")?;
    match select.query_row([log], |row| row.get(0)) {
        Err(error) => tolerated(error).map(|_| false),
        found => found,
    }
}

/// Adds the summary, whether the log is archived, and whether it has lost events.
fn whole(
    connection: &Connection,
    log: i64,
    mut listing: Listing,
    acknowledged: &HashMap<LogId, Head>,
) -> Result<Listing> {
    let sql = "SELECT fence, events, chain, summary FROM heads WHERE log = ?1";
    let columns = |row: &Row<'_>| {
        let (fence, events): (i64, i64) = (row.get(0)?, row.get(1)?);
        Ok((
            fence.cast_unsigned(),
            events.cast_unsigned(),
            link_of(row, 2)?,
            row.get_ref(3)?.as_bytes()?.to_vec(),
        ))
    };
    let head = connection.prepare_cached(sql)?.query_row([log], columns).optional()?;
    let Some((fence, events, Some(link), summary)) = head else {
        return Ok(Listing { is_damaged: true, ..listing });
    };
    listing.is_archived = is_archived(connection, log)?;
    let acknowledged =
        acknowledged.get(&listing.id).filter(|head| head.fence >= fence && head.events >= events);
    listing.is_damaged = acknowledged.is_some_and(|head| next_to_head(head, events, Some(link)).is_some());
    if let Some(summary) = unsealed(summary, link) {
        return Ok(Listing { summary, ..listing });
    }
    let read = match rows::events(connection, (&listing.id, log), 0..u64::MAX, acknowledged) {
        Err(error) => tolerated(error).map(|_| None)?,
        read => read?,
    };
    listing.is_damaged |= read.is_none();
    listing.summary = Summary::of(&read.unwrap_or_default(), listing.has_team);
    Ok(listing)
}

/// The first damage that a quick check of SQLite finds.
pub(super) fn quick_check(connection: &Connection) -> Result<Option<String>> {
    check(connection, "PRAGMA quick_check(1)")
}

/// The first damage that SQLite finds.
pub(super) fn whole_check(connection: &Connection) -> Result<Option<String>> {
    check(connection, "PRAGMA integrity_check(1)")
}

fn check(connection: &Connection, pragma: &str) -> Result<Option<String>> {
    let first = connection.query_row(pragma, [], |row| row.get::<_, String>(0));
    match first {
        Ok(finding) if finding == "ok" => Ok(None),
        Ok(finding) => Ok(Some(finding.replace('\n', ", "))),
        Err(error) => tolerated(error).map(Some),
    }
}
