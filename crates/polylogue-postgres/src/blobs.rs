//! Blobs, next to the logs that refer to them.

use std::sync::Arc;

use polylogue_core::{BlobId, LogId, StoreError};
use tokio_postgres::types::Type;

use crate::database::{Access, Parameter};
use crate::logs::Logs;

const STORE: &str = "WITH log AS (SELECT nr FROM polylogue.logs WHERE tenant = $1 AND id = $2),
    put AS (INSERT INTO polylogue.blobs(log, id, bytes) SELECT nr, $3, $4 FROM log ON CONFLICT DO NOTHING)
    SELECT nr FROM log";

const READ: &str = "SELECT blobs.bytes FROM polylogue.logs
    LEFT JOIN polylogue.blobs ON log = nr AND blobs.id = $3 WHERE tenant = $1 AND logs.id = $2";

impl Logs {
    /// Adds a blob, unless it is there.
    pub(crate) async fn store_blob(&self, id: &LogId, blob: &BlobId, bytes: &[u8]) -> Result<(), StoreError> {
        let parameters: [Parameter<'_>; 4] = [
            (&self.tenant, Type::TEXT),
            (&id.as_str(), Type::TEXT),
            (&blob.as_str(), Type::TEXT),
            (&bytes, Type::BYTEA),
        ];
        let rows = self.database.query(Access::Write, STORE, &parameters).await?;
        if rows.is_empty() { Err(StoreError::NotFound { id: id.clone() }) } else { Ok(()) }
    }

    pub(crate) async fn stored_blob(
        &self,
        id: &LogId,
        blob: &BlobId,
    ) -> Result<Option<Arc<[u8]>>, StoreError> {
        let parameters: [Parameter<'_>; 3] =
            [(&self.tenant, Type::TEXT), (&id.as_str(), Type::TEXT), (&blob.as_str(), Type::TEXT)];
        let rows = self.database.query(Access::Read, READ, &parameters).await?;
        let row = rows.first().ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        let Some(bytes) = self.get::<Option<Vec<u8>>>(row, 0)? else { return Ok(None) };
        if BlobId::of(&bytes) == *blob {
            return Ok(Some(bytes.into()));
        }
        let place = format!("the blob {blob} of {}", self.place_of(id));
        Err(StoreError::Io { place, why: "it is not what was stored".into() })
    }
}
