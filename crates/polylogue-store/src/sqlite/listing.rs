//! Lists logs without reading all of their events.

use std::collections::HashMap;
use std::path::Path;

use polylogue_core::{Event, Listing, LogId, StoreError, Timestamp};
use rusqlite::{Connection, OptionalExtension, Result, Row};

use super::reader::{is_damage, link_of, tolerated};
use crate::batch;
use crate::head::Head;
use crate::intact::{beside_head, parse_event};
use crate::io_error::show;
use polylogue_core::chain::Link;

pub(super) fn damaged(place: &Path, why: String, listings: &[Listing]) -> StoreError {
    let why = format!("{why}; {} conversations can be listed", listings.len());
    StoreError::Damaged {
        place: show(place),
        why,
        intact: listings.iter().map(|listing| listing.events).sum(),
    }
}

/// All readable logs, newest first, and the damage of the table of logs, if any.
pub(super) fn listings(
    connection: &Connection,
    mut said: HashMap<LogId, Head>,
) -> Result<(Vec<Listing>, Option<String>)> {
    let mut found = Vec::new();
    let mut flaw = None;
    for order in ["ASC", "DESC"] {
        // The team is not loaded: how long it is stands before it.
        let sql = format!(
            "SELECT nr, id, title, created_ms, CASE octet_length(team) WHEN 4 THEN team <> 'null' ELSE 1 END, parent
             FROM logs NOT INDEXED ORDER BY nr {order}"
        );
        match rows(connection, &sql, &mut found) {
            Ok(()) => break,
            // What is behind the damage is reached from the other end.
            Err(error) => flaw = Some(tolerated(error)?),
        }
    }
    found.sort_by_key(|(nr, _)| *nr);
    found.dedup_by_key(|(nr, _)| *nr);
    let mut listings = Vec::with_capacity(found.len());
    for (log, listing) in found {
        let said = said.remove(&listing.id);
        listings.push(last(connection, log, listing, said.as_ref())?);
    }
    // One that was claimed cannot have been removed.
    listings.extend(said.into_values().filter(|head| head.lease_ms > 0).map(|head| lost(head.id)));
    batch::newest_first(&mut listings);
    Ok((listings, flaw))
}

fn lost(id: LogId) -> Listing {
    let (title, created) = (String::new(), Timestamp::default());
    Listing { id, title, created, has_team: false, parent: None, events: 0, last: None, is_damaged: true }
}

fn rows(connection: &Connection, sql: &str, found: &mut Vec<(i64, Listing)>) -> Result<()> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(1)?;
        // Another program may have put in what is no id.
        if let Ok(id) = LogId::new(&id) {
            let (title, created) = (row.get(2)?, Timestamp(row.get::<_, i64>(3)?.cast_unsigned()));
            let parent = row.get::<_, Option<String>>(5)?.and_then(|json| serde_json::from_str(&json).ok());
            let listing = Listing { title, created, has_team: row.get(4)?, parent, ..lost(id) };
            found.push((row.get(0)?, listing));
        }
    }
    Ok(())
}

/// Adds the number of events of a log, and the last one, as far as readable.
fn last(connection: &Connection, log: i64, mut listing: Listing, said: Option<&Head>) -> Result<Listing> {
    let end = match end(connection, log) {
        Ok(end) => end,
        Err(error) => return tolerated(error).map(|_| listing),
    };
    let End { events, last, link, head } = end;
    let is_end = head.is_some_and(|(fence, kept, kept_link)| {
        let said = said.filter(|said| said.fence >= fence && said.events >= events);
        (kept, Some(kept_link)) == (events, link)
            && said.is_none_or(|said| beside_head(said, events, link).is_none())
    });
    listing.events = events;
    listing.is_damaged = !is_end || (events > 0 && last.is_none());
    listing.last = last.filter(|_| is_end);
    Ok(listing)
}

/// The end of a log in the tables.
struct End {
    events: u64,
    /// `None` also when it is not what was written.
    last: Option<Event>,
    link: Option<Link>,
    /// The fence, the number of events and the link that were written with the last of them.
    head: Option<(u64, u64, Link)>,
}

fn end(connection: &Connection, log: i64) -> Result<End> {
    let first = "SELECT chain FROM logs WHERE nr = ?1";
    let link = |row: &Row<'_>| link_of(row, 0);
    let first = connection.prepare_cached(first)?.query_row([log], link).optional()?.flatten();
    let head = "SELECT fence, events, chain FROM heads WHERE log = ?1";
    let columns = |row: &Row<'_>| {
        let (fence, events): (i64, i64) = (row.get(0)?, row.get(1)?);
        Ok(link_of(row, 2)?.map(|link| (fence.cast_unsigned(), events.cast_unsigned(), link)))
    };
    let head = connection.prepare_cached(head)?.query_row([log], columns).optional()?.flatten();
    let last = "SELECT seq, json, chain, (SELECT chain FROM events before WHERE before.log = ?1 AND before.seq = events.seq - 1)
                FROM events WHERE log = ?1 ORDER BY seq DESC LIMIT 1";
    let columns = |row: &Row<'_>| {
        let seq = row.get::<_, i64>(0)?.cast_unsigned();
        let before = if seq == 0 { first } else { link_of(row, 3)? };
        let (json, link) = (row.get_ref(1)?.as_bytes()?, link_of(row, 2)?);
        let is_whole = before.map(|before| before.next(json)) == link;
        let last = parse_event(json, seq).ok().filter(|_| is_whole && link.is_some());
        Ok(End { events: seq.saturating_add(1), last, link, head })
    };
    let end = match connection.prepare_cached(last)?.query_row([log], columns) {
        Err(error) if is_damage(&error) => return Err(error),
        end => end.optional()?,
    };
    Ok(end.unwrap_or(End { events: 0, last: None, link: first, head }))
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
