//! Blobs, next to the logs that refer to them.

use std::path::Path;
use std::sync::Arc;

use polylogue_core::{BlobId, LogId, StoreError};
use rusqlite::{OptionalExtension as _, Row, params};

use super::reader::Reader;
use super::rows::find;
use super::transaction::WriteTransaction;
use super::write_error::WriteError;
use crate::packed::unpacked_blob;
use crate::sealed::checked;

impl WriteTransaction<'_> {
    /// Adds a blob, unless it is there.
    pub(super) fn store_blob(&self, id: &LogId, blob: &BlobId, bytes: &[u8]) -> Result<(), WriteError> {
        let log = self.log(id)?;
        let sql = "INSERT INTO blobs(log, id, bytes) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING";
        self.execute(sql, params![log, blob.as_str(), bytes])?;
        Ok(())
    }
}

impl Reader {
    pub(super) fn stored_blob(
        &mut self,
        place: &Path,
        id: &LogId,
        blob: &BlobId,
    ) -> Result<Option<Arc<[u8]>>, StoreError> {
        let bytes = self.reading(place, |connection| {
            let Some(log) = find(connection, id)? else { return Ok(None) };
            let sql = "SELECT bytes, is_packed FROM blobs WHERE log = ?1 AND id = ?2";
            let mut select = connection.prepare_cached(sql)?;
            let plain = |row: &Row<'_>| {
                let bytes = row.get_ref(0)?.as_blob()?;
                Ok(if row.get(1)? { unpacked_blob(bytes) } else { bytes.to_vec() })
            };
            select.query_row(params![log, blob.as_str()], plain).optional().map(Some)
        })?;
        let bytes = bytes.ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        bytes.map(|bytes| checked(place, blob, bytes)).transpose()
    }
}
