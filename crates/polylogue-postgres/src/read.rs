//! Reading logs, with the links of their events checked.

use std::ops::Range;

use polylogue_core::chain::{Chain, Link};
use polylogue_core::{Event, LogId, Meta, RecoveredEvents, StoreError, Timestamp};
use polylogue_store::parts::{EventCollector, StoredRow, first_link, unpacked};
use tokio_postgres::Row;

use crate::database::Access;
use crate::logs::Logs;

/// The head of a log and its events between two of them, as of one moment.
const EVENTS: &str = "SELECT l.events, l.chain, l.origin, e.seq, e.json, e.chain, a.bytes
    FROM polylogue.logs l LEFT JOIN polylogue.archives a ON a.log = l.nr LEFT JOIN polylogue.events e ON e.log = l.nr AND e.seq BETWEEN $3 AND $4
    WHERE l.tenant = $1 AND l.id = $2 ORDER BY e.seq";

/// What the head of a log says of it.
pub(crate) struct Head {
    pub(crate) events: u64,
    pub(crate) link: Option<Link>,
    origin: Option<Link>,
}

impl Logs {
    pub(crate) async fn rows(
        &self,
        id: &LogId,
        range: Range<u64>,
    ) -> Result<(Head, Vec<StoredRow>), StoreError> {
        let from = i64::try_from(range.start).unwrap_or(i64::MAX);
        let last = i64::try_from(range.end).map_or(i64::MAX, |end| end.saturating_sub(1));
        let rows = self.of_log(Access::Read, EVENTS, id, &[&from, &last]).await?;
        let first = rows.first().ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        let link = |row: &Row, column| -> Result<Option<Link>, StoreError> {
            Ok(self.get::<Option<Vec<u8>>>(row, column)?.and_then(|bytes| Link::from_bytes(&bytes)))
        };
        let events = self.get::<i64>(first, 0)?.cast_unsigned();
        let head = Head { events, link: link(first, 1)?, origin: link(first, 2)? };
        let packed: Option<Vec<u8>> = self.get(first, 6)?;
        let mut stored = packed.map(|bytes| unpacked(&bytes, range)).unwrap_or_default();
        stored.reserve(rows.len());
        for row in &rows {
            // A log without such events is one row without an event.
            let Some(seq) = self.get::<Option<i64>>(row, 3)? else { continue };
            stored.push(StoredRow { seq: seq.cast_unsigned(), json: self.get(row, 4)?, link: link(row, 5)? });
        }
        Ok((head, stored))
    }

    pub(crate) async fn read(&self, id: &LogId, range: Range<u64>) -> Result<Vec<Event>, StoreError> {
        // The event before tells what the first one follows.
        let start = range.start.saturating_sub(1);
        let with_before = start..range.end.max(range.start);
        let (head, rows) = self.rows(id, with_before.clone()).await?;
        if let Some(mut events) = intact(&head, &rows, with_before) {
            if range.start > start && !events.is_empty() {
                events.remove(0);
            }
            return Ok(events);
        }
        match self.read_intact(id).await?.damage {
            Some(damage) => Err(damage),
            None => {
                Err(StoreError::Io { place: self.place_of(id), why: "it changed while it was read".into() })
            }
        }
    }

    pub(crate) async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        let (head, rows) = self.rows(id, 0..u64::MAX).await?;
        let mut collector = EventCollector::default();
        if let (_, Some(flaw)) = self.stored_meta(id).await? {
            collector.note(flaw);
        }
        let (mut chain, mut last) = (Chain::from(head.origin), head.origin);
        for row in &rows {
            let event = row.as_event_row().event(&mut chain, collector.next_seq());
            collector.take(event);
            last = row.link;
        }
        if collector.is_whole() {
            let events = collector.next_seq();
            match head.events {
                acknowledged if acknowledged > events => collector.note(format!(
                    "it has {events} events, and {acknowledged} were acknowledged: the last are lost"
                )),
                acknowledged if acknowledged < events => {
                    collector.note(format!("it has {events} events, of which {acknowledged} were appended"));
                }
                _ if head.link.is_none() || head.link != last => {
                    collector.note("its end is not what was written".into());
                }
                _ => {}
            }
        }
        Ok(collector.finish(self.place_of(id)))
    }

    pub(crate) async fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        match self.stored_meta(id).await? {
            (meta, None) => Ok(meta),
            (_, Some(why)) => {
                let damage = self.read_intact(id).await?.damage;
                Err(damage.unwrap_or(StoreError::Damaged { place: self.place_of(id), why, intact: 0 }))
            }
        }
    }

    /// The metadata of a log, and their damage, if there is any.
    pub(crate) async fn stored_meta(&self, id: &LogId) -> Result<(Meta, Option<String>), StoreError> {
        let sql = "SELECT title, created_ms, parent, origin, logs.team IS NOT NULL, json
            FROM polylogue.logs LEFT JOIN polylogue.teams ON digest = team WHERE tenant = $1 AND id = $2";
        let row = &self.row_of_log(Access::Read, sql, id, &[]).await?;
        let (title, created): (String, i64) = (self.get(row, 0)?, self.get(row, 1)?);
        let (parent, origin): (Option<String>, Vec<u8>) = (self.get(row, 2)?, self.get(row, 3)?);
        let (has_team, team): (bool, Option<String>) = (self.get(row, 4)?, self.get(row, 5)?);
        let changed = || Some("its title, time, team or name is not what was written".to_owned());
        let Ok(title) = serde_json::from_str::<String>(&title) else {
            return Ok((Meta::default(), changed()));
        };
        let team = team.unwrap_or_else(|| if has_team { String::new() } else { "null".into() });
        let link = first_link(id.as_str(), &title, created, &team, parent.as_deref());
        let flaw = if link.bytes() == origin { None } else { changed() };
        let parent = parent.and_then(|json| serde_json::from_str(&json).ok());
        let created = Timestamp(created.cast_unsigned());
        Ok(match serde_json::from_str(&team) {
            Ok(team) => (Meta { title, created, team, parent }, flaw),
            Err(error) => {
                let meta = Meta { title, created, parent, ..Meta::default() };
                (meta, Some(format!("its team is unreadable: {error}")))
            }
        })
    }
}

/// The events of rows, if they are those of the numbers in `range` that the log has, and what was written.
fn intact(head: &Head, rows: &[StoredRow], range: Range<u64>) -> Option<Vec<Event>> {
    let start = range.start;
    let origin = head.origin.filter(|_| start == 0);
    if start == 0 && origin.is_none() {
        return None;
    }
    let (mut chain, mut last) = (Chain::from(origin), origin);
    let mut events = Vec::with_capacity(rows.len());
    for (next, row) in (start..).zip(rows) {
        events.push(row.as_event_row().event(&mut chain, next).ok().filter(|event| event.seq == next)?);
        last = row.link;
    }
    let end = start.saturating_add(rows.len() as u64);
    let is_whole = match rows.is_empty() {
        true if start > 0 => head.events <= start,
        // All that was asked for, and more follows.
        _ if end == range.end && end < head.events => true,
        _ => end == head.events && last == head.link,
    };
    is_whole.then_some(events)
}
