//! The queue from outside: workers, and what waits for them.

use std::collections::HashMap;
use std::time::Duration;

use polylogue_core::{
    Features, LogId, QueueOverview, QueueState, QueuedLog, SeenWorker, StoreError, WorkerInfo,
};
use polylogue_store::parts::this_process;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::database::{Access, Parameter};
use crate::logs::Logs;

/// A heartbeat of a worker.
const ANNOUNCE: &str = "INSERT INTO polylogue.nodes(id, process, version, offers, at_once, address) VALUES($1, $2, $3, $4, $5, $6)
    ON CONFLICT (id) DO UPDATE SET seen = now(), offers = excluded.offers, at_once = excluded.at_once, address = excluded.address";

/// How long after its last heartbeat a worker is shown.
const WORKERS: &str = "SELECT id, process, version, offers, at_once, address, extract(epoch FROM now() - seen)::float8
    FROM polylogue.nodes WHERE offers IS NOT NULL AND seen > now() - interval '1 minute' ORDER BY process, id";

const LOGS: &str = "SELECT id, state, (extract(epoch FROM overdue) * 1000)::bigint, process, needs, tries, takeovers, failure, holder
    FROM polylogue.cluster WHERE tenant = $1 ORDER BY overdue DESC NULLS LAST, id LIMIT 10000";

impl Logs {
    pub(crate) async fn announce(&self, worker: Option<&WorkerInfo>) -> Result<(), StoreError> {
        let Some(worker) = worker else {
            let sql =
                "UPDATE polylogue.nodes SET offers = NULL, at_once = NULL, address = NULL WHERE id = $1";
            return self.database.query(Access::Write, sql, &[(&self.node, Type::TEXT)]).await.map(drop);
        };
        let (process, version) = (this_process(), env!("CARGO_PKG_VERSION"));
        let (offers, at_once) =
            (worker.offers.to_string(), i64::try_from(worker.at_once).unwrap_or(i64::MAX));
        let parameters: [Parameter<'_>; 6] = [
            (&self.node, Type::TEXT),
            (&process, Type::TEXT),
            (&version, Type::TEXT),
            (&offers, Type::TEXT),
            (&at_once, Type::INT8),
            (&worker.address, Type::TEXT),
        ];
        self.database.query(Access::Write, ANNOUNCE, &parameters).await.map(drop)
    }

    pub(crate) async fn overview(&self) -> Result<QueueOverview, StoreError> {
        let workers = self.database.query(Access::Read, WORKERS, &[]).await?;
        let rows = self.database.query(Access::Read, LOGS, &[(&self.tenant, Type::TEXT)]).await?;
        let mut held: HashMap<String, u64> = HashMap::new();
        let mut logs = Vec::with_capacity(rows.len());
        for row in &rows {
            let log = self.queued(row)?;
            if let (QueueState::Held, Some(node)) = (log.state, self.get::<Option<String>>(row, 8)?) {
                *held.entry(node).or_default() += 1;
            }
            logs.push(log);
        }
        let workers: Result<_, StoreError> = workers.iter().map(|row| self.seen(row, &held)).collect();
        Ok(QueueOverview { workers: workers?, logs })
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

    fn seen(&self, row: &Row, held: &HashMap<String, u64>) -> Result<SeenWorker, StoreError> {
        let (id, seconds): (String, f64) = (self.get(row, 0)?, self.get(row, 6)?);
        let info = WorkerInfo {
            offers: Features::parse(&self.get::<String>(row, 3)?).unwrap_or_default(),
            at_once: u64::try_from(self.get::<i64>(row, 4)?).unwrap_or_default(),
            address: self.get(row, 5)?,
        };
        Ok(SeenWorker {
            process: self.get(row, 1)?,
            version: self.get(row, 2)?,
            info,
            seen: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
            held: held.get(&id).copied().unwrap_or_default(),
        })
    }
}
