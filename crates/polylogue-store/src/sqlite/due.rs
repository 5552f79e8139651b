//! When workers must look at logs, and what becomes of their claims.

use std::collections::HashMap;
use std::time::Duration;

use polylogue_core::{Claim, Features, Heartbeat, LogId, MAX_TRIES, StoreError};
use rusqlite::{Connection, Result, params};

use super::process_lock;
use super::transaction::WriteTransaction;
use super::write_error::WriteError;
use crate::claims;
use crate::head::{Head, lease_from};

/// A log that is due.
struct DueLog {
    due: i64,
    id: LogId,
    log: i64,
    /// Whether a process has claimed it, and lost it.
    is_lost: bool,
}

/// The heads of other writers, which are read once in a transaction.
type OtherHeads = HashMap<String, Vec<Head>>;

/// How a log is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claimed {
    /// It is not.
    No,
    /// By a process that has died, or has not renewed its lease.
    Lost,
    /// By a process whose lease lasts.
    Held,
}

/// The logs that are due, and those that no worker continues, if a message came to them that their process has not taken. These are due once that
/// process has died. In this order, because only the first can be many.
const DUE: [&str; 2] = [
    "SELECT due_ms, id, log, tries FROM queue JOIN logs ON nr = log
     WHERE needs = ?1 AND due_ms <= ?2 ORDER BY due_ms, id",
    "SELECT ?2, id, log, tries FROM queue JOIN logs ON nr = log
     WHERE needs = ?1 AND due_ms IS NULL
         AND log IN (SELECT log FROM inbox WHERE wakes AND NOT is_taken UNION SELECT log FROM queue WHERE is_woken)
     ORDER BY id",
];

/// What logs that may be due need: each distinct value is found by the index, whatever the number of logs.
pub(super) fn needed(connection: &Connection, now: u64) -> Result<Vec<String>> {
    let sql = "WITH RECURSIVE needed(words) AS (
            SELECT min(needs) FROM queue WHERE due_ms IS NOT NULL
            UNION ALL
            SELECT (SELECT min(needs) FROM queue WHERE due_ms IS NOT NULL AND needs > words)
            FROM needed WHERE words IS NOT NULL)
        SELECT words FROM needed
        WHERE words IS NOT NULL AND EXISTS (SELECT 1 FROM queue WHERE needs = words AND due_ms <= ?1)
        UNION SELECT needs FROM queue WHERE due_ms IS NULL
            AND log IN (SELECT log FROM inbox WHERE wakes AND NOT is_taken UNION SELECT log FROM queue WHERE is_woken)";
    let mut select = connection.prepare_cached(sql)?;
    select.query_map([time_column(now)], |row| row.get(0))?.collect()
}

/// Whether a worker that `offers` this has what a log `needs`.
pub(super) fn is_served(needs: &str, offers: &Features) -> bool {
    Features::parse(needs).is_ok_and(|needs| needs.is_subset(offers))
}

/// A time for the database: after the year 292 million is as good as never.
pub(super) fn time_column(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

impl WriteTransaction<'_> {
    /// Claims logs that are due, and parks those that were claimed too often.
    pub(super) fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
    ) -> Result<Vec<Claim>, WriteError> {
        let (now, mut heads, mut due) = (self.state.now(), OtherHeads::new(), Vec::new());
        for needs in needed(self.connection(), now)?.iter().filter(|needs| is_served(needs, offers)) {
            due.extend(self.due(needs, (now, room), except, &mut heads)?);
        }
        due.sort_by(|one, other| (one.due, &one.id).cmp(&(other.due, &other.id)));
        due.truncate(room);
        due.iter().map(|log| self.grant(log, now)).collect()
    }

    /// Those of one need, up to `room`, that no process holds, without those of `except`.
    fn due(
        &self,
        needs: &str,
        (now, room): (u64, usize),
        except: &[LogId],
        heads: &mut OtherHeads,
    ) -> Result<Vec<DueLog>, WriteError> {
        let (mut due, mut failing) = (Vec::new(), Vec::new());
        for sql in DUE {
            let mut select = self.connection().prepare_cached(sql)?;
            let mut rows = select.query(params![needs, time_column(now)])?;
            while due.len() < room
                && let Some(row) = rows.next()?
            {
                let (id, log): (String, i64) = (row.get(1)?, row.get(2)?);
                let id = LogId::new(&id)?;
                if except.contains(&id) {
                    continue;
                }
                match self.claimed_now(&id, log, heads)? {
                    Claimed::Held => {}
                    _ if row.get::<_, i64>(3)? >= i64::from(MAX_TRIES) => failing.push(log),
                    claimed => {
                        due.push(DueLog { due: row.get(0)?, id, log, is_lost: claimed == Claimed::Lost });
                    }
                }
            }
        }
        failing.into_iter().try_for_each(|log| self.park(log))?;
        Ok(due)
    }

    fn grant(&self, DueLog { due, id, log, is_lost }: &DueLog, now: u64) -> Result<Claim, WriteError> {
        self.token()?;
        self.execute("DELETE FROM claims WHERE log = ?1", [log])?;
        let claim = self.insert_claim(id, *log)?;
        self.execute(
            "UPDATE queue SET due_ms = ?2, tries = max(tries, 0) + 1, is_parked = 0, takeovers = takeovers + ?3, worker = ?4
             WHERE log = ?1",
            params![log, time_column(lease_from(now)), is_lost, claims::this_process()],
        )?;
        self.take_wake_up(*log)?;
        let waited = Duration::from_millis(now.saturating_sub(due.cast_unsigned()));
        Ok(claim.found_after(waited, *is_lost))
    }

    /// How a log is claimed.
    pub(super) fn claimed_now(
        &self,
        id: &LogId,
        log: i64,
        heads: &mut OtherHeads,
    ) -> Result<Claimed, WriteError> {
        let Some(writer) = self.get::<String>("SELECT writer FROM claims WHERE log = ?1", [log])? else {
            return Ok(Claimed::No);
        };
        let place = self.state.place();
        let head = if self.state.own().as_ref() == Some(&writer) {
            self.state.head_of(id)
        } else {
            let heads = heads.entry(writer).or_insert_with_key(|writer| {
                let is_alive = process_lock::is_taken(place, writer);
                if is_alive { process_lock::heads_written_by(place, writer) } else { Vec::new() }
            });
            heads.iter().find(|head| head.id == *id).cloned()
        };
        let is_held = head.is_some_and(|head| head.holds_at(self.state.steady()).is_some());
        Ok(if is_held { Claimed::Held } else { Claimed::Lost })
    }

    /// Has a log looked at at `due`, unless it is held. One that is parked is parked no more. Returns its number, and how it is claimed.
    fn look_at(&self, id: &LogId, due: Option<u64>) -> Result<(i64, Claimed), WriteError> {
        let log = self.queued(id)?;
        let claimed = self.claimed_now(id, log, &mut OtherHeads::new())?;
        self.execute(
            "UPDATE queue SET due_ms = CASE WHEN ?2 THEN due_ms ELSE ?3 END,
                 tries = CASE WHEN is_parked THEN 0 ELSE tries END,
                 why = CASE WHEN is_parked THEN NULL ELSE why END, is_parked = 0
             WHERE log = ?1",
            params![log, claimed == Claimed::Held, due.map(time_column)],
        )?;
        Ok((log, claimed))
    }

    /// Has a log looked at because of the inbox message `number`: now, or when it is released without having taken it.
    pub(super) fn wake(&self, id: &LogId, number: i64) -> Result<(), WriteError> {
        let (log, claimed) = self.look_at(id, Some(self.state.now()))?;
        // The process that has it may continue, though its lease has expired.
        if claimed != Claimed::No {
            self.execute("UPDATE inbox SET wakes = 1 WHERE log = ?1 AND nr = ?2", params![log, number])?;
        }
        Ok(())
    }

    pub(super) fn schedule(
        &self,
        id: &LogId,
        due: Option<u64>,
        needs: Option<&Features>,
    ) -> Result<(), WriteError> {
        let (log, claimed) = self.look_at(id, due)?;
        if claimed != Claimed::No && due.is_some() {
            self.execute("UPDATE queue SET is_woken = 1 WHERE log = ?1", [log])?;
        }
        match needs {
            Some(needs) => self.set_needs(id, needs),
            None => Ok(()),
        }
    }

    pub(super) fn set_needs(&self, id: &LogId, needs: &Features) -> Result<(), WriteError> {
        let log = self.queued(id)?;
        Ok(self.execute("UPDATE queue SET needs = ?2 WHERE log = ?1", params![log, needs.to_string()])?)
    }

    pub(super) fn release_until(&self, claim: &Claim, due: Option<u64>) -> Result<(), WriteError> {
        if self.is_own(claim)? {
            let log = self.queued(&claim.id)?;
            self.execute(
                "UPDATE queue SET due_ms = ?2, is_parked = 0, tries = 0, why = NULL WHERE log = ?1",
                params![log, due.map(time_column)],
            )?;
        }
        self.release(claim)
    }

    /// Releases a log that was claimed by its id: an idle one stays so, and a parked one, too, without an append. After one it is due only
    /// at a time that was `named`, unless this claim was [to be continued](Self::continue_if_lost).
    pub(super) fn release_at_rest(
        &self,
        claim: &Claim,
        due: Option<u64>,
        named: Option<u64>,
    ) -> Result<(), WriteError> {
        if self.is_own(claim)? {
            self.execute(
                "UPDATE queue SET is_parked = is_parked AND tries > 0, why = CASE WHEN is_parked AND tries > 0 THEN why END,
                     due_ms = CASE WHEN is_parked AND tries > 0 THEN NULL WHEN due_ms IS NOT NULL THEN ?2 ELSE ?3 END,
                     tries = CASE WHEN is_parked AND tries > 0 THEN tries ELSE 0 END
                 WHERE (due_ms IS NOT NULL OR is_parked) AND log = (SELECT nr FROM logs WHERE id = ?1)",
                params![claim.id.as_str(), due.map(time_column), named.map(time_column)],
            )?;
        }
        self.release(claim)
    }

    pub(super) fn release_failed(
        &self,
        claim: &Claim,
        due: Option<u64>,
        why: &str,
    ) -> Result<(), WriteError> {
        if self.is_own(claim)? {
            let log = self.queued(&claim.id)?;
            let sql =
                "UPDATE queue SET due_ms = ?2, is_parked = 0, why = ?3, tries = max(tries, 0) WHERE log = ?1";
            self.execute(sql, params![log, due.map(time_column), why])?;
            let tries: Option<u32> = self.get("SELECT tries FROM queue WHERE log = ?1", [log])?;
            if tries.is_some_and(|tries| tries >= MAX_TRIES) {
                // Whatever its due time is.
                self.take_wake_up(log)?;
                self.release(claim)?;
                return self.park(log);
            }
            if due.is_none() {
                self.release(claim)?;
                // Unless it is woken.
                let sql =
                    "UPDATE queue SET is_parked = 1, tries = max(tries, 1) WHERE log = ?1 AND due_ms IS NULL";
                return Ok(self.execute(sql, [log])?);
            }
        }
        self.release(claim)
    }

    /// Leaves a log to other workers: the claim is no try.
    pub(super) fn release_to_others(&self, claim: &Claim, why: &str) -> Result<(), WriteError> {
        if self.is_own(claim)? {
            let (log, now) = (self.queued(&claim.id)?, time_column(self.state.now()));
            self.execute(
                "UPDATE queue SET due_ms = CASE WHEN due_ms IS NOT NULL THEN ?2 END, why = ?3,
                     tries = CASE WHEN is_parked THEN tries ELSE max(tries - 1, 0) END
                 WHERE log = ?1",
                params![log, now, why],
            )?;
        }
        self.release(claim)
    }

    /// Has the log of a claim looked at when its lease ends.
    pub(super) fn continue_if_lost(&self, claim: &Claim) -> Result<(), WriteError> {
        if self.is_own(claim)? {
            let (log, lease) = (self.queued(&claim.id)?, time_column(lease_from(self.state.now())));
            self.execute(
                "UPDATE queue SET due_ms = coalesce(due_ms, ?2) WHERE log = ?1",
                params![log, lease],
            )?;
        }
        Ok(())
    }

    /// Renews the leases of valid claims.
    pub(super) fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, WriteError> {
        let mut valid = Vec::with_capacity(claims.len());
        for claim in claims {
            match self.renew(claim) {
                Ok(()) => valid.push(self.kept(claim)?),
                Err(WriteError::Refused(
                    StoreError::Fenced { .. } | StoreError::NotFound { .. } | StoreError::Replaced { .. },
                )) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(valid)
    }

    fn kept(&self, claim: &Claim) -> Result<Heartbeat, WriteError> {
        let log = self.log(&claim.id)?;
        // One that was claimed by its id is due when it was.
        self.execute(
            "UPDATE queue SET due_ms = max(due_ms, ?2) WHERE log = ?1 AND due_ms IS NOT NULL",
            params![log, time_column(lease_from(self.state.now()))],
        )?;
        let sql = "SELECT EXISTS(SELECT 1 FROM inbox WHERE log = ?1 AND NOT is_taken)
                OR EXISTS(SELECT 1 FROM queue WHERE log = ?1 AND is_woken)";
        let is_woken = self.get(sql, [log])?.unwrap_or(false);
        Ok(Heartbeat { claim: claim.clone(), is_woken })
    }

    /// An event was appended: the claims of its log count no more. Why it is parked, and after how many tries, stays until it is parked no
    /// more: these are negative until it is released.
    pub(super) fn progressed(&self, log: i64) -> Result<()> {
        let sql = "UPDATE queue SET tries = CASE WHEN is_parked THEN -abs(tries) ELSE 0 END, why = CASE WHEN is_parked THEN why END
            WHERE log = ?1 AND (tries > 0 OR why IS NOT NULL)";
        self.execute(sql, [log])
    }

    /// A claim ends: its log is due if it was scheduled meanwhile, or a message came that its events do not take. One that is parked stays so.
    pub(super) fn wake_released(&self, claim: &Claim) -> Result<()> {
        let sql = "SELECT log FROM claims WHERE fence = ?1 AND writer = ?2";
        let claimed: Option<i64> = self.get(sql, params![claim.fence.cast_signed(), self.state.own()])?;
        let Some(log) = claimed else { return Ok(()) };
        self.execute("UPDATE queue SET tries = abs(tries) WHERE log = ?1 AND tries < 0", [log])?;
        if self.take_wake_up(log)? {
            let sql = "UPDATE queue SET due_ms = ?2 WHERE log = ?1";
            self.execute(sql, params![log, time_column(self.state.now())])?;
        }
        Ok(())
    }

    /// Whether a log must be looked at when it is released. That is forgotten.
    fn take_wake_up(&self, log: i64) -> Result<bool> {
        let scheduled: Option<bool> = self.get("SELECT is_woken FROM queue WHERE log = ?1", [log])?;
        let unread = "SELECT 1 FROM inbox WHERE log = ?1 AND wakes AND NOT is_taken";
        let (is_scheduled, is_unread) =
            (scheduled.unwrap_or(false), self.get::<i64>(unread, [log])?.is_some());
        if is_scheduled {
            self.execute("UPDATE queue SET is_woken = 0 WHERE log = ?1", [log])?;
        }
        if is_unread {
            self.execute("UPDATE inbox SET wakes = 0 WHERE log = ?1 AND NOT is_taken", [log])?;
        }
        Ok(is_scheduled || is_unread)
    }

    /// Has the logs of processes that have died looked at before their leases expire.
    pub(super) fn free_logs_of_the_dead(&self) -> Result<()> {
        let writers: Vec<String> = {
            let mut select = self.connection().prepare_cached("SELECT DISTINCT writer FROM claims")?;
            select.query_map([], |row| row.get(0))?.collect::<Result<_>>()?
        };
        let (own, now) = (self.state.own(), self.state.now());
        let is_dead = |writer: &&String| {
            own.as_ref() != Some(writer) && !process_lock::is_taken(self.state.place(), writer)
        };
        for writer in writers.iter().filter(is_dead) {
            self.execute(
                "UPDATE queue SET due_ms = ?2 WHERE due_ms BETWEEN ?2 AND ?3
                 AND log IN (SELECT log FROM claims WHERE writer = ?1)",
                params![writer, time_column(now), time_column(lease_from(now))],
            )?;
        }
        Ok(())
    }

    /// The number of a log, which has a row in the queue.
    fn queued(&self, id: &LogId) -> Result<i64, WriteError> {
        let log = self.log(id)?;
        self.execute("INSERT INTO queue(log) VALUES(?1) ON CONFLICT DO NOTHING", [log])?;
        Ok(log)
    }

    /// Whether a claim is valid.
    fn is_own(&self, claim: &Claim) -> Result<bool> {
        let sql = "SELECT 1 FROM claims WHERE fence = ?1 AND writer = ?2";
        Ok(self.get::<i64>(sql, params![claim.fence.cast_signed(), self.state.own()])?.is_some())
    }

    fn park(&self, log: i64) -> Result<(), WriteError> {
        self.execute("DELETE FROM claims WHERE log = ?1", [log])?;
        self.take_wake_up(log)?;
        let sql = "UPDATE queue SET due_ms = NULL, is_parked = 1 WHERE log = ?1";
        Ok(self.execute(sql, [log])?)
    }
}
