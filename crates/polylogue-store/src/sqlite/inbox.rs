//! The inboxes of logs: written by any process, read by the one that runs the conversation.

use std::path::Path;

use polylogue_core::{InboxMessage, LogId, StoreError};
use rusqlite::{OptionalExtension as _, params};

use super::reader::Reader;
use super::rows::find;
use super::transaction::WriteTransaction;
use super::write_error::WriteError;
use crate::io_error::show;
use crate::message::parse_message;

impl WriteTransaction<'_> {
    /// Adds a message, unless there is one with its key. Returns its number.
    pub(super) fn post(&self, id: &LogId, message: &InboxMessage) -> Result<u64, WriteError> {
        let log = self.log(id)?;
        let sql = "SELECT nr FROM inbox WHERE log = ?1 AND key = ?2";
        if let Some(earlier) = self.get::<i64>(sql, params![log, &*message.key])? {
            return Ok(earlier.cast_unsigned());
        }
        let last = self.get::<Option<i64>>("SELECT max(nr) FROM inbox WHERE log = ?1", [log])?.flatten();
        let number = last.unwrap_or(0) + 1;
        let json = serde_json::to_string(message)
            .map_err(|error| StoreError::Io { place: id.to_string(), why: error.to_string() })?;
        let sql = "INSERT INTO inbox(log, nr, key, json) VALUES(?1, ?2, ?3, ?4)";
        self.execute(sql, params![log, number, &*message.key, json])?;
        if message.instruction.wakes() {
            self.wake(id, number)?;
        }
        Ok(number.cast_unsigned())
    }

    /// Events of a log take these inbox messages.
    pub(super) fn take_messages(
        &self,
        log: i64,
        numbers: impl Iterator<Item = u64>,
    ) -> Result<(), WriteError> {
        let sql = "UPDATE inbox SET is_taken = 1 WHERE log = ?1 AND nr = ?2";
        for number in numbers {
            self.execute(sql, params![log, number.cast_signed()])?;
        }
        Ok(())
    }
}

impl Reader {
    /// The messages after the number `after`.
    pub(super) fn inbox(
        &mut self,
        place: &Path,
        id: &LogId,
        after: u64,
    ) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        let rows = self.reading(place, |connection| {
            let Some(log) = find(connection, id)? else { return Ok(None) };
            let sql = "SELECT nr, json FROM inbox WHERE log = ?1 AND nr > ?2 ORDER BY nr";
            let mut select = connection.prepare_cached(sql)?;
            let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
            let rows = select.query_map(params![log, after.cast_signed()], row)?;
            rows.collect::<rusqlite::Result<Vec<_>>>().map(Some)
        })?;
        let rows = rows.ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        let inbox = format!("the inbox of `{id}` in {}", show(place));
        let message = |(number, json): (i64, String)| {
            let number = number.cast_unsigned();
            Ok((number, parse_message(json.as_bytes(), number, &inbox)?))
        };
        rows.into_iter().map(message).collect()
    }

    /// A log with a message that has this key.
    pub(super) fn posted_with(&mut self, place: &Path, key: &str) -> Result<Option<LogId>, StoreError> {
        let found = self.reading(place, |connection| {
            let sql = "SELECT id FROM inbox JOIN logs ON logs.nr = inbox.log WHERE inbox.key = ?1 LIMIT 1";
            connection.prepare_cached(sql)?.query_row([key], |row| row.get::<_, String>(0)).optional()
        })?;
        found.map(|id| LogId::new(&id)).transpose()
    }
}
