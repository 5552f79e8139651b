//! Large results of tool calls, next to the logs that refer to them.

use std::sync::Arc;

use polylogue_core::{LogId, ResultId, StoreError};
use tokio_postgres::types::Type;

use crate::database::{Access, Parameter};
use crate::logs::Logs;

const STORE: &str = "WITH log AS (SELECT nr FROM polylogue.logs WHERE tenant = $1 AND id = $2),
    put AS (INSERT INTO polylogue.results(log, id, text) SELECT nr, $3, $4 FROM log ON CONFLICT DO NOTHING)
    SELECT nr FROM log";

const READ: &str = "SELECT results.text FROM polylogue.logs
    LEFT JOIN polylogue.results ON log = nr AND results.id = $3 WHERE tenant = $1 AND logs.id = $2";

impl Logs {
    /// Adds a result, unless it is there.
    pub(crate) async fn store_result(
        &self,
        id: &LogId,
        result: &ResultId,
        text: &str,
    ) -> Result<(), StoreError> {
        // As bytes: a text cannot hold NUL.
        let bytes = text.as_bytes();
        let parameters: [Parameter<'_>; 4] = [
            (&self.tenant, Type::TEXT),
            (&id.as_str(), Type::TEXT),
            (&result.as_str(), Type::TEXT),
            (&bytes, Type::BYTEA),
        ];
        let rows = self.database.query(Access::Write, STORE, &parameters).await?;
        if rows.is_empty() { Err(StoreError::NotFound { id: id.clone() }) } else { Ok(()) }
    }

    pub(crate) async fn stored_result(
        &self,
        id: &LogId,
        result: &ResultId,
    ) -> Result<Option<Arc<str>>, StoreError> {
        let parameters: [Parameter<'_>; 3] =
            [(&self.tenant, Type::TEXT), (&id.as_str(), Type::TEXT), (&result.as_str(), Type::TEXT)];
        let rows = self.database.query(Access::Read, READ, &parameters).await?;
        let row = rows.first().ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        let Some(bytes) = self.get::<Option<Vec<u8>>>(row, 0)? else { return Ok(None) };
        match String::from_utf8(bytes) {
            Ok(text) if ResultId::of(&text) == *result => Ok(Some(text.into())),
            _ => Err(StoreError::Io {
                place: format!("the stored result {result} of {}", self.place_of(id)),
                why: "it is not the text that was stored".into(),
            }),
        }
    }
}
