//! The logs that a budget pays for: what of their usage is in the budget, and counting it again.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use polylogue_core::{BudgetStanding, CountedUsage, Log, LogId, Money, StoreError, Summary};
use tracing::warn;

use super::inner::Inner;
use super::pieces::{KINDS, return_piece, signed};
use crate::database::{Access, Database, Parameter};
use crate::logs::Logs;

/// The result of counting a budget again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recount {
    /// What was used before, as far as it had been reported.
    pub before: CountedUsage,
    /// What is used now.
    pub after: CountedUsage,
    /// The number of logs that were counted.
    pub counted: u64,
    /// The logs that a process runs: it reports by itself.
    pub running: u64,
    /// The logs that may have lost a call when their process died. They are counted when they continue.
    pub uncertain: Vec<LogId>,
    /// The logs that were removed, or are damaged: what was reported of them stays.
    pub unreadable: u64,
}

/// What a log has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogUsage {
    /// All of it: calls of unknown usage at their upper bound.
    pub used: CountedUsage,
    /// The part of it that calls have used at most which may have been in flight when the last process died, and that was charged just now.
    pub lost: CountedUsage,
}

impl From<CountedUsage> for LogUsage {
    fn from(used: CountedUsage) -> Self {
        Self { used, lost: CountedUsage::default() }
    }
}

/// Sets what is counted of a log to what it has used, if the process that it is known by is [expected](RunBy) (`$8`). Returns a row if it did.
/// `$9`: the log is new.
///
/// It is paid from the piece of the process that ran it last, if that is another one than the next (`$7`). Lost calls count no more than is
/// left there, because all calls that were sent were covered by the piece together. What they do not count is noted as used before, so that it
/// does not count later.
static COUNT: LazyLock<String> = LazyLock::new(|| {
    let each = |text: &str| {
        let of = |(nth, kind): (usize, &&str)| {
            let (used, lost) = (format!("${}::bigint", 4 + nth), format!("${}::bigint", 10 + nth));
            text.replace("USED", &used).replace("LOST", &lost).replace("KIND", kind)
        };
        KINDS.iter().enumerate().map(of).collect::<Vec<_>>().join(", ")
    };
    format!(
        "WITH old AS MATERIALIZED (
            SELECT node, {known} FROM polylogue.budget_logs
            WHERE budget = $1 AND tenant = $2 AND log = $3 AND ($8::text IS NULL OR node IS NOT DISTINCT FROM nullif($8, '')) FOR UPDATE),
        held AS MATERIALIZED (
            SELECT b.pieces -> old.node AS piece FROM polylogue.budgets AS b JOIN old ON old.node IS DISTINCT FROM $7::text
            WHERE b.name = $1 FOR UPDATE OF b),
        more AS MATERIALIZED (SELECT node, piece, {more} FROM old LEFT JOIN held ON true),
        counted AS MATERIALIZED (SELECT node, piece, {counted} FROM more),
        paid AS MATERIALIZED (SELECT node, piece, {paid} FROM counted),
        changed AS (
            UPDATE polylogue.budget_logs AS l SET node = $7, {noted}
            FROM paid WHERE l.budget = $1 AND l.tenant = $2 AND l.log = $3)
        UPDATE polylogue.budgets AS b SET {add}, pieces = CASE WHEN piece IS NULL THEN b.pieces
            ELSE b.pieces || jsonb_build_object(node, piece || jsonb_build_object({rest})) END
        FROM paid WHERE b.name = $1 RETURNING b.name",
        known = each("before_KIND, KIND"),
        more = each("CASE WHEN $9 THEN 0 ELSE USED - before_KIND - KIND END AS KIND"),
        counted = each(
            "KIND AS all_KIND, CASE WHEN piece -> 'most' ->> 'KIND' IS NULL THEN KIND
                ELSE greatest(KIND - LOST, least(KIND, (piece ->> 'KIND')::numeric)) END AS KIND"
        ),
        paid = each(
            "KIND, all_KIND - KIND AS less_KIND, least(greatest(KIND, 0), coalesce((piece ->> 'KIND')::numeric, 0)) AS paid_KIND"
        ),
        noted = each(
            "KIND = l.KIND + paid.KIND, before_KIND = CASE WHEN $9 THEN -l.KIND ELSE l.before_KIND + less_KIND END"
        ),
        add = each("KIND = b.KIND + paid.KIND, drawn_KIND = b.drawn_KIND - paid_KIND"),
        rest = each("'KIND', coalesce((piece ->> 'KIND')::numeric, 0) - paid_KIND"),
    )
});

/// Sets what was used of a budget to the sum of what is counted of its logs, all of which are locked first.
const SUM: &str = "WITH counted AS MATERIALIZED (
        SELECT calls, tokens, cost FROM polylogue.budget_logs WHERE budget = $1 ORDER BY tenant, log FOR UPDATE),
    sum AS MATERIALIZED (SELECT coalesce(sum(calls), 0) AS calls, coalesce(sum(tokens), 0) AS tokens, coalesce(sum(cost), 0) AS cost FROM counted)
    UPDATE polylogue.budgets AS b SET calls = sum.calls, tokens = sum.tokens, cost = sum.cost FROM sum WHERE b.name = $1";

/// Notes that a budget pays for a log, from what it has used so far on; again, if another one has paid in between.
const ADD: &str = "INSERT INTO polylogue.budget_logs AS l(budget, tenant, log, before_calls, before_tokens, before_cost)
    SELECT name, $2, $3, $4::bigint, $5::bigint, $6::bigint FROM polylogue.budgets WHERE name = $1
    ON CONFLICT (tenant, log, budget) DO UPDATE SET until_event = NULL, before_calls = excluded.before_calls - l.calls,
        before_tokens = excluded.before_tokens - l.tokens, before_cost = excluded.before_cost - l.cost
    WHERE l.until_event IS NOT NULL";

/// Who has claimed the logs of a budget, and which process it knows them by. With `$2`, those of one process.
const PAID: &str = "SELECT p.tenant, p.log, p.node, l.nr IS NOT NULL, l.holder IS NOT NULL AND p.until_event IS NULL, coalesce(l.lease >= now(), false),
        p.until_event
    FROM polylogue.budget_logs p LEFT JOIN polylogue.logs l ON l.tenant = p.tenant AND l.id = p.log
    WHERE p.budget = $1 AND ($2::text IS NULL OR p.node = $2) ORDER BY p.tenant, p.log";

/// A log that a budget pays for.
struct PaidLog {
    tenant: String,
    id: LogId,
    node: Option<String>,
    is_there: bool,
    /// Whether a process has claimed it, even if its lease has expired: it may be frozen, and continue.
    is_claimed: bool,
    is_running: bool,
    /// The events before which the budget pays, if another one pays for the others.
    until: Option<u64>,
}

/// The process that a budget must know a log by, so that the log is counted: another one has begun to run it since it was read.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunBy<'n> {
    /// Any process, or none.
    Any,
    /// No process.
    NoProcess,
    /// This one.
    Process(&'n str),
}

impl<'n> RunBy<'n> {
    fn of(node: Option<&'n String>) -> Self {
        node.map_or(Self::NoProcess, |node| Self::Process(node))
    }

    /// As the parameter of [`COUNT`]. No process has an empty name.
    const fn parameter(self) -> Option<&'n str> {
        match self {
            Self::Any => None,
            Self::NoProcess => Some(""),
            Self::Process(node) => Some(node),
        }
    }
}

/// What the events of a log say.
enum Counted {
    Used(CountedUsage),
    Uncertain,
    Unreadable,
}

impl Inner {
    pub(super) async fn names_of(&self, id: &LogId) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT budget FROM polylogue.budget_logs WHERE tenant = $1 AND log = $2 AND until_event IS NULL ORDER BY budget";
        let parameters: [&dyn Parameter; 2] = [&self.tenant, &id.as_str()];
        let rows = self.database.query(Access::Read, sql, &parameters).await?;
        rows.iter().map(|row| self.get(row, 0)).collect()
    }

    /// Notes that this process runs a log, which has used so much, or is new. Returns how the budget stands. What a process had drawn whose lease
    /// has expired is returned, if this was the last of its logs.
    pub(super) async fn claim(
        self: &Arc<Self>,
        name: &str,
        id: &LogId,
        usage: Option<LogUsage>,
    ) -> Result<BudgetStanding, StoreError> {
        let [calls, tokens, cost] = amounts(usage.unwrap_or_default().used);
        let parameters: [&dyn Parameter; 6] = [&name, &self.tenant, &id.as_str(), &calls, &tokens, &cost];
        self.database.query(Access::Write, ADD, &parameters).await?;
        self.count((name, &self.tenant, id), usage, Some(&self.node), RunBy::Any).await?;
        let (standing, mut expired) = self.read(name).await?.ok_or_else(|| self.gone(name))?;
        expired.retain(|node| *node != self.node);
        if expired.is_empty() {
            return Ok(standing);
        }
        self.release_all_expired(name, &expired).await;
        self.standing(name).await?.ok_or_else(|| self.gone(name))
    }

    /// Counts a log, which `node` runs from now on, or no process. `usage` is `None` for a new one. Returns whether it was counted: the budget
    /// knew it by the `expected` process.
    pub(super) async fn count(
        &self,
        (name, tenant, id): (&str, &str, &LogId),
        usage: Option<LogUsage>,
        node: Option<&String>,
        expected: RunBy<'_>,
    ) -> Result<bool, StoreError> {
        let (is_new, usage, expected) = (usage.is_none(), usage.unwrap_or_default(), expected.parameter());
        let [calls, tokens, cost] = amounts(usage.used);
        let [lost_calls, lost_tokens, lost_cost] = amounts(usage.lost);
        let parameters: [&dyn Parameter; 12] = [
            &name,
            &tenant,
            &id.as_str(),
            &calls,
            &tokens,
            &cost,
            &node,
            &expected,
            &is_new,
            &lost_calls,
            &lost_tokens,
            &lost_cost,
        ];
        let counted = self.database.query(Access::Write, &COUNT, &parameters).await?;
        Ok(!counted.is_empty())
    }

    async fn paid(&self, name: &str, node: Option<&str>) -> Result<Vec<PaidLog>, StoreError> {
        let parameters: [&dyn Parameter; 2] = [&name, &node];
        let rows = self.database.query(Access::Read, PAID, &parameters).await?;
        let paid = rows.iter().map(|row| {
            Ok(PaidLog {
                tenant: self.get(row, 0)?,
                id: LogId::new(&self.get::<String>(row, 1)?)?,
                node: self.get(row, 2)?,
                is_there: self.get(row, 3)?,
                is_claimed: self.get(row, 4)?,
                is_running: self.get::<bool>(row, 4)? && self.get(row, 5)?,
                until: self.get::<Option<i64>>(row, 6)?.map(i64::cast_unsigned),
            })
        });
        paid.collect()
    }

    /// What the log of a conversation has used, up to the event `until`, unless a call may have been in flight when its process died.
    async fn counted(&self, logs: &Logs, id: &LogId, until: Option<u64>) -> Result<Counted, StoreError> {
        let mut events = match logs.read_intact(id).await {
            Ok(recovered) if recovered.damage.is_none() => recovered.events,
            Ok(_) | Err(StoreError::NotFound { .. }) => return Ok(Counted::Unreadable),
            Err(error) => return Err(error),
        };
        events.retain(|event| until.is_none_or(|until| event.seq < until));
        let used = Summary::of(&events, true).usage.counted();
        if until.is_some() {
            // Calls that may have been lost were charged before another budget paid.
            return Ok(Counted::Used(used));
        }
        match Log::from_events(events).may_have_lost_calls().await {
            Ok(false) => Ok(Counted::Used(used)),
            Ok(true) => Ok(Counted::Uncertain),
            Err(_) => Ok(Counted::Unreadable),
        }
    }

    /// Counts the logs of a process whose lease has expired, as far as they are at rest, and returns what it had drawn when all are
    /// counted. Those that wait to be taken over are counted then.
    pub(super) async fn release_expired(self: &Arc<Self>, name: &str, node: &str) -> Result<(), StoreError> {
        let mut paid = self.paid(name, Some(node)).await?;
        paid.retain(|log| !log.is_claimed);
        self.count_all(name, paid, &mut Recount::default()).await?;
        let condition = "(b.pieces -> $2 ->> 'until')::float8 < extract(epoch FROM clock_timestamp())
            AND NOT EXISTS (SELECT FROM polylogue.budget_logs WHERE budget = $1 AND node = $2)";
        let parameters: [&dyn Parameter; 2] = [&name, &node];
        self.database.query(Access::Write, &return_piece(condition), &parameters).await.map(drop)
    }

    /// Does what [`release_expired`](Self::release_expired) does for several processes. What fails is tried again at the next statement: it
    /// is no reason to refuse what this process has drawn itself.
    pub(super) async fn release_all_expired(self: &Arc<Self>, name: &str, nodes: &[String]) {
        for node in nodes {
            if let Err(error) = self.release_expired(name, node).await {
                warn!(budget = %name, %node, %error, "what another process had drawn of a budget is not returned yet");
            }
        }
    }

    /// Counts logs, except those that a process runs. Returns those that are not counted, because another process has begun to run them, or
    /// theirs no longer does, while they were read.
    async fn count_all(
        &self,
        name: &str,
        paid: Vec<PaidLog>,
        recount: &mut Recount,
    ) -> Result<Vec<(String, LogId)>, StoreError> {
        let (mut stores, mut changed): (HashMap<String, Logs>, _) = (HashMap::new(), Vec::new());
        for PaidLog { tenant, id, node, is_there, is_claimed, is_running, until } in paid {
            if is_running {
                recount.running += 1;
                continue;
            }
            let logs = stores
                .entry(tenant.clone())
                .or_insert_with(|| Logs::new(Database::new(self.address.clone()), &tenant));
            let counted = if is_there { self.counted(logs, &id, until).await? } else { Counted::Unreadable };
            match counted {
                Counted::Used(used) => {
                    let runs_it = node.as_ref().filter(|_| is_claimed);
                    let (usage, expected) = (Some(LogUsage::from(used)), RunBy::of(node.as_ref()));
                    match self.count((name, &tenant, &id), usage, runs_it, expected).await? {
                        true => recount.counted += 1,
                        false => changed.push((tenant, id)),
                    }
                }
                Counted::Unreadable => {
                    self.forget_node(name, &tenant, &id, node.as_ref()).await?;
                    recount.unreadable += 1;
                }
                Counted::Uncertain => recount.uncertain.push(id),
            }
        }
        Ok(changed)
    }

    /// Notes that no process runs a log whose events cannot be counted.
    async fn forget_node(
        &self,
        name: &str,
        tenant: &str,
        id: &LogId,
        node: Option<&String>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE polylogue.budget_logs SET node = NULL WHERE budget = $1 AND tenant = $2 AND log = $3 AND node = $4";
        let parameters: [&dyn Parameter; 4] = [&name, &tenant, &id.as_str(), &node];
        self.database.query(Access::Write, sql, &parameters).await.map(drop)
    }

    pub(super) async fn recount(self: &Arc<Self>, name: &str) -> Result<Option<Recount>, StoreError> {
        let Some(standing) = self.standing(name).await? else { return Ok(None) };
        let mut recount = Recount { before: standing.spent, ..Recount::default() };
        let mut paid = self.paid(name, None).await?;
        while !paid.is_empty() {
            let changed = self.count_all(name, paid, &mut recount).await?;
            paid = self.paid(name, None).await?;
            paid.retain(|log| changed.iter().any(|(tenant, id)| *tenant == log.tenant && *id == log.id));
        }
        self.database.query(Access::Write, SUM, &[&name]).await?;
        for node in self.expired(name).await? {
            self.release_expired(name, &node).await?;
        }
        recount.after = self.standing(name).await?.ok_or_else(|| self.gone(name))?.spent;
        Ok(Some(recount))
    }
}

fn amounts(used: CountedUsage) -> [i64; 3] {
    let CountedUsage { calls, tokens, cost: Money { picodollars } } = used;
    [signed(calls), signed(tokens), signed(picodollars)]
}
