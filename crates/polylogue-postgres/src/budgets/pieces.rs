//! Drawing: the statement that reports, draws and renews, and those that make, list and leave budgets.

use std::sync::LazyLock;

use polylogue_core::{Allowance, BudgetDemand, BudgetStanding, CountedUsage, Money, StoreError};
use tokio_postgres::Row;

use super::inner::Inner;
use crate::database::{Access, Parameter};
use crate::logs::lease_ms;

/// A budget, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetListing {
    /// The name.
    pub name: String,
    /// The limits.
    pub limits: Allowance,
    /// The usage, as far as it was reported.
    pub spent: CountedUsage,
    /// The amount that processes have drawn.
    pub drawn: CountedUsage,
    /// The number of processes that have drawn of it.
    pub processes: u64,
    /// The number of conversations that it has paid for.
    pub conversations: u64,
}

/// What is limited, as columns.
pub(super) const KINDS: [&str; 3] = ["calls", "tokens", "cost"];

/// More than any budget has: all that is left.
const ALL: i64 = i64::MAX;

/// Adds what logs have used, if this process still runs them, and replaces the piece of this process: what is reserved for calls in flight
/// stays, and as much is added as the next call needs, and a hundredth of what is left, if there is so much. What is compared is in the row
/// that is updated, or in rows that are locked before. A statement whose number the row has already does nothing. The piece says what was
/// limited for all calls in flight: they use no more of that than the piece has.
static DRAW: LazyLock<String> = LazyLock::new(|| {
    let each = |text: &str| KINDS.map(|kind| text.replace("KIND", kind)).join(", ");
    let old = |kind: &str| format!("coalesce((b.pieces -> $3 ->> '{kind}')::numeric, 0)");
    let mut granted = Vec::new();
    for (kind, parameter) in KINDS.iter().zip([9, 11, 13]) {
        let (floor, least) = (format!("${parameter}::bigint"), format!("${}::bigint", parameter + 1));
        let others = format!("(b.drawn_{kind} - {})", old(kind));
        let left = format!("(b.max_{kind} - b.{kind} - used.{kind} - {others})");
        granted.push(format!(
            "CASE WHEN b.max_{kind} IS NULL THEN {floor}
                WHEN {least} = {ALL} THEN CASE WHEN {others} <= 0 THEN greatest({left}, {floor}) ELSE {floor} END
                WHEN {least} > {floor} AND {left} >= {least} THEN greatest({least}, least({left}, {floor} + trunc({left} / 100)))
                ELSE {floor} END"
        ));
    }
    let [calls, tokens, cost] = granted.as_slice() else { return String::new() };
    let drawn = KINDS
        .iter()
        .zip(&granted)
        .map(|(kind, granted)| format!("drawn_{kind} = b.drawn_{kind} - {} + {granted}", old(kind)));
    format!(
        "WITH mine AS MATERIALIZED (
            SELECT l.log, u.calls, u.tokens, u.cost, u.is_over FROM polylogue.budget_logs l
            JOIN unnest($5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $15::bool[]) AS u(log, calls, tokens, cost, is_over) ON u.log = l.log
            WHERE l.budget = $1 AND l.tenant = $2 AND l.node = $3 ORDER BY l.log FOR UPDATE OF l),
        used AS MATERIALIZED (SELECT {sums} FROM mine),
        head AS (
            UPDATE polylogue.budgets AS b SET {add}, {drawn},
                pieces = b.pieces || jsonb_build_object($3, jsonb_build_object('number', $4::bigint, 'calls', {calls}, 'tokens', {tokens}, 'cost', {cost},
                    'until', extract(epoch FROM clock_timestamp()) + $16::bigint / 1000.0, 'most', jsonb_build_object({most})))
            FROM used WHERE b.name = $1 AND coalesce((b.pieces -> $3 ->> 'number')::bigint, 0) < $4
            RETURNING {STANDING}),
        put AS (
            UPDATE polylogue.budget_logs AS l SET {report}, node = CASE WHEN mine.is_over THEN NULL ELSE l.node END
            FROM mine, head WHERE l.budget = $1 AND l.tenant = $2 AND l.log = mine.log)
        SELECT * FROM head",
        sums = each("coalesce(sum(KIND), 0) AS KIND"),
        most = each(
            "'KIND', CASE WHEN $9::bigint > 0 AND b.pieces -> $3 -> 'most' -> 'KIND' = 'null' THEN NULL ELSE b.max_KIND END"
        ),
        add = each("KIND = b.KIND + used.KIND"),
        drawn = drawn.collect::<Vec<_>>().join(", "),
        report = each("KIND = l.KIND + mine.KIND"),
    )
});

/// What a row says, to the process `$3`: limits, what was used, what it has drawn, and all; and whose leases have expired.
const STANDING: &str = "b.max_calls::text, b.max_tokens::text, b.max_cost::text, b.calls::text, b.tokens::text, b.cost::text,
    b.pieces -> $3 ->> 'calls', b.pieces -> $3 ->> 'tokens', b.pieces -> $3 ->> 'cost',
    b.drawn_calls::text, b.drawn_tokens::text, b.drawn_cost::text,
    (SELECT coalesce(array_agg(key), '{}') FROM jsonb_each(b.pieces) WHERE (value ->> 'until')::float8 < extract(epoch FROM clock_timestamp()))";

/// Whether a piece of `jsonb_each` counts as that of a process: its lease has not expired, or it has something that is not returned yet. A
/// process that has had nothing of a budget for a while keeps an empty piece.
const IN_USE: &str = "(value ->> 'until')::float8 >= extract(epoch FROM clock_timestamp())
    OR (value ->> 'calls')::numeric > 0 OR (value ->> 'tokens')::numeric > 0 OR (value ->> 'cost')::numeric > 0";

/// Returns a piece: that of this process, or one whose lease has expired and whose logs are all counted.
pub(super) fn return_piece(condition: &str) -> String {
    let drawn = KINDS.map(|kind| {
        format!("drawn_{kind} = b.drawn_{kind} - coalesce((b.pieces -> $2 ->> '{kind}')::numeric, 0)")
    });
    format!(
        "UPDATE polylogue.budgets AS b SET {}, pieces = b.pieces - $2 WHERE b.name = $1 AND b.pieces ? $2 AND {condition}",
        drawn.join(", ")
    )
}

/// Removes a budget from which no process has drawn whose lease has not expired.
const REMOVE: &str = "WITH old AS MATERIALIZED (
        SELECT name FROM polylogue.budgets WHERE name = $1 AND NOT EXISTS (
            SELECT FROM jsonb_each(pieces) WHERE (value ->> 'until')::float8 >= extract(epoch FROM clock_timestamp())) FOR UPDATE),
    logs AS (DELETE FROM polylogue.budget_logs USING old WHERE budget = old.name)
    DELETE FROM polylogue.budgets USING old WHERE budgets.name = old.name RETURNING budgets.name";

impl Inner {
    /// Returns whether it was removed.
    pub(super) async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let removed = self.database.query(Access::Write, REMOVE, &[&name]).await?;
        Ok(!removed.is_empty())
    }

    pub(super) async fn set(&self, name: &str, limits: Allowance) -> Result<(), StoreError> {
        let sql = "INSERT INTO polylogue.budgets AS b(name, max_calls, max_tokens, max_cost) VALUES($1, $2::bigint, $3::bigint, $4::bigint)
            ON CONFLICT (name) DO UPDATE SET max_calls = coalesce(excluded.max_calls, b.max_calls),
                max_tokens = coalesce(excluded.max_tokens, b.max_tokens), max_cost = coalesce(excluded.max_cost, b.max_cost)";
        let (calls, tokens) = (limits.calls.map(signed), limits.tokens.map(signed));
        let cost = limits.cost.map(|cost| signed(cost.picodollars));
        let parameters: [&dyn Parameter; 4] = [&name, &calls, &tokens, &cost];
        self.database.query(Access::Write, sql, &parameters).await.map(drop)
    }

    /// How a budget stands; `None` if there is none.
    pub(super) async fn standing(&self, name: &str) -> Result<Option<BudgetStanding>, StoreError> {
        Ok(self.read(name).await?.map(|(standing, _)| standing))
    }

    /// How a budget stands, and whose leases have expired; `None` if there is none.
    pub(super) async fn read(&self, name: &str) -> Result<Option<(BudgetStanding, Vec<String>)>, StoreError> {
        let sql = format!("SELECT {STANDING} FROM polylogue.budgets AS b WHERE b.name = $1 AND $2 <> $3");
        let parameters: [&dyn Parameter; 3] = [&name, &"", &self.node];
        let rows = self.database.query(Access::Read, &sql, &parameters).await?;
        rows.first().map(|row| self.read_standing(row)).transpose()
    }

    /// Whose leases have expired.
    pub(super) async fn expired(&self, name: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.read(name).await?.map(|(_, expired)| expired).unwrap_or_default())
    }

    /// Executes the statement of this `number`. Returns how the budget stands, and whose leases have expired.
    pub(super) async fn draw(
        &self,
        name: &str,
        number: i64,
        demand: &BudgetDemand,
    ) -> Result<(BudgetStanding, Vec<String>), StoreError> {
        let column = |of: fn(&CountedUsage) -> u64| {
            demand.used.iter().map(|(_, used, _)| signed(of(used))).collect::<Vec<_>>()
        };
        let (calls, tokens) = (column(|used| used.calls), column(|used| used.tokens));
        let cost = column(|used| used.cost.picodollars);
        let logs: Vec<&str> = demand.used.iter().map(|(log, ..)| log.as_str()).collect();
        let over: Vec<bool> = demand.used.iter().map(|(.., is_over)| *is_over).collect();
        let (floor, lease) = (demand.reserved, lease_ms());
        let least = demand.wants.map_or(floor, |wants| wants.least);
        let whole = demand.wants.is_some_and(|wants| wants.whole);
        let of = |amount: u64| if whole { ALL } else { signed(amount) };
        let amounts = [
            signed(floor.calls),
            signed(least.calls),
            signed(floor.tokens),
            of(least.tokens),
            signed(floor.cost.picodollars),
            of(least.cost.picodollars),
        ];
        let mut parameters: Vec<&dyn Parameter> =
            vec![&name, &self.tenant, &self.node, &number, &logs, &calls, &tokens, &cost];
        parameters.extend(amounts.iter().map(|amount| amount as &dyn Parameter));
        parameters.extend([&over as &dyn Parameter, &lease]);
        let rows = self.database.query(Access::Write, &DRAW, &parameters).await?;
        match rows.first() {
            Some(row) => self.read_standing(row),
            // Executed before, and its answer was lost.
            None => self.read(name).await?.ok_or_else(|| self.gone(name)),
        }
    }

    /// Returns what this process has drawn.
    pub(super) async fn leave(&self, name: &str) -> Result<(), StoreError> {
        let parameters: [&dyn Parameter; 2] = [&name, &self.node];
        self.database.query(Access::Write, &return_piece("true"), &parameters).await.map(drop)
    }

    pub(super) async fn list(&self) -> Result<Vec<BudgetListing>, StoreError> {
        let sql = format!(
            "SELECT {STANDING}, (SELECT count(*) FROM jsonb_each(b.pieces) WHERE {IN_USE}), b.name,
                (SELECT count(*) FROM polylogue.budget_logs WHERE budget = b.name)
            FROM polylogue.budgets AS b WHERE $1 <> $3 AND $2 <> $3 ORDER BY b.name"
        );
        let parameters: [&dyn Parameter; 3] = [&"", &"", &self.node];
        let rows = self.database.query(Access::Read, &sql, &parameters).await?;
        let listed = rows.iter().map(|row| {
            let (standing, _) = self.read_standing(row)?;
            let count =
                |column| self.get::<i64>(row, column).map(|count| u64::try_from(count).unwrap_or_default());
            Ok(BudgetListing {
                name: self.get(row, 14)?,
                limits: standing.limits,
                spent: standing.spent,
                drawn: standing.others + standing.drawn,
                processes: count(13)?,
                conversations: count(15)?,
            })
        });
        listed.collect()
    }

    fn read_standing(&self, row: &Row) -> Result<(BudgetStanding, Vec<String>), StoreError> {
        let number =
            |column| Ok::<_, StoreError>(self.get::<Option<String>>(row, column)?.as_deref().map(amount));
        let counted = |first: usize| {
            let of = |column| Ok::<_, StoreError>(number(column)?.unwrap_or_default());
            let (calls, tokens) = (of(first)?, of(first + 1)?);
            Ok::<_, StoreError>(CountedUsage { calls, tokens, cost: Money { picodollars: of(first + 2)? } })
        };
        let cost = number(2)?.map(|picodollars| Money { picodollars });
        let limits = Allowance { calls: number(0)?, tokens: number(1)?, cost, time_ms: None };
        let (spent, drawn, all) = (counted(3)?, counted(6)?, counted(9)?);
        Ok((BudgetStanding { limits, spent, drawn, others: all.less(drawn) }, self.get(row, 12)?))
    }
}

/// As a parameter. Nothing that is used comes near the bound.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(ALL - 1)
}

/// A number of a column, which may be negative after a correction, and larger than any limit.
fn amount(text: &str) -> u64 {
    let whole = text.split('.').next().unwrap_or_default();
    whole.parse::<i128>().map_or(0, |number| u64::try_from(number.max(0)).unwrap_or(u64::MAX))
}
