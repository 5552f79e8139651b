//! The queue: which logs are due, in the column `due`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use polylogue_core::{
    Claim, Due, Features, Heartbeat, LEASE, LeaseNumber, LogId, MAX_TRIES, ParkedLog, StoreError, Timestamp,
};
use tokio_postgres::Row;
use tracing::warn;

use crate::claim::{freed, is_woken};
use crate::database::{Access, Parameter};
use crate::logs::{Logs, as_json, lease_ms};

/// Parks logs that were claimed too often, and claims the others. Also those that no worker continues, if a message came to them that their
/// process did not take before it died. Looks up each of the needs that there are in the index; rows that
/// another transaction has locked are skipped, so that no worker waits for another one. `$9` bounds the clock of the database: later leases
/// have not ended, whatever it says. Fails if another version has migrated the tables, as all statements with `is_format`.
const CLAIM_DUE: &str = concat!(
    "WITH RECURSIVE needed AS (
        (SELECT needs FROM polylogue.logs WHERE tenant = $1 AND due IS NOT NULL ORDER BY needs LIMIT 1)
        UNION ALL
        SELECT (SELECT needs FROM polylogue.logs
            WHERE tenant = $1 AND due IS NOT NULL AND logs.needs > needed.needs ORDER BY needs LIMIT 1)
        FROM needed WHERE needed.needs IS NOT NULL),
    ready AS (
        SELECT candidate.* FROM needed CROSS JOIN LATERAL (
            SELECT nr, due AS since, id AS name, tries >= $7 AS is_failing, holder IS NOT NULL AS is_lost FROM polylogue.logs
            WHERE tenant = $1 AND needs = needed.needs AND due <= now() AND id <> ALL($8::text[])
                AND (holder IS NULL OR (lease < now() AND lease_nr <= $9))
            ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED) AS candidate
        WHERE string_to_array(needed.needs, ' ') <@ $3::text[] AND polylogue.is_format($10)
        ORDER BY since, name LIMIT $2),
    lost AS (
        SELECT nr, lease AS since, id AS name, tries >= $7 AS is_failing, true AS is_lost FROM polylogue.logs
        WHERE tenant = $1 AND due IS NULL AND holder IS NOT NULL AND ",
    is_woken!(),
    " AND string_to_array(needs, ' ') <@ $3::text[] AND lease < now() AND lease_nr <= $9 AND id <> ALL($8::text[])
            AND polylogue.is_format($10)
        ORDER BY lease LIMIT $2 FOR UPDATE SKIP LOCKED),
    next AS (SELECT * FROM ready UNION ALL SELECT * FROM lost ORDER BY since, name LIMIT $2),
    parked AS (
        UPDATE polylogue.logs SET ",
    freed!(),
    ", due = NULL, is_parked = true
        FROM next WHERE logs.nr = next.nr AND is_failing)
    UPDATE polylogue.logs SET holder = $4, claim_key = $5, fence = nextval('polylogue.fences'), woken = false, unread = '{}',
        tries = greatest(tries, 0) + 1, is_parked = false, worker = $4, takeovers = takeovers + (holder IS NOT NULL)::int,
        lease = now() + $6 * interval '1 millisecond', lease_nr = nextval('polylogue.leases'),
        due = now() + $6 * interval '1 millisecond'
    FROM next WHERE logs.nr = next.nr AND NOT is_failing
    RETURNING logs.nr, fence, events, chain, summary, team IS NOT NULL, id, (extract(epoch FROM now()) - extract(epoch FROM since))::float8, is_lost,
        EXISTS(SELECT FROM polylogue.archives WHERE log = logs.nr) AS is_archived,
        EXISTS(SELECT FROM polylogue.nodes WHERE nodes.id = $4) AS is_known"
);

/// The time of a release: `$5` are milliseconds from now, `$6` those until a time that was named: neither is never.
macro_rules! release_time {
    () => {
        "(now() + coalesce($5::float8, $6::float8) * interval '1 millisecond')"
    };
}

/// The row of a claim.
macro_rules! of_claim {
    () => {
        " WHERE tenant = $1 AND id = $2 AND holder = $3 AND fence = $4"
    };
}

/// The release of a claim.
const RELEASE_UNTIL: &str = concat!(
    "UPDATE polylogue.logs SET ",
    freed!(),
    ", is_parked = false, tries = 0, failure = NULL, due = CASE WHEN ",
    is_woken!(),
    " THEN now() ELSE ",
    release_time!(),
    " END",
    of_claim!()
);

/// The release of a log that was claimed by its id: an idle one stays so, and a parked one, too, without an append. After one it is due only
/// at a time that was named, unless this claim was to be continued.
const RELEASE_AT_REST: &str = concat!(
    "UPDATE polylogue.logs SET ",
    freed!(),
    ", is_parked = is_parked AND tries > 0, tries = CASE WHEN is_parked AND tries > 0 THEN tries ELSE 0 END,
        failure = CASE WHEN is_parked AND tries > 0 THEN failure END, due = CASE WHEN ",
    is_woken!(),
    " THEN now() WHEN is_parked AND tries > 0 THEN NULL WHEN due IS NOT NULL THEN ",
    release_time!(),
    " WHEN is_parked THEN now() + $6::float8 * interval '1 millisecond' END",
    of_claim!()
);

/// Whether a log is due at no time after its release.
macro_rules! is_given_up {
    () => {
        concat!("(", release_time!(), " IS NULL AND NOT ", is_woken!(), ")")
    };
}

/// Parks a log that was tried often enough, and one that is due at no time: the tries of a parked one are at least 1.
const RELEASE_FAILED: &str = concat!(
    "UPDATE polylogue.logs SET ",
    freed!(),
    ", failure = $7, is_parked = (tries >= $8 OR ",
    is_given_up!(),
    "), tries = CASE WHEN ",
    is_given_up!(),
    " THEN greatest(tries, 1) ELSE greatest(tries, 0) END, due = CASE WHEN tries >= $8 THEN NULL WHEN ",
    is_woken!(),
    " THEN now() ELSE ",
    release_time!(),
    " END",
    of_claim!()
);

/// The release for other workers: the claim was no try.
const RELEASE_TO_OTHERS: &str = concat!(
    "UPDATE polylogue.logs SET ",
    freed!(),
    ", failure = $5, tries = CASE WHEN is_parked THEN abs(tries) ELSE greatest(tries - (worker IS NOT DISTINCT FROM holder)::int, 0) END,
        due = CASE WHEN ",
    is_woken!(),
    " OR due IS NOT NULL THEN now() END",
    of_claim!()
);

/// A log that is held is due when it is released, and one whose lease has expired also now: its holder may go on.
const SCHEDULE: &str = "UPDATE polylogue.logs SET is_parked = false, needs = coalesce($5, needs),
        tries = CASE WHEN is_parked THEN 0 ELSE tries END, failure = CASE WHEN is_parked THEN NULL ELSE failure END,
        woken = (woken OR (holder IS NOT NULL AND ($3::float8 IS NOT NULL OR $4::float8 IS NOT NULL))),
        due = CASE WHEN holder IS NOT NULL AND lease >= now() THEN due ELSE
            now() + coalesce($3::float8, $4::float8) * interval '1 millisecond' END
    WHERE tenant = $1 AND id = $2 AND polylogue.is_format($6) RETURNING nr";

const NEEDS: &str = "SELECT needs FROM polylogue.logs WHERE tenant = $1 AND id = $2";

/// Names the fences: a claim that was lost must not keep its successor alive. One by its id leaves an idle log idle. Locks the logs in the
/// order in which appends do.
const HEARTBEAT: &str = "WITH held AS (
        SELECT nr FROM polylogue.logs JOIN unnest($2::text[], $3::bigint[]) AS claim(log, token) ON id = log AND fence = token
        WHERE tenant = $1 AND holder = $4 ORDER BY nr FOR UPDATE OF logs)
    UPDATE polylogue.logs SET lease = now() + $5 * interval '1 millisecond', lease_nr = nextval('polylogue.leases'),
        due = CASE WHEN due IS NOT NULL THEN greatest(due, now() + $5 * interval '1 millisecond') END
    FROM held WHERE logs.nr = held.nr
    RETURNING fence, woken OR EXISTS(SELECT FROM polylogue.inbox WHERE inbox.log = logs.nr AND NOT taken)";

/// A sequence says what it gave last only once it has given something.
const LAST_LEASE: &str = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM polylogue.leases";

const PARKED: &str = "SELECT logs.id, coalesce(process, worker, ''), abs(tries), failure
    FROM polylogue.logs LEFT JOIN polylogue.nodes ON nodes.id = worker
    WHERE tenant = $1 AND is_parked ORDER BY logs.id";

impl Logs {
    pub(crate) async fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
        ended: LeaseNumber,
    ) -> Result<Vec<Claim>, StoreError> {
        self.register().await?;
        let room = i64::try_from(room).unwrap_or(i64::MAX);
        let (key, lease, tries) = (self.claim_key(), lease_ms(), MAX_TRIES.cast_signed());
        let offers: Vec<&str> = offers.words().collect();
        let except: Vec<&str> = except.iter().map(LogId::as_str).collect();
        let (ended, format) = (i64::try_from(ended.0).unwrap_or(i64::MAX), self.database.format());
        let parameters: [&dyn Parameter; 10] =
            [&self.tenant, &room, &offers, &self.node, &key, &lease, &tries, &except, &ended, &format];
        // Claims whose answer was lost expire.
        let rows = self.database.query(Access::Write, CLAIM_DUE, &parameters).await?;
        let mut claims = Vec::with_capacity(rows.len());
        for row in &rows {
            let id = LogId::new(&self.get::<String>(row, 6)?)?;
            let (waited, is_takeover): (f64, bool) = (self.get(row, 7)?, self.get(row, 8)?);
            let waited = Duration::try_from_secs_f64(waited).unwrap_or(Duration::MAX);
            match self.hold(&id, row).await {
                Ok(claim) => claims.push(claim.found_after(waited, is_takeover)),
                // Such as when it cannot be unpacked on a full disk. The others are claimed, and must not wait until that expires.
                Err(error) => self.release_unheld(&id, row, &error).await?,
            }
        }
        // Those that have waited longest first.
        claims.sort_by_key(|claim| (Reverse(claim.found.map(|found| found.waited)), claim.id.clone()));
        Ok(claims)
    }

    /// Releases a claim that was granted with others, of a log that cannot be held: it is tried again later. If that fails, the claim expires.
    async fn release_unheld(&self, id: &LogId, row: &Row, error: &StoreError) -> Result<(), StoreError> {
        warn!(log = %id, %error, "a log that is due cannot be continued now");
        let claim = Claim::new(id.clone(), self.get::<i64>(row, 1)?.cast_unsigned());
        if let Err(error) = self.release_failed(&claim, Due::After(LEASE), &error.to_string()).await {
            warn!(log = %id, %error, "the claim of a log is not released before its lease expires");
        }
        Ok(())
    }

    pub(crate) async fn last_lease(&self) -> Result<LeaseNumber, StoreError> {
        let rows = self.database.query(Access::Write, LAST_LEASE, &[]).await?;
        let last = rows.first().map_or(Ok(0), |row| self.get::<i64>(row, 0))?;
        Ok(LeaseNumber(last.cast_unsigned()))
    }

    pub(crate) async fn release_until(&self, claim: &Claim, due: Due) -> Result<(), StoreError> {
        self.release_by(RELEASE_UNTIL, claim, due).await
    }

    pub(crate) async fn release_at_rest(&self, claim: &Claim, due: Due) -> Result<(), StoreError> {
        self.release_by(RELEASE_AT_REST, claim, due).await
    }

    async fn release_by(&self, sql: &str, claim: &Claim, due: Due) -> Result<(), StoreError> {
        self.forget(claim);
        let (after, at) = columns(due);
        self.of_claim(sql, claim, &[&after, &at]).await.map(drop)
    }

    pub(crate) async fn release_failed(&self, claim: &Claim, due: Due, why: &str) -> Result<(), StoreError> {
        self.forget(claim);
        let ((after, at), why, tries) = (columns(due), as_json(why), MAX_TRIES.cast_signed());
        self.of_claim(RELEASE_FAILED, claim, &[&after, &at, &why, &tries]).await.map(drop)
    }

    pub(crate) async fn release_to_others(&self, claim: &Claim, why: &str) -> Result<(), StoreError> {
        self.forget(claim);
        self.of_claim(RELEASE_TO_OTHERS, claim, &[&as_json(why)]).await.map(drop)
    }

    pub(crate) async fn schedule(
        &self,
        id: &LogId,
        due: Due,
        needs: Option<&Features>,
    ) -> Result<(), StoreError> {
        let ((after, at), needs) = (columns(due), needs.map(ToString::to_string));
        let format = self.database.format();
        self.row_of_log(Access::Write, SCHEDULE, id, &[&after, &at, &needs, &format]).await.map(drop)
    }

    pub(crate) async fn set_needs(&self, id: &LogId, needs: &Features) -> Result<(), StoreError> {
        let sql = "UPDATE polylogue.logs SET needs = $3 WHERE tenant = $1 AND id = $2 AND polylogue.is_format($4) RETURNING nr";
        let (needs, format) = (needs.to_string(), self.database.format());
        self.row_of_log(Access::Write, sql, id, &[&needs, &format]).await.map(drop)
    }

    pub(crate) async fn needs(&self, id: &LogId) -> Result<Features, StoreError> {
        let row = self.row_of_log(Access::Read, NEEDS, id, &[]).await?;
        Ok(Features::parse(&self.get::<String>(&row, 0)?).unwrap_or_default())
    }

    pub(crate) async fn is_queued(&self, id: &LogId) -> Result<bool, StoreError> {
        let sql = "SELECT due IS NOT NULL FROM polylogue.logs WHERE tenant = $1 AND id = $2";
        self.get(&self.row_of_log(Access::Read, sql, id, &[]).await?, 0)
    }

    pub(crate) async fn continue_if_lost(&self, claim: &Claim) -> Result<(), StoreError> {
        let sql = "UPDATE polylogue.logs SET due = coalesce(due, lease)
            WHERE tenant = $1 AND id = $2 AND holder = $3 AND fence = $4";
        self.of_claim(sql, claim, &[]).await.map(drop)
    }

    pub(crate) async fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        let ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
        let fences: Vec<i64> = claims.iter().map(|claim| claim.fence.cast_signed()).collect();
        let lease = lease_ms();
        let parameters: [&dyn Parameter; 5] = [&self.tenant, &ids, &fences, &self.node, &lease];
        let rows = self.database.query(Access::Write, HEARTBEAT, &parameters).await?;
        let valid = rows.iter().map(|row| Ok((self.get::<i64>(row, 0)?.cast_unsigned(), self.get(row, 1)?)));
        let valid: BTreeMap<u64, bool> = valid.collect::<Result<_, StoreError>>()?;
        let held = |claim: &Claim| {
            let is_woken = *valid.get(&claim.fence)?;
            Some(Heartbeat { claim: claim.clone(), is_woken })
        };
        Ok(claims.iter().filter_map(held).collect())
    }

    pub(crate) async fn parked(&self) -> Result<Vec<ParkedLog>, StoreError> {
        let rows = self.database.query(Access::Read, PARKED, &[&self.tenant]).await?;
        let parked = rows.iter().map(|row| {
            let (tries, failure): (i32, Option<String>) = (self.get(row, 2)?, self.get(row, 3)?);
            let why = failure.map(|json| serde_json::from_str(&json).unwrap_or(json));
            let (id, holder) = (LogId::new(&self.get::<String>(row, 0)?)?, self.get(row, 1)?);
            Ok(ParkedLog { id, holder, tries: tries.cast_unsigned(), why })
        });
        parked.collect()
    }
}

/// Milliseconds from now, or until a time that was named; neither is never. Later than the database can say is never. How much is left until
/// that time is by the clock of this process, as in a run: if that of the database is ahead, a run would find that the time has not come,
/// and the log would be due again at its release.
fn columns(due: Due) -> (Option<f64>, Option<f64>) {
    match due {
        Due::Never => (None, None),
        Due::Now => (Some(0.0), None),
        Due::After(time) => (Some(time.as_secs_f64() * 1000.0).filter(|ms| *ms < LATEST / 2.0), None),
        Due::At(Timestamp(at)) => {
            let at = Some(milliseconds(at)).filter(|ms| *ms < LATEST);
            (None, at.map(|at| at - milliseconds(Timestamp::now().0)))
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds are exact for 285,000 years")]
const fn milliseconds(at: u64) -> f64 {
    at as f64
}

/// The year 9999.
const LATEST: f64 = 253_402_300_799_000.0;
