//! Claims: granted, renewed and released by the clock of the database. Each lease has a number, too, by which workers tell how old it is.

use polylogue_core::chain::Link;
use polylogue_core::{Claim, LogId, Meta, StoreError, Summary};
use polylogue_store::parts::{first_link, sealed, this_process, unsealed, with_lease};
use tokio_postgres::Row;

use crate::database::{Access, Parameter, Retry};
use crate::error::{Failure, GRANT, unsuitable};
use crate::listing::state_of;
use crate::live_point::LivePoint;
use crate::logs::{LogEnd, Logs, as_json, lease_ms};
use crate::schema::{RIGHTS, TABLES};

/// What a release sets besides when the log is due.
macro_rules! freed {
    () => {
        "holder = NULL, lease = NULL, claim_key = NULL, woken = false, unread = '{}'"
    };
}
/// What a plain release sets of a log that is parked: it stays so, after the tries that it had.
macro_rules! still_parked {
    () => {
        "tries = abs(tries)"
    };
}
/// Whether a log must be looked at when it is released: it was scheduled while it was held, or a message came that no event takes.
macro_rules! is_woken {
    () => {
        "(woken OR unread <> '{}')"
    };
}
/// Whether a lease is over also if the clock of the database has just jumped forward. Workers need not wait as long: they know how old
/// leases are.
macro_rules! is_long_over {
    () => {
        "lease < now() - interval '1 minute'"
    };
}
pub(crate) use {freed, is_long_over, is_woken, still_parked};

/// What a claim needs to know of its log.
const CLAIMED: &str = "RETURNING nr, fence, events, chain, summary, team IS NOT NULL, EXISTS(SELECT FROM polylogue.archives WHERE log = nr) AS is_archived,
    EXISTS(SELECT FROM polylogue.nodes WHERE nodes.id = holder) AS is_known";

/// How often a claim is tried that was refused, though the log is free since.
const TRIES: usize = 5;

impl Logs {
    /// Introduces this store to others, once.
    pub(crate) async fn register(&self) -> Result<(), StoreError> {
        self.registered.get_or_try_init(|| self.introduce()).await.map(drop)
    }

    /// Introduces this store to others. Forgets those that hold nothing, and were introduced or worked for the last time a month ago: one that
    /// lives introduces itself again when it claims something. Forgets inbox messages of a week ago that events of their logs take.
    async fn introduce(&self) -> Result<(), StoreError> {
        let sql = "WITH gone AS (DELETE FROM polylogue.nodes WHERE seen < now() - interval '30 days'
                    AND NOT EXISTS (SELECT FROM polylogue.logs WHERE holder = nodes.id)),
                forgotten AS (DELETE FROM polylogue.inbox WHERE taken AND at < now() - interval '7 days')
                INSERT INTO polylogue.nodes(id, process, version, live, live_secret) VALUES($1, $2, $3, $4, $5)
                ON CONFLICT (id) DO UPDATE SET seen = now(), live = excluded.live, live_secret = excluded.live_secret";
        let (process, version) = (this_process(), env!("CARGO_PKG_VERSION"));
        let (live, secret) = self.live.as_ref().map(LivePoint::columns).unzip();
        let node = &self.node;
        self.database.query(Access::Write, sql, &[node, &process, &version, &live, &secret]).await.map(drop)
    }

    /// Writes that this store is alive, if its user has all rights that conversations need.
    pub(crate) async fn check_writable(&self) -> Result<(), StoreError> {
        let rows = self.database.query(Access::Write, RIGHTS, &[&TABLES.to_vec()]).await?;
        if let Some(row) = rows.first() {
            let (right, name): (String, String) = (self.get(row, 0)?, self.get(row, 1)?);
            let why = format!("permission denied: its user lacks {right} on `polylogue.{name}`");
            return Err(unsuitable(self.database.address(), &why, GRANT));
        }
        self.register().await?;
        let sql = "UPDATE polylogue.nodes SET seen = now() WHERE id = $1 AND polylogue.is_format($2)";
        self.database.query(Access::Write, sql, &[&self.node, &self.database.format()]).await.map(drop)
    }

    pub(crate) async fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        self.register().await?;
        // Times beyond the year 292 million come back as they were, though they sort as the oldest.
        let (created, team) = (meta.created.0.cast_signed(), meta.team.to_string());
        let parent = meta.parent.as_ref().and_then(|parent| serde_json::to_string(parent).ok());
        let parent_id = meta.parent.as_ref().map(|parent| parent.id.as_str());
        let origin = first_link(id.as_str(), &meta.title, created, &team, parent.as_deref());
        let summary = Summary::default();
        let (state, summary) = (state_of(&summary), sealed(&summary, origin));
        let title = as_json(&meta.title);
        let team = Some(team).filter(|_| !meta.team.is_null());
        let digest = team.as_ref().map(|team| Link::first(&[team.as_bytes()]).bytes().to_vec());
        let sql = format!(
            "WITH team AS (INSERT INTO polylogue.teams(digest, json) SELECT $7, $8 WHERE $7::bytea IS NOT NULL ON CONFLICT DO NOTHING)
            INSERT INTO polylogue.logs(tenant, id, holder, claim_key, lease, title, created_ms, team, parent, parent_id, origin, chain, summary, state,
                fence, lease_nr)
            SELECT $1, $2, $3, $4, now() + $5 * interval '1 millisecond', $6, $13, $7, $9, $10, $11, $11, $12, $14,
                nextval('polylogue.fences'), nextval('polylogue.leases')
            WHERE polylogue.is_format($15)
            ON CONFLICT (tenant, id) DO UPDATE SET claim_key = excluded.claim_key
                WHERE logs.holder = excluded.holder AND logs.claim_key = excluded.claim_key
            {CLAIMED}"
        );
        let key = self.claim_key();
        let more: [&dyn Parameter; 13] = [
            &self.node,
            &key,
            &lease_ms(),
            &title,
            &digest,
            &team,
            &parent,
            &parent_id,
            &origin.bytes(),
            &summary,
            &created,
            &state,
            &self.database.format(),
        ];
        match self.of_log(Access::Write, &sql, id, &more).await?.first() {
            Some(row) => self.hold(id, row).await,
            None => Err(StoreError::Exists { id: id.clone() }),
        }
    }

    /// Claims a log that is free, or whose claim has expired for long.
    pub(crate) async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        self.claim_if(is_long_over!(), id).await
    }

    /// Claims a log that is free, or whose claim has expired.
    pub(crate) async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        self.claim_if("lease < now()", id).await
    }

    async fn claim_if(&self, is_over: &str, id: &LogId) -> Result<Claim, StoreError> {
        self.register().await?;
        // The same call, repeated because its connection was lost, gets the claim that it has.
        let sql = format!(
            "UPDATE polylogue.logs SET holder = $3, claim_key = $4,
                lease = now() + $5 * interval '1 millisecond', lease_nr = nextval('polylogue.leases'),
                fence = CASE WHEN holder = $3 AND claim_key = $4 THEN fence ELSE nextval('polylogue.fences') END
            WHERE tenant = $1 AND id = $2 AND (holder IS NULL OR {is_over} OR (holder = $3 AND claim_key = $4))
                AND polylogue.is_format($6)
            {CLAIMED}"
        );
        let (key, lease, format) = (self.claim_key(), lease_ms(), self.database.format());
        for _ in 0..TRIES {
            let rows = self.of_log(Access::Write, &sql, id, &[&self.node, &key, &lease, &format]).await?;
            if let Some(row) = rows.first() {
                return self.hold(id, row).await;
            }
            if let Some(holder) = self.holder(id).await? {
                return Err(StoreError::Busy { id: id.clone(), holder });
            }
        }
        Err(StoreError::Busy { id: id.clone(), holder: "other processes".into() })
    }

    /// The holder of a claim that has not expired for long, with the rest of its lease.
    pub(crate) async fn holder(&self, id: &LogId) -> Result<Option<String>, StoreError> {
        let sql = concat!(
            "SELECT CASE WHEN holder IS NOT NULL AND NOT ",
            is_long_over!(),
            " THEN coalesce(process, '') END, ceil(extract(epoch FROM lease - now()))::bigint
            FROM polylogue.logs LEFT JOIN polylogue.nodes ON nodes.id = holder WHERE tenant = $1 AND logs.id = $2"
        );
        let row = &self.row_of_log(Access::Read, sql, id, &[]).await?;
        let (process, left): (Option<String>, Option<i64>) = (self.get(row, 0)?, self.get(row, 1)?);
        let left = left.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
        Ok(process.map(|process| with_lease(&process, left)))
    }

    /// Remembers a claim that was granted, with the end of its log.
    pub(crate) async fn hold(&self, id: &LogId, row: &Row) -> Result<Claim, StoreError> {
        let (nr, fence, events): (i64, i64, i64) = (self.get(row, 0)?, self.get(row, 1)?, self.get(row, 2)?);
        let (chain, summary): (Vec<u8>, String) = (self.get(row, 3)?, self.get(row, 4)?);
        let claim = Claim::new(id.clone(), fence.cast_unsigned());
        if row.try_get("is_archived").unwrap_or(false) {
            self.unpack(&claim).await?;
        }
        if !row.try_get("is_known").unwrap_or(true) {
            self.introduce().await?;
        }
        let (link, events) = (Link::from_bytes(&chain), events.cast_unsigned());
        let summary = match link.and_then(|link| unsealed(summary.into_bytes(), link)) {
            Some(summary) => summary,
            // A log that is damaged is claimed all the same; reading it says so.
            None => Summary::of(&self.read_intact(id).await?.events, self.get(row, 5)?),
        };
        let (is_doubtful, link) = (link.is_none(), link.unwrap_or_else(|| Link::first(&[])));
        let has_team = self.get(row, 5)?;
        let end = LogEnd { nr, fence, events, link, summary, has_team, is_doubtful, is_loss_noted: false };
        self.notifications.add(id);
        self.held().insert(id.clone(), (claim.fence, std::sync::Arc::new(tokio::sync::Mutex::new(end))));
        Ok(claim)
    }

    pub(crate) async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        // One that workers continue if this claim is lost is due after it, so that those who ask for due logs need not look at it.
        let sql = "UPDATE polylogue.logs SET lease = now() + $5 * interval '1 millisecond', lease_nr = nextval('polylogue.leases'),
                due = CASE WHEN due IS NOT NULL THEN greatest(due, now() + $5 * interval '1 millisecond') END
            WHERE tenant = $1 AND id = $2 AND holder = $3 AND fence = $4 RETURNING nr";
        let rows = self.of_claim(sql, claim, &[&lease_ms()]).await?;
        if !rows.is_empty() {
            return Ok(());
        }
        let sql = "SELECT 1 FROM polylogue.logs WHERE tenant = $1 AND id = $2";
        match self.of_log(Access::Read, sql, &claim.id, &[]).await?.is_empty() {
            true => Err(StoreError::Replaced { place: format!("`{}` in {}", claim.id, self.place()) }),
            false => Err(StoreError::Fenced { id: claim.id.clone() }),
        }
    }

    /// Forgets the end of a log that is released.
    pub(crate) fn forget(&self, claim: &Claim) {
        let mut held = self.held();
        if held.get(&claim.id).is_some_and(|(fence, _)| *fence == claim.fence) {
            held.remove(&claim.id);
            self.notifications.remove(&claim.id);
        }
    }

    /// Releases a claim of this store; others are left alone.
    pub(crate) async fn release(&self, claim: &Claim) -> Result<(), StoreError> {
        self.forget(claim);
        let sql = concat!(
            "UPDATE polylogue.logs SET ",
            freed!(),
            ", ",
            still_parked!(),
            ", due = CASE WHEN ",
            is_woken!(),
            " THEN now() ELSE due END WHERE tenant = $1 AND id = $2 AND holder = $3 AND fence = $4"
        );
        self.of_claim(sql, claim, &[]).await.map(drop)
    }

    /// Releases all claims.
    pub(crate) async fn release_all(&self) -> Result<(), StoreError> {
        let ids: Vec<String> = self.held().keys().map(ToString::to_string).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let sql = concat!(
            "UPDATE polylogue.logs SET ",
            freed!(),
            ", ",
            still_parked!(),
            ", due = CASE WHEN ",
            is_woken!(),
            " THEN now() ELSE due END WHERE tenant = $1 AND id = ANY($2) AND holder = $3"
        );
        self.database.query(Access::Write, sql, &[&self.tenant, &ids, &self.node]).await.map(drop)
    }

    /// Executes a statement with the parts of a claim, and `more`, as its parameters.
    pub(crate) async fn of_claim(
        &self,
        sql: &str,
        claim: &Claim,
        more: &[&dyn Parameter],
    ) -> Result<Vec<Row>, StoreError> {
        let fence = claim.fence.cast_signed();
        let more = [&[&self.node as &dyn Parameter, &fence][..], more].concat();
        self.of_log(Access::Write, sql, &claim.id, &more).await
    }

    /// Executes a statement with the tenant and the id of a log, and `more`, as its parameters.
    pub(crate) async fn of_log(
        &self,
        access: Access,
        sql: &str,
        id: &LogId,
        more: &[&dyn Parameter],
    ) -> Result<Vec<Row>, StoreError> {
        let id = id.as_str();
        let parameters = [&[&self.tenant as &dyn Parameter, &id][..], more].concat();
        self.database.query(access, sql, &parameters).await
    }

    /// Executes such a statement, and returns its first row, which is missing only if there is no such log.
    pub(crate) async fn row_of_log(
        &self,
        access: Access,
        sql: &str,
        id: &LogId,
        more: &[&dyn Parameter],
    ) -> Result<Row, StoreError> {
        let rows = self.of_log(access, sql, id, more).await?;
        rows.into_iter().next().ok_or_else(|| StoreError::NotFound { id: id.clone() })
    }

    /// Removes a log that no process has claimed, and its team if no other log has it.
    pub(crate) async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        let (mut retry, mut was_lost) = (Retry::new(&self.database), false);
        let parameters: [&dyn Parameter; 2] = [&self.tenant, &id.as_str()];
        let sql = "SELECT of_team FROM polylogue.remove($1, $2)";
        let rows = loop {
            match self.database.query_once(Access::Write, sql, &parameters).await {
                Ok(rows) => break rows,
                Err(failure) => {
                    was_lost |= matches!(failure, Failure::Lost(_));
                    retry.after(failure).await?;
                }
            }
        };
        let Some(row) = rows.first() else {
            return match self.holder(id).await {
                // The try whose connection was lost has removed it.
                Err(StoreError::NotFound { .. }) if was_lost => Ok(()),
                Ok(holder) => {
                    let holder = holder.unwrap_or_else(|| "another process".into());
                    Err(StoreError::Busy { id: id.clone(), holder })
                }
                Err(error) => Err(error),
            };
        };
        if let Some(team) = self.get::<Option<Vec<u8>>>(row, 0)? {
            let sql = "DELETE FROM polylogue.teams WHERE digest = $1
                AND NOT EXISTS (SELECT FROM polylogue.logs WHERE team = $1)";
            // One that another process begins to use at this moment stays.
            let _ = self.database.query_once(Access::Write, sql, &[&team]).await;
        }
        Ok(())
    }
}
