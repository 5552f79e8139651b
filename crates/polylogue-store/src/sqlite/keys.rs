//! Keys that are reserved for requests.

use rusqlite::params;

use super::transaction::WriteTransaction;
use super::write_error::WriteError;
use crate::clock::reserved_until;

impl WriteTransaction<'_> {
    /// Reserves a key for a request, unless another one has it. Returns the request that has it.
    pub(super) fn reserve_key(&self, key: &str, request: &str) -> Result<String, WriteError> {
        let now = self.state.now();
        self.execute("DELETE FROM reserved_keys WHERE until_ms <= ?1", [now.cast_signed()])?;
        let earlier = self.get::<String>("SELECT request FROM reserved_keys WHERE key = ?1", [key])?;
        if let Some(earlier) = earlier {
            return Ok(earlier);
        }
        let sql = "INSERT INTO reserved_keys(key, request, until_ms) VALUES(?1, ?2, ?3)";
        self.execute(sql, params![key, request, reserved_until(now).cast_signed()])?;
        Ok(request.to_owned())
    }
}
