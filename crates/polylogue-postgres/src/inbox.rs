//! The inboxes of logs: written by anyone, read by the process that runs the conversation.

use polylogue_core::{InboxMessage, LogId, StoreError};
use polylogue_store::parts::parse_message;

use crate::database::{Access, Parameter, Retry};
use crate::error::Failure;
use crate::inbox_notifications::notify;
use crate::logs::{Logs, as_json};

/// Adds a message, and has the log looked at if it wakes it ($5), in one commit. Its number comes from the locked row, so that none commits behind a higher
/// one. Nothing happens if there is one with its key.
const POST: &str = "WITH log AS (
        UPDATE polylogue.logs SET posted = posted + 1,
            unread = CASE WHEN $5 AND holder IS NOT NULL THEN unread || (posted + 1) ELSE unread END,
            due = CASE WHEN NOT $5 OR (holder IS NOT NULL AND lease >= now()) THEN due ELSE now() END,
            is_parked = is_parked AND NOT $5, tries = CASE WHEN is_parked AND $5 THEN 0 ELSE tries END,
            failure = CASE WHEN is_parked AND $5 THEN NULL ELSE failure END
        WHERE tenant = $1 AND id = $2 AND polylogue.is_format($6)
            AND NOT EXISTS (SELECT FROM polylogue.inbox WHERE inbox.log = logs.nr AND inbox.key = $3)
        RETURNING nr, posted, holder)
    INSERT INTO polylogue.inbox(log, nr, key, json) SELECT nr, posted, $3, $4 FROM log RETURNING nr, (SELECT holder FROM log)";

impl Logs {
    pub(crate) async fn post(&self, id: &LogId, message: &InboxMessage) -> Result<u64, StoreError> {
        let key = as_json(&message.key);
        let json = serde_json::to_string(message)
            .map_err(|error| StoreError::Io { place: self.place_of(id), why: error.to_string() })?;
        let (wakes, format) = (message.instruction.wakes(), self.database.format());
        let parameters: [&dyn Parameter; 6] = [&self.tenant, &id.as_str(), &key, &json, &wakes, &format];
        let mut retry = Retry::new(&self.database);
        loop {
            match self.database.query_once(Access::Write, POST, &parameters).await {
                Ok(rows) => match rows.first() {
                    Some(row) => {
                        if let Some(node) = self.get::<Option<String>>(row, 1)? {
                            notify(&self.database, &node, id.as_str()).await;
                        }
                        return Ok(self.get::<i64>(row, 0)?.cast_unsigned());
                    }
                    None => return self.number_of(id, &key).await,
                },
                // One with its key came at the same time.
                Err(Failure::Duplicate) => return self.number_of(id, &key).await,
                Err(failure) => retry.after(failure).await?,
            }
        }
    }

    /// The number of the message with this key.
    async fn number_of(&self, id: &LogId, key: &str) -> Result<u64, StoreError> {
        let sql =
            "SELECT inbox.nr FROM polylogue.logs LEFT JOIN polylogue.inbox ON log = logs.nr AND key = $3
            WHERE tenant = $1 AND id = $2";
        let row = self.row_of_log(Access::Read, sql, id, &[&key]).await?;
        let number = self.get::<Option<i64>>(&row, 0)?;
        number.map(i64::cast_unsigned).ok_or_else(|| StoreError::Io {
            place: self.place_of(id),
            why: "it was removed while a message was posted to it".into(),
        })
    }

    pub(crate) async fn inbox(&self, id: &LogId, after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let sql = "SELECT inbox.nr, json FROM polylogue.logs LEFT JOIN polylogue.inbox ON log = logs.nr AND inbox.nr > $3
            WHERE tenant = $1 AND id = $2 ORDER BY inbox.nr";
        let rows = self.of_log(Access::Read, sql, id, &[&after]).await?;
        if rows.is_empty() {
            return Err(StoreError::NotFound { id: id.clone() });
        }
        let (inbox, mut messages) = (format!("the inbox of {}", self.place_of(id)), Vec::new());
        for row in &rows {
            let Some(number) = self.get::<Option<i64>>(row, 0)? else { continue };
            let (number, json) = (number.cast_unsigned(), self.get::<String>(row, 1)?);
            messages.push((number, parse_message(json.as_bytes(), number, &inbox)?));
        }
        Ok(messages)
    }

    /// A log with a message that has this key.
    pub(crate) async fn posted_with(&self, key: &str) -> Result<Option<LogId>, StoreError> {
        let sql = "SELECT id FROM polylogue.inbox JOIN polylogue.logs ON logs.nr = inbox.log
            WHERE inbox.key = $2 AND tenant = $1 LIMIT 1";
        let rows = self.database.query(Access::Read, sql, &[&self.tenant, &as_json(key)]).await?;
        let id = rows.first().map(|row| self.get::<String>(row, 0)).transpose()?;
        id.map(|id| LogId::new(&id)).transpose()
    }
}
