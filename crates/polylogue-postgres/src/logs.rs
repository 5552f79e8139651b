//! The logs of a tenant, and what this store holds of them.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::chain::Link;
use polylogue_core::{LEASE, LogId, StoreError, Summary};
use tokio::sync::OnceCell;
use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;

use crate::announcements::Announcements;
use crate::append_group::Appends;
use crate::database::Database;
use crate::inbox_notifications::InboxNotifications;
use crate::live_point::LivePoint;

/// The logs of a tenant, as this store has them.
pub(crate) struct Logs {
    pub(crate) database: Arc<Database>,
    pub(crate) tenant: String,
    /// The name of this store in claims.
    pub(crate) node: String,
    pub(crate) registered: OnceCell<()>,
    keys: AtomicI64,
    held: Mutex<HashMap<LogId, Held>>,
    pub(crate) appends: Arc<Appends>,
    /// Where others follow what this store runs, if they can.
    pub(crate) live: Option<LivePoint>,
    /// Announces new events.
    pub(crate) announcements: Arc<Announcements>,
    /// Hears of messages for the logs that it has claimed.
    pub(crate) notifications: Arc<InboxNotifications>,
}

/// The fence of a claim, and the end of its log.
type Held = (u64, Arc<tokio::sync::Mutex<LogEnd>>);

/// The end of a claimed log, as its writer knows it.
#[derive(Debug, Clone)]
pub(crate) struct LogEnd {
    pub(crate) nr: i64,
    pub(crate) fence: i64,
    pub(crate) events: u64,
    /// The link of the last event.
    pub(crate) link: Link,
    pub(crate) summary: Summary,
    pub(crate) has_team: bool,
    /// Whether an append may have been kept whose acknowledgement was lost.
    pub(crate) is_doubtful: bool,
    /// Whether it is noted that the database lacks events that were acknowledged.
    pub(crate) is_loss_noted: bool,
}

impl Logs {
    pub(crate) fn new(database: Database, tenant: &str) -> Self {
        let (database, node) = (Arc::new(database), fresh_node());
        Self {
            appends: Arc::new(Appends::new(Arc::clone(&database), node.clone(), lease_ms())),
            database,
            tenant: tenant.to_owned(),
            node,
            registered: OnceCell::new(),
            keys: AtomicI64::new(0),
            held: Mutex::default(),
            live: None,
            announcements: Arc::default(),
            notifications: Arc::default(),
        }
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, HashMap<LogId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a call that claims a log, by which its repetition is recognized.
    pub(crate) fn claim_key(&self) -> i64 {
        self.keys.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn place(&self) -> String {
        self.database.address().to_string()
    }

    pub(crate) fn place_of(&self, id: &LogId) -> String {
        format!("`{id}` in {}", self.place())
    }

    /// A column of a row.
    pub(crate) fn get<T: FromSqlOwned>(&self, row: &Row, column: usize) -> Result<T, StoreError> {
        self.database.get(row, column)
    }
}

/// A name for this store in claims, that no other one has.
pub(crate) fn fresh_node() -> String {
    let random = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.finish()
    };
    format!("{:016x}{:016x}", random(), random())
}

/// How long a lease lasts, in milliseconds.
pub(crate) fn lease_ms() -> i64 {
    i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX)
}

/// `text` as a JSON string: columns hold no NUL.
pub(crate) fn as_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
