//! The ends of claimed logs in memory, so that an append need not read them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use polylogue_core::chain::Link;
use polylogue_core::{Claim, LogId, Summary};
use rusqlite::Connection;

/// The end of a claimed log, and what else an append needs to know of the log.
#[derive(Debug)]
pub(super) struct LogEnd {
    /// The log's number.
    pub(super) log: i64,
    pub(super) has_team: bool,
    pub(super) events: u64,
    pub(super) link: Link,
    pub(super) summary: Summary,
}

/// The ends of logs as this connection left them. They are known as long as no other connection changes the database.
#[derive(Debug, Default)]
pub(super) struct LogEnds {
    ends: RefCell<HashMap<LogId, (u64, LogEnd)>>,
    version: Cell<i64>,
}

impl LogEnds {
    /// Forgets all of them if another connection has changed the database. To be called in every transaction.
    pub(super) fn refresh(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut select = connection.prepare_cached("PRAGMA data_version")?;
        let version = select.query_row([], |row| row.get(0))?;
        if self.version.replace(version) != version {
            self.clear();
        }
        Ok(())
    }

    /// Takes the end of a log, if it is known and was appended to under this claim.
    pub(super) fn take(&self, claim: &Claim) -> Option<LogEnd> {
        let (fence, end) = self.ends.borrow_mut().remove(&claim.id)?;
        (fence == claim.fence).then_some(end)
    }

    /// Keeps the end of a log after an append.
    pub(super) fn keep(&self, claim: &Claim, end: LogEnd) {
        self.ends.borrow_mut().insert(claim.id.clone(), (claim.fence, end));
    }

    /// Forgets the end of a log.
    pub(super) fn forget(&self, id: &LogId) {
        self.ends.borrow_mut().remove(id);
    }

    /// Forgets all ends.
    pub(super) fn clear(&self) {
        self.ends.borrow_mut().clear();
    }
}
