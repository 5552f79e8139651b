//! Archives: the events of a log at rest, packed into one row. A claim unpacks them.
//!
//! Each is one transaction, so a log is whole in one of the two places at any moment. Its blobs are packed one by one where they are, and
//! stay so: they are read in either form.

use std::path::Path;

use polylogue_core::chain::Link;
use polylogue_core::{BlobId, LogId, StoreError};
use rusqlite::{Result, params};

use super::process_lock::Place;
use super::reader::Reader;
use super::rows::{UP, archived, collect, find, head_of};
use super::transaction::WriteTransaction;
use super::write_error::WriteError;
use crate::head::Head;
use crate::packed::{StoredRow, packed, packed_blob};

/// The packed events of a log, and where it ended when they were read.
#[derive(Debug)]
pub(super) struct Archive {
    events: u64,
    link: Link,
    bytes: Vec<u8>,
}

impl Reader {
    /// Packs the events of a log, all of which are intact.
    pub(super) fn archive(&mut self, place: &Place, id: &LogId) -> Result<Archive, StoreError> {
        let whole = self.read(place, id, 0..u64::MAX)?;
        let packed = self.reading(place, |connection| {
            let connection = &*connection.unchecked_transaction()?;
            let Some(log) = find(connection, id)? else { return Ok(None) };
            let Some(head) = head_of(connection, log)? else { return Ok(None) };
            let mut rows = Vec::with_capacity(whole.len());
            collect(connection, UP, log, 0..u64::MAX, |row| {
                let json = String::from_utf8_lossy(row.json).into_owned();
                rows.push(StoredRow { seq: row.seq, json, link: row.link });
            })?;
            Ok(Some(Archive { events: head.events, link: head.link, bytes: packed(&rows) }))
        })?;
        packed.ok_or_else(|| StoreError::NotFound { id: id.clone() })
    }

    /// The blobs of a log that are not packed.
    pub(super) fn blobs_to_pack(&mut self, place: &Path, id: &LogId) -> Result<Vec<BlobId>, StoreError> {
        let names: Vec<String> = self.reading(place, |connection| {
            let Some(log) = find(connection, id)? else { return Ok(Vec::new()) };
            let sql = "SELECT id FROM blobs WHERE log = ?1 AND NOT is_packed ORDER BY id";
            connection.prepare_cached(sql)?.query_map([log], |row| row.get(0))?.collect()
        })?;
        // What was changed in the table is found when it is read.
        Ok(names.into_iter().filter_map(|name| BlobId::try_from(name).ok()).collect())
    }

    /// A blob in less space; `None` if it takes as much, or is gone.
    pub(super) fn packed_blob(
        &mut self,
        place: &Path,
        id: &LogId,
        blob: &BlobId,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.stored_blob(place, id, blob)?.and_then(|bytes| packed_blob(&bytes)))
    }
}

impl WriteTransaction<'_> {
    /// Stores the packed events of a log, and removes the rows. Refused if a process has claimed it, or a worker must look at it.
    pub(super) fn archive(&self, id: &LogId, archive: &Archive) -> Result<(), WriteError> {
        let log = self.log(id)?;
        self.writer_of(id, log)?;
        if self.get::<i64>("SELECT 1 FROM queue WHERE log = ?1 AND due_ms IS NOT NULL", [log])?.is_some() {
            return Err(StoreError::Queued { id: id.clone() }.into());
        }
        let head = head_of(self.connection(), log)?;
        if head.is_none_or(|head| (head.events, head.link) != (archive.events, archive.link)) {
            let holder = "a process that was faster".into();
            return Err(StoreError::Busy { id: id.clone(), holder }.into());
        }
        self.state.ends().forget(id);
        let sql = "INSERT INTO archives(log, bytes) VALUES(?1, ?2) ON CONFLICT DO UPDATE SET bytes = excluded.bytes";
        self.execute(sql, params![log, archive.bytes])?;
        Ok(self.execute("DELETE FROM events WHERE log = ?1", [log])?)
    }

    /// Moves the events of an archive back to rows, if all are there. A damaged one stays, and reading it says so.
    pub(super) fn unpack(&self, log: i64) -> Result<()> {
        let Some(rows) = archived(self.connection(), log, 0..u64::MAX)? else { return Ok(()) };
        let head = head_of(self.connection(), log)?;
        let last = rows.last().and_then(|row| row.link);
        let is_whole =
            |head: &Head| head.events == rows.len() as u64 && last.is_none_or(|last| last == head.link);
        match head.as_ref().is_some_and(is_whole) {
            true => self.put_back(log, &rows),
            false => Ok(()),
        }
    }

    /// As [`unpack`](Self::unpack), for what can be read of an archive.
    pub(super) fn unpack_damaged(&self, log: i64) -> Result<()> {
        let rows = archived(self.connection(), log, 0..u64::MAX)?;
        rows.iter().try_for_each(|rows| self.put_back(log, rows))
    }

    fn put_back(&self, log: i64, rows: &[StoredRow]) -> Result<()> {
        let insert =
            "INSERT INTO events(log, seq, json, chain) VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
        let mut insert = self.connection().prepare_cached(insert)?;
        for StoredRow { seq, json, link } in rows {
            let link = link.map(|link| link.bytes().to_vec()).unwrap_or_default();
            insert.execute(params![log, seq.cast_signed(), json, link])?;
        }
        self.execute("DELETE FROM archives WHERE log = ?1", [log])
    }

    /// Stores a blob in less space, unless it is gone or packed.
    pub(super) fn pack_blob(&self, id: &LogId, blob: &BlobId, packed: &[u8]) -> Result<(), WriteError> {
        let log = self.log(id)?;
        let sql = "UPDATE blobs SET bytes = ?3, is_packed = 1 WHERE log = ?1 AND id = ?2 AND NOT is_packed";
        Ok(self.execute(sql, params![log, blob.as_str(), packed])?)
    }
}
