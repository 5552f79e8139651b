//! Blobs, next to the logs that refer to them.

use std::sync::Arc;

use polylogue_core::{BlobId, LogId, StoreError};
use polylogue_store::parts::{packed_blob, unpacked_blob};

use crate::database::Access;
use crate::logs::Logs;

/// Locks the row of the log, so that it is not removed before the blob is there.
const STORE: &str = "WITH log AS (SELECT nr FROM polylogue.logs WHERE tenant = $1 AND id = $2 FOR KEY SHARE),
    put AS (INSERT INTO polylogue.blobs(log, id, bytes) SELECT nr, $3, $4 FROM log ON CONFLICT DO NOTHING)
    SELECT nr FROM log";

const READ: &str = "SELECT blobs.bytes, coalesce(is_packed, false) FROM polylogue.logs
    LEFT JOIN polylogue.blobs ON log = nr AND blobs.id = $3 WHERE tenant = $1 AND logs.id = $2";

const NOT_PACKED: &str = "SELECT blobs.id FROM polylogue.logs JOIN polylogue.blobs ON log = nr
    WHERE tenant = $1 AND logs.id = $2 AND NOT is_packed ORDER BY blobs.id";

const PACK: &str = "UPDATE polylogue.blobs SET bytes = $4, is_packed = true FROM polylogue.logs
    WHERE log = nr AND tenant = $1 AND logs.id = $2 AND blobs.id = $3 AND NOT is_packed";

impl Logs {
    /// Adds a blob, unless it is there.
    pub(crate) async fn store_blob(&self, id: &LogId, blob: &BlobId, bytes: &[u8]) -> Result<(), StoreError> {
        self.row_of_log(Access::Write, STORE, id, &[&blob.as_str(), &bytes]).await.map(drop)
    }

    pub(crate) async fn stored_blob(
        &self,
        id: &LogId,
        blob: &BlobId,
    ) -> Result<Option<Arc<[u8]>>, StoreError> {
        let row = self.row_of_log(Access::Read, READ, id, &[&blob.as_str()]).await?;
        let Some(mut bytes) = self.get::<Option<Vec<u8>>>(&row, 0)? else { return Ok(None) };
        if self.get(&row, 1)? {
            bytes = unpacked_blob(&bytes);
        }
        if BlobId::of(&bytes) == *blob {
            return Ok(Some(bytes.into()));
        }
        let place = format!("the blob {blob} of {}", self.place_of(id));
        Err(StoreError::Io { place, why: "it is not what was stored".into() })
    }

    /// Packs the blobs of a log that get smaller by it, one by one.
    pub(crate) async fn pack_blobs(&self, id: &LogId) -> Result<(), StoreError> {
        for row in self.of_log(Access::Read, NOT_PACKED, id, &[]).await? {
            // What was changed in the table is found when it is read.
            let Ok(blob) = BlobId::try_from(self.get::<String>(&row, 0)?) else { continue };
            let Some(bytes) = self.stored_blob(id, &blob).await? else { continue };
            let Some(packed) = packed_blob(&bytes) else { continue };
            self.of_log(Access::Write, PACK, id, &[&blob.as_str(), &packed]).await?;
        }
        Ok(())
    }
}
