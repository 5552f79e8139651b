//! Keys that are reserved for requests.

use polylogue_core::{KEY_RESERVATION, StoreError};

use crate::database::{Access, Parameter};
use crate::error::changed;
use crate::logs::{Logs, as_json};

/// Reserves a key, unless another request has it, in the row of the key. Removes some keys whose time has passed, more than one for each that
/// comes, so that they do not pile up, and none that another process removes at the same time.
const RESERVE: &str = "WITH removed AS (
        DELETE FROM polylogue.reserved_keys WHERE (tenant, key) IN (
            SELECT tenant, key FROM polylogue.reserved_keys WHERE until < now() AND NOT (tenant = $1 AND key = $2)
            ORDER BY until LIMIT 8 FOR UPDATE SKIP LOCKED))
    INSERT INTO polylogue.reserved_keys AS reserved(tenant, key, request, until)
        SELECT $1, $2, $3, now() + $4 * interval '1 millisecond' WHERE polylogue.is_format($5)
    ON CONFLICT (tenant, key) DO UPDATE SET
        request = CASE WHEN reserved.until < now() THEN excluded.request ELSE reserved.request END,
        until = CASE WHEN reserved.until < now() THEN excluded.until ELSE reserved.until END
    RETURNING reserved.request";

impl Logs {
    /// Reserves a key for a request, unless another one has it. Returns the request that has it.
    pub(crate) async fn reserve_key(&self, key: &str, request: &str) -> Result<String, StoreError> {
        let (key, request) = (as_json(key), as_json(request));
        let time = i64::try_from(KEY_RESERVATION.as_millis()).unwrap_or(i64::MAX);
        let format = self.database.format();
        let parameters: [&dyn Parameter; 5] = [&self.tenant, &key, &request, &time, &format];
        // Executed again, it returns the same request.
        let rows = self.database.query(Access::Write, RESERVE, &parameters).await?;
        let holder = rows.first().map(|row| self.get::<String>(row, 0)).transpose()?;
        let holder = holder.and_then(|json| serde_json::from_str(&json).ok());
        holder.ok_or_else(|| changed(self.database.address(), "a reserved key has no request"))
    }
}
