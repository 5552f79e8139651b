//! Large results of tool calls, next to the logs that refer to them.

use std::path::Path;
use std::sync::Arc;

use polylogue_core::{LogId, ResultId, StoreError};
use rusqlite::{OptionalExtension as _, params};

use super::reader::Reader;
use super::rows::find;
use super::transaction::WriteTransaction;
use super::write_error::WriteError;
use crate::sealed::checked_result;

impl WriteTransaction<'_> {
    /// Adds a result, unless it is there.
    pub(super) fn store_result(&self, id: &LogId, result: &ResultId, text: &str) -> Result<(), WriteError> {
        let log = self.log(id)?;
        let sql = "INSERT INTO results(log, id, text) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING";
        self.execute(sql, params![log, result.as_str(), text])?;
        Ok(())
    }
}

impl Reader {
    pub(super) fn stored_result(
        &mut self,
        place: &Path,
        id: &LogId,
        result: &ResultId,
    ) -> Result<Option<Arc<str>>, StoreError> {
        let text = self.reading(place, |connection| {
            let Some(log) = find(connection, id)? else { return Ok(None) };
            let sql = "SELECT text FROM results WHERE log = ?1 AND id = ?2";
            let mut select = connection.prepare_cached(sql)?;
            select
                .query_row(params![log, result.as_str()], |row| row.get::<_, String>(0))
                .optional()
                .map(Some)
        })?;
        let text = text.ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        text.map(|text| checked_result(place, result, text)).transpose()
    }
}
