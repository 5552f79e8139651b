//! The queue from outside: workers, and what waits for them.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use polylogue_core::{
    Features, LogId, ParkedLog, QueueOverview, QueueState, QueuedLog, SeenWorker, StoreError, WorkerInfo,
};
use rusqlite::{OptionalExtension as _, Result, Row, params};

use super::due::{Claimed, time_column};
use super::reader::Reader;
use super::transaction::WriteTransaction;
use super::write_error::WriteError;
use crate::claims;

/// How long after its last heartbeat a worker is shown, in milliseconds.
const SHOWN: i64 = 60_000;

const LOGS: &str =
    "SELECT id, nr, due_ms, coalesce(needs, ''), coalesce(abs(tries), 0), coalesce(takeovers, 0),
        coalesce(is_parked, 0), coalesce(holder, worker), why, writer
    FROM logs LEFT JOIN queue ON queue.log = nr LEFT JOIN claims ON claims.log = nr
    WHERE due_ms IS NOT NULL OR is_parked OR writer IS NOT NULL ORDER BY due_ms IS NULL, due_ms, id";

impl WriteTransaction<'_> {
    pub(super) fn announce(&self, worker: Option<&WorkerInfo>) -> Result<(), WriteError> {
        let (writer, now) = (self.token()?, time_column(self.state.now()));
        let Some(worker) = worker else {
            return Ok(self.execute("DELETE FROM workers WHERE writer = ?1", [writer])?);
        };
        let at_once = i64::try_from(worker.at_once).unwrap_or(i64::MAX);
        self.execute("DELETE FROM workers WHERE seen_ms < ?1", [now.saturating_sub(SHOWN)])?;
        self.execute(
            "INSERT OR REPLACE INTO workers(writer, process, version, offers, at_once, address, seen_ms)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                writer,
                claims::this_process(),
                env!("CARGO_PKG_VERSION"),
                worker.offers.to_string(),
                at_once,
                worker.address,
                now
            ],
        )?;
        Ok(self.free_logs_of_the_dead()?)
    }

    pub(super) fn overview(&self, most: usize) -> Result<QueueOverview, WriteError> {
        let (mut heads, mut held, mut failure) = (HashMap::new(), HashMap::<String, u64>::new(), None);
        let mut select = self.connection().prepare_cached(LOGS)?;
        let mut rows = select.query([])?;
        let mut next = || -> Result<Option<QueuedLog>, WriteError> {
            let Some(row) = rows.next()? else { return Ok(None) };
            let id = LogId::new(&row.get::<_, String>(0)?)?;
            let claimed = self.claimed_now(&id, row.get(1)?, &mut heads)?;
            let log = self.queued_log(id, claimed, row)?;
            if let (QueueState::Held, Some(writer)) = (log.state, row.get::<_, Option<String>>(9)?) {
                *held.entry(writer).or_default() += 1;
            }
            Ok(Some(log))
        };
        let logs = std::iter::from_fn(|| {
            next().unwrap_or_else(|error| {
                failure = Some(error);
                None
            })
        });
        let overview = QueueOverview::of_logs(logs, most);
        match failure {
            Some(error) => Err(error),
            None => Ok(QueueOverview { workers: self.workers(&held)?, ..overview }),
        }
    }

    fn queued_log(&self, id: LogId, claimed: Claimed, row: &Row<'_>) -> Result<QueuedLog> {
        let (now, due): (i64, Option<i64>) = (time_column(self.state.now()), row.get(2)?);
        let state = match (claimed, due) {
            (Claimed::Held, _) => QueueState::Held,
            (Claimed::Lost, _) => QueueState::Lost,
            _ if row.get(6)? => QueueState::Parked,
            (Claimed::No, Some(due)) if due <= now => QueueState::Ready,
            (Claimed::No, _) => QueueState::Timed,
        };
        let is_of_process = !matches!(state, QueueState::Timed | QueueState::Ready);
        Ok(QueuedLog {
            id,
            state,
            overdue_ms: due.map(|due| now.saturating_sub(due)),
            holder: row.get::<_, Option<String>>(7)?.filter(|_| is_of_process),
            needs: Features::parse(&row.get::<_, String>(3)?).unwrap_or_default(),
            tries: row.get::<_, u32>(4)?.into(),
            takeovers: row.get::<_, u32>(5)?.into(),
            why: row.get(8)?,
        })
    }

    fn workers(&self, held: &HashMap<String, u64>) -> Result<Vec<SeenWorker>> {
        let now = time_column(self.state.now());
        let sql = "SELECT writer, process, version, offers, at_once, address, seen_ms FROM workers
            WHERE seen_ms > ?1 ORDER BY process, writer";
        let mut select = self.connection().prepare_cached(sql)?;
        let workers = select.query_map([now.saturating_sub(SHOWN)], |row| {
            let seen = now.saturating_sub(row.get(6)?);
            let info = WorkerInfo {
                offers: Features::parse(&row.get::<_, String>(3)?).unwrap_or_default(),
                at_once: row.get::<_, i64>(4)?.cast_unsigned(),
                address: row.get(5)?,
            };
            Ok(SeenWorker {
                process: row.get(1)?,
                version: row.get(2)?,
                info,
                seen: Duration::from_millis(u64::try_from(seen).unwrap_or_default()),
                held: held.get(&row.get::<_, String>(0)?).copied().unwrap_or_default(),
            })
        })?;
        workers.collect()
    }
}

impl Reader {
    pub(super) fn needs(&mut self, place: &Path, id: &LogId) -> Result<Features, StoreError> {
        let sql = "SELECT coalesce(needs, '') FROM logs LEFT JOIN queue ON log = nr WHERE id = ?1";
        let text: Option<String> = self.reading(place, |connection| {
            connection.prepare_cached(sql)?.query_row([id.as_str()], |row| row.get(0)).optional()
        })?;
        let text = text.ok_or_else(|| StoreError::NotFound { id: id.clone() })?;
        Ok(Features::parse(&text).unwrap_or_default())
    }

    pub(super) fn is_queued(&mut self, place: &Path, id: &LogId) -> Result<bool, StoreError> {
        let sql = "SELECT due_ms IS NOT NULL FROM logs LEFT JOIN queue ON log = nr WHERE id = ?1";
        let is_queued: Option<bool> = self.reading(place, |connection| {
            connection.prepare_cached(sql)?.query_row([id.as_str()], |row| row.get(0)).optional()
        })?;
        is_queued.ok_or_else(|| StoreError::NotFound { id: id.clone() })
    }

    pub(super) fn parked(&mut self, place: &Path) -> Result<Vec<ParkedLog>, StoreError> {
        let sql =
            "SELECT id, worker, abs(tries), why FROM queue JOIN logs ON nr = log WHERE is_parked ORDER BY id";
        type Parked = (String, String, u32, Option<String>);
        let rows: Vec<Parked> = self.reading(place, |connection| {
            let mut select = connection.prepare_cached(sql)?;
            let rows =
                select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
            rows.collect()
        })?;
        let parked =
            |(id, holder, tries, why): Parked| Ok(ParkedLog { id: LogId::new(&id)?, holder, tries, why });
        rows.into_iter().map(parked).collect()
    }
}
