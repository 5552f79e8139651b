//! Logs that a process follows without running them: one query for all of them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use polylogue_core::{LogId, QueueOverview, StoreError};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;
use tracing::debug;

use crate::address::Address;
use crate::announcements::CHANNEL;
use crate::asked::ask;
use crate::connection::open_with;
use crate::database::{Access, Database, Parameter};
use crate::live_point::LivePoint;
use crate::monitoring::{self, DatabaseFigures, RateLimitFigures};
use crate::overview::counts;

/// The state of a log that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedLog {
    /// The id of the log.
    pub id: LogId,
    /// The number of its events.
    pub events: u64,
    /// The number of its last claim.
    pub fence: u64,
    /// Whether a process has it.
    pub is_held: bool,
    /// The address at which that process is followed, if it can be.
    pub live: Option<LivePoint>,
}

/// Follows logs of a tenant in a database: how many events they have, and which process runs them. It claims nothing.
///
/// Its statements run on the runtime of the caller.
#[derive(derive_more::Debug)]
#[debug("PostgresWatch {{ address: {:?}, .. }}", self.database.address())]
pub struct PostgresWatch {
    database: Database,
    tenant: String,
    announced: Arc<Notify>,
    /// Listens to announcements, from the first request for them on.
    listening: OnceLock<AbortHandle>,
}

const LOOK: &str = "SELECT logs.id, events, fence, (holder IS NOT NULL AND lease >= now()), live, live_secret
    FROM polylogue.logs LEFT JOIN polylogue.nodes ON nodes.id = holder AND lease >= now()
    WHERE tenant = $1 AND logs.id = ANY($2)";

/// In the order of their numbers, so that two processes do not wait for each other.
const ASK: &str = "INSERT INTO polylogue.watched(log, until)
    SELECT nr, now() + $3 * interval '1 millisecond' FROM polylogue.logs WHERE tenant = $1 AND id = ANY($2) ORDER BY nr
    ON CONFLICT (log) DO UPDATE SET until = greatest(watched.until, excluded.until)";

/// Those that no process has asked for for long.
const CLEAN: &str = "DELETE FROM polylogue.watched WHERE until < now() - interval '1 hour'";

/// Each tenant with a log that is due now or later, by the index.
const TENANTS: &str = "WITH RECURSIVE found AS (
        (SELECT tenant FROM polylogue.logs WHERE due IS NOT NULL ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT tenant FROM polylogue.logs WHERE due IS NOT NULL AND logs.tenant > found.tenant ORDER BY tenant LIMIT 1)
        FROM found WHERE found.tenant IS NOT NULL)
    SELECT tenant FROM found WHERE tenant IS NOT NULL";

/// The pauses before listening is tried again, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

impl PostgresWatch {
    /// Time for which announcements are sent after they were asked for.
    pub const ANNOUNCED: Duration = Duration::from_secs(60);

    /// Follows logs of `tenant` in the database at `address`, which is connected to on first use.
    pub fn new(address: Address, tenant: &str) -> Self {
        let (database, announced) = (Database::new(address).with_connections(2), Arc::default());
        Self { database, tenant: tenant.to_owned(), announced, listening: OnceLock::new() }
    }

    /// Returns the state of `ids`, without those that do not exist.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn look(&self, ids: &[LogId]) -> Result<Vec<WatchedLog>, StoreError> {
        let ids: Vec<&str> = ids.iter().map(LogId::as_str).collect();
        let parameters: [&dyn Parameter; 2] = [&self.tenant, &ids];
        let rows = self.database.query(Access::Read, LOOK, &parameters).await?;
        rows.iter().map(|row| self.watched(row)).collect()
    }

    fn watched(&self, row: &Row) -> Result<WatchedLog, StoreError> {
        Ok(WatchedLog {
            id: LogId::new(&self.get::<String>(row, 0)?)?,
            events: self.get::<i64>(row, 1)?.cast_unsigned(),
            fence: self.get::<i64>(row, 2)?.cast_unsigned(),
            is_held: self.get(row, 3)?,
            live: LivePoint::of_columns(self.get(row, 4)?, self.get(row, 5)?),
        })
    }

    /// Asks that new events of `ids` are announced for [`ANNOUNCED`](Self::ANNOUNCED): [`announced`](Self::announced) resolves then.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn ask(&self, ids: &[LogId]) -> Result<(), StoreError> {
        self.listening.get_or_init(|| {
            tokio::spawn(listen(self.database.address().clone(), Arc::clone(&self.announced))).abort_handle()
        });
        let ids: Vec<&str> = ids.iter().map(LogId::as_str).collect();
        let time = i64::try_from(Self::ANNOUNCED.as_millis()).unwrap_or(i64::MAX);
        let parameters: [&dyn Parameter; 3] = [&self.tenant, &ids, &time];
        self.database.query(Access::Write, ASK, &parameters).await?;
        self.database.query(Access::Write, CLEAN, &[]).await.map(drop)
    }

    /// Asks the servers that [hear it](crate::PostgresAsked) to continue a log, and returns whether there are any. A server that dies at the same time
    /// may be one of them.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn ask_server(&self, id: &LogId) -> Result<bool, StoreError> {
        ask(&self.database, &self.tenant, id).await
    }

    /// Resolves when events were announced since the last time. Announcements may be lost, and may be of logs of others.
    pub async fn announced(&self) {
        self.announced.notified().await;
    }

    /// Which workers there are, and how many logs of the tenant are in which state. No log is listed.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn counts(&self) -> Result<QueueOverview, StoreError> {
        counts(&self.database, &self.tenant).await
    }

    /// Returns the tenants of the database with a log that a worker must look at, now or later, or that one runs.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn queued_tenants(&self) -> Result<Vec<String>, StoreError> {
        let rows = self.database.query(Access::Read, TENANTS, &[]).await?;
        rows.iter().map(|row| self.get(row, 0)).collect()
    }

    /// The limits of model servers that processes share: first those for which a call waits longest.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn rate_limits(&self) -> Result<Vec<RateLimitFigures>, StoreError> {
        monitoring::rate_limits(&self.database).await
    }

    /// What all processes with the database share, of all tenants.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn figures(&self) -> Result<DatabaseFigures, StoreError> {
        monitoring::figures(&self.database).await
    }

    fn get<T: FromSqlOwned>(&self, row: &Row, column: usize) -> Result<T, StoreError> {
        self.database.get(row, column)
    }
}

impl Drop for PostgresWatch {
    fn drop(&mut self) {
        self.listening.get().iter().for_each(|task| task.abort());
    }
}

/// Notifies `announced` when events are announced. Where that is not possible, such as through a pooler, polling has to do.
async fn listen(address: Address, announced: Arc<Notify>) {
    let mut pause = PAUSES.0;
    loop {
        let notified = Arc::clone(&announced);
        if let Ok(client) = open_with(&address, Some(Arc::new(move |_: &str| notified.notify_one()))).await {
            match client.batch_execute(&format!("LISTEN {CHANNEL}")).await {
                Ok(()) => pause = PAUSES.0,
                Err(error) => debug!(%error, "no announcements"),
            }
            while !client.is_closed() {
                tokio::time::sleep(PAUSES.0).await;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}
