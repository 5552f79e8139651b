//! The queue from outside: workers, and what waits for them.

use std::time::Duration;

use polylogue_core::{
    Features, LogId, QueueFigures, QueueOverview, QueueState, QueuedLog, SeenWorker, StoreError, WorkerInfo,
};
use polylogue_store::parts::this_process;
use tokio_postgres::Row;

use crate::database::{Access, Database, Parameter};
use crate::logs::Logs;

/// A heartbeat of a worker.
const ANNOUNCE: &str = "INSERT INTO polylogue.nodes(id, process, version, offers, at_once, address, of_tenant)
    SELECT $1, $2, $3, $4, $5, $6, $7 WHERE polylogue.is_format($8)
    ON CONFLICT (id) DO UPDATE SET seen = now(), offers = excluded.offers, at_once = excluded.at_once, address = excluded.address,
        of_tenant = excluded.of_tenant";

/// How long after its last heartbeat a worker is shown.
const WORKERS: &str = "SELECT process, version, offers, at_once, address, extract(epoch FROM now() - seen)::float8,
        (SELECT count(*) FROM polylogue.logs WHERE holder = nodes.id AND lease >= now())
    FROM polylogue.nodes WHERE offers IS NOT NULL AND of_tenant = $1 AND seen > now() - interval '1 minute' ORDER BY process, id";

const LOGS: &str = "SELECT id, state, (extract(epoch FROM overdue) * 1000)::bigint, process, needs, tries, takeovers, failure
    FROM polylogue.cluster WHERE tenant = $1 ORDER BY array_position($3, state), overdue DESC NULLS LAST, id LIMIT $2";

const FIGURES: &str =
    "SELECT state, count(*), coalesce(max(extract(epoch FROM overdue)) FILTER (WHERE state IN ('ready', 'lost')), 0)::float8,
        coalesce(sum(takeovers), 0)::bigint, count(failure)
    FROM polylogue.cluster WHERE tenant = $1 GROUP BY state";

/// Those that wait for a worker, by what they need. One that no worker continues is due at no time.
const WAITING: &str = "SELECT needs, count(*) FROM polylogue.cluster
    WHERE tenant = $1 AND state IN ('ready', 'lost') AND overdue IS NOT NULL GROUP BY needs ORDER BY count(*) DESC, needs LIMIT 100";

/// Of all logs, also of those that are idle since.
const LOST: &str =
    "SELECT coalesce(sum(lost_events), 0)::bigint FROM polylogue.logs WHERE tenant = $1 AND lost_events > 0";

/// How many logs of a tenant are in which state.
async fn figures(database: &Database, tenant: &str) -> Result<QueueFigures, StoreError> {
    let rows = database.query(Access::Read, FIGURES, &[&tenant]).await?;
    let lost = database.query(Access::Read, LOST, &[&tenant]).await?;
    let lost = lost.first().map_or(Ok(0), |row| database.get::<i64>(row, 0))?;
    let mut figures = QueueFigures { lost_events: lost.cast_unsigned(), ..QueueFigures::default() };
    for row in &rows {
        let (count, failing): (i64, i64) = (database.get(row, 1)?, database.get(row, 4)?);
        if let Some(state) = QueueState::of(&database.get::<String>(row, 0)?) {
            figures.logs.push((state, count.cast_unsigned()));
            figures.failing.push((state, failing.cast_unsigned()));
        }
        figures.overdue_seconds = figures.overdue_seconds.max(database.get(row, 2)?);
        figures.takeovers += database.get::<i64>(row, 3)?.cast_unsigned();
    }
    for row in &database.query(Access::Read, WAITING, &[&tenant]).await? {
        let needs = Features::parse(&database.get::<String>(row, 0)?).unwrap_or_default();
        figures.waiting.push((needs, database.get::<i64>(row, 1)?.cast_unsigned()));
    }
    Ok(figures)
}

/// The workers of a tenant that were seen lately.
async fn workers(database: &Database, tenant: &str) -> Result<Vec<SeenWorker>, StoreError> {
    let rows = database.query(Access::Read, WORKERS, &[&tenant]).await?;
    rows.iter().map(|row| seen(database, row)).collect()
}

fn seen(database: &Database, row: &Row) -> Result<SeenWorker, StoreError> {
    let (seconds, held): (f64, i64) = (database.get(row, 5)?, database.get(row, 6)?);
    let info = WorkerInfo {
        offers: Features::parse(&database.get::<String>(row, 2)?).unwrap_or_default(),
        at_once: u64::try_from(database.get::<i64>(row, 3)?).unwrap_or_default(),
        address: database.get(row, 4)?,
    };
    Ok(SeenWorker {
        process: database.get(row, 0)?,
        version: database.get(row, 1)?,
        info,
        seen: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        held: held.cast_unsigned(),
    })
}

/// Workers and counts of the logs of a tenant. No log is listed.
pub(crate) async fn counts(database: &Database, tenant: &str) -> Result<QueueOverview, StoreError> {
    let (workers, figures) = (workers(database, tenant).await?, figures(database, tenant).await?);
    Ok(QueueOverview { workers, logs: Vec::new(), figures })
}

impl Logs {
    pub(crate) async fn announce(&self, worker: Option<&WorkerInfo>) -> Result<(), StoreError> {
        let Some(worker) = worker else {
            let sql =
                "UPDATE polylogue.nodes SET offers = NULL, at_once = NULL, address = NULL WHERE id = $1";
            return self.database.query(Access::Write, sql, &[&self.node]).await.map(drop);
        };
        let (process, version) = (this_process(), env!("CARGO_PKG_VERSION"));
        let (offers, at_once) =
            (worker.offers.to_string(), i64::try_from(worker.at_once).unwrap_or(i64::MAX));
        let format = self.database.format();
        let parameters: [&dyn Parameter; 8] =
            [&self.node, &process, &version, &offers, &at_once, &worker.address, &self.tenant, &format];
        self.database.query(Access::Write, ANNOUNCE, &parameters).await.map(drop)
    }

    pub(crate) async fn overview(&self, most: usize) -> Result<QueueOverview, StoreError> {
        let (most, order) =
            (i64::try_from(most).unwrap_or(i64::MAX), QueueState::ALL.map(QueueState::as_str));
        let order = order.as_slice();
        let parameters: [&dyn Parameter; 3] = [&self.tenant, &most, &order];
        let rows = self.database.query(Access::Read, LOGS, &parameters).await?;
        let logs: Result<_, StoreError> = rows.iter().map(|row| self.queued(row)).collect();
        Ok(QueueOverview { logs: logs?, ..counts(&self.database, &self.tenant).await? })
    }

    fn queued(&self, row: &Row) -> Result<QueuedLog, StoreError> {
        let state = QueueState::of(&self.get::<String>(row, 1)?).unwrap_or(QueueState::Held);
        let is_of_process = !matches!(state, QueueState::Timed | QueueState::Ready);
        let failure: Option<String> = self.get(row, 7)?;
        Ok(QueuedLog {
            id: LogId::new(&self.get::<String>(row, 0)?)?,
            state,
            overdue_ms: self.get(row, 2)?,
            holder: self.get::<Option<String>>(row, 3)?.filter(|_| is_of_process),
            // Others than these words are in no log that was handed over.
            needs: Features::parse(&self.get::<String>(row, 4)?).unwrap_or_default(),
            tries: u64::try_from(self.get::<i32>(row, 5)?).unwrap_or_default(),
            takeovers: u64::try_from(self.get::<i32>(row, 6)?).unwrap_or_default(),
            why: failure.map(|json| serde_json::from_str(&json).unwrap_or(json)),
        })
    }
}
