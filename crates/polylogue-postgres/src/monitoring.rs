//! What all processes with a database share, for monitoring: budgets, limits of model servers, and the sizes of tables.

use polylogue_core::StoreError;
use tokio_postgres::Row;

use crate::database::{Access, Database, Parameter};

/// What all processes with a database share, at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DatabaseFigures {
    /// The first [`MOST`](Self::MOST) budgets by name, without those of the days of tokens.
    pub budgets: Vec<BudgetFigures>,
    /// The limits of model servers by provider and model, at most [`MOST`](Self::MOST): first those for which a call waits longest.
    pub limits: Vec<RateLimitFigures>,
    /// How many bytes tables take with their indexes, by name.
    pub bytes: Vec<(&'static str, u64)>,
}

/// A budget that processes share.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetFigures {
    /// Its name.
    pub name: String,
    /// Of money, in dollars.
    pub dollars: SharedAmount,
    /// Of tokens of input and output.
    pub tokens: SharedAmount,
    /// Of model calls.
    pub calls: SharedAmount,
    /// How many processes have drawn from it.
    pub processes: u64,
    /// How many conversations it has paid for.
    pub conversations: u64,
}

/// How much of something a budget allows, and what became of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SharedAmount {
    /// The ceiling; `None`: without a bound.
    pub most: Option<f64>,
    /// What was used, as far as it was reported.
    pub used: f64,
    /// What processes have drawn for their next calls, and not used yet.
    pub drawn: f64,
}

/// The limits of the models of one name of one provider, with all keys together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RateLimitFigures {
    /// The provider.
    pub provider: String,
    /// The model; empty for all of the provider.
    pub model: String,
    /// How many seconds the next call must wait, with the key for which that is longest.
    pub wait_seconds: f64,
    /// How many requests were begun.
    pub requests: u64,
    /// How often the provider has asked to wait.
    pub refusals: u64,
    /// How many calls may be in flight; 0: without such a limit.
    pub slots: u64,
    /// How many of them are.
    pub slots_taken: u64,
}

impl DatabaseFigures {
    /// At most so many budgets, and so many limits: names are chosen by people, and monitoring keeps each.
    pub const MOST: i64 = 200;
}

/// In the order of [`BudgetFigures`].
const BUDGETS: &str = "SELECT name, max_dollars::float8, dollars::float8, drawn_dollars::float8,
        max_tokens::float8, tokens::float8, drawn_tokens::float8, max_calls::float8, calls::float8, drawn_calls::float8,
        processes, conversations
    FROM polylogue.cluster_budgets WHERE name NOT LIKE '@%' ORDER BY name LIMIT $1";

const LIMITS: &str = "SELECT provider, model, coalesce(max(wait_seconds), 0)::float8 AS wait,
        coalesce(sum(requests), 0)::bigint, coalesce(sum(refusals), 0)::bigint,
        coalesce(sum(slots), 0)::bigint, coalesce(sum(slots_taken), 0)::bigint
    FROM polylogue.cluster_limits GROUP BY provider, model ORDER BY wait DESC, provider, model LIMIT $1";

/// The tables that grow.
const TABLES: [&str; 5] = ["events", "blobs", "archives", "logs", "inbox"];

/// Without reading them. A table with what is stored apart from its rows, and its indexes.
const BYTES: &str = "SELECT pg_total_relation_size(('polylogue.' || $1)::regclass)";

pub(crate) async fn figures(database: &Database) -> Result<DatabaseFigures, StoreError> {
    let most: [&dyn Parameter; 1] = [&DatabaseFigures::MOST];
    let budgets = database.query(Access::Read, BUDGETS, &most).await?;
    let budgets: Result<_, StoreError> = budgets.iter().map(|row| budget(database, row)).collect();
    let limits = rate_limits(database).await?;
    let mut bytes = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let rows = database.query(Access::Read, BYTES, &[&table]).await?;
        let size = rows.first().map_or(Ok(0), |row| database.get::<i64>(row, 0))?;
        bytes.push((table, size.cast_unsigned()));
    }
    Ok(DatabaseFigures { budgets: budgets?, limits, bytes })
}

/// The limits of model servers.
pub(crate) async fn rate_limits(database: &Database) -> Result<Vec<RateLimitFigures>, StoreError> {
    let most: [&dyn Parameter; 1] = [&DatabaseFigures::MOST];
    let rows = database.query(Access::Read, LIMITS, &most).await?;
    rows.iter().map(|row| limit(database, row)).collect()
}

fn budget(database: &Database, row: &Row) -> Result<BudgetFigures, StoreError> {
    let amount = |first: usize| {
        let (most, used, drawn) =
            (database.get(row, first)?, database.get(row, first + 1)?, database.get(row, first + 2)?);
        Ok::<_, StoreError>(SharedAmount { most, used, drawn })
    };
    Ok(BudgetFigures {
        name: database.get(row, 0)?,
        dollars: amount(1)?,
        tokens: amount(4)?,
        calls: amount(7)?,
        processes: database.get::<i64>(row, 10)?.cast_unsigned(),
        conversations: database.get::<i64>(row, 11)?.cast_unsigned(),
    })
}

fn limit(database: &Database, row: &Row) -> Result<RateLimitFigures, StoreError> {
    let count = |column: usize| Ok::<_, StoreError>(database.get::<i64>(row, column)?.cast_unsigned());
    Ok(RateLimitFigures {
        provider: database.get(row, 0)?,
        model: database.get(row, 1)?,
        wait_seconds: database.get(row, 2)?,
        requests: count(3)?,
        refusals: count(4)?,
        slots: count(5)?,
        slots_taken: count(6)?,
    })
}
