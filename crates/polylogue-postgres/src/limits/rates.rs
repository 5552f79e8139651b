//! Rates: each row is a generic cell rate algorithm, whose state is the time of the next permission.
//!
//! A draw moves that time by all that is drawn, and gets the time before, so no caller is refused and tries again. A rate allows
//! as much at once as its burst is: the time lags behind the clock by at most that.

use std::time::Duration;

use polylogue_core::{LearnedRate, LearnedRates, LimitScope, RateDemand, RateGrant, RateTimes, StoreError};
use tokio_postgres::Row;

use super::inner::{Inner, UNSYNCED};
use crate::database::{Access, Parameter};

const ROW: &str = "provider = $1 AND account = $2 AND model = $3";

/// The time of the next permission after a draw. What it depends on is in the row that is updated, whose lock this statement has.
fn next(what: &str, drawn: &str) -> String {
    format!(
        "{what}_next = coalesce(greatest({what}_next, blocked_until,
                clock_timestamp() - make_interval(secs => ({what}_burst - 1) / {what}_per_second))
            + make_interval(secs => {drawn}::float8 / {what}_per_second), {what}_next)"
    )
}

/// Seconds from now on.
fn seconds(time: &str) -> String {
    format!("extract(epoch FROM {time} - clock_timestamp())::float8")
}

impl Inner {
    pub(super) async fn draw(&self, scope: &LimitScope, demand: RateDemand) -> Result<RateGrant, StoreError> {
        let drawn = |what: &str, number: &str| {
            seconds(&format!("({what}_next - make_interval(secs => {number}::float8 / {what}_per_second))"))
        };
        let sql = format!(
            "WITH {UNSYNCED}, drawn AS (
                UPDATE polylogue.rate_limits SET {}, {}, requests = requests + $4
                FROM unsynced WHERE {ROW} AND ($6::float8 IS NULL OR
                    greatest(requests_next, tokens_next, blocked_until) <= clock_timestamp() + make_interval(secs => $6))
                RETURNING true, requests_per_second, {}, tokens_per_second, {}, {})
            SELECT * FROM drawn UNION ALL
            SELECT false, requests_per_second, {}, tokens_per_second, {}, {}
            FROM polylogue.rate_limits WHERE {ROW} AND NOT EXISTS (SELECT FROM drawn)",
            next("requests", "$4"),
            next("tokens", "$5"),
            drawn("requests", "$4"),
            drawn("tokens", "$5"),
            seconds("blocked_until"),
            seconds("requests_next"),
            seconds("tokens_next"),
            seconds("blocked_until"),
        );
        let requests = i64::from(demand.requests);
        let patience = demand.patience.map(|patience| patience.as_secs_f64());
        let rows = self.of_scope(Access::Write, &sql, scope, &[&requests, &demand.tokens, &patience]).await?;
        // Without a row there is no known rate.
        rows.first()
            .map_or_else(|| Ok(RateGrant { is_drawn: true, ..RateGrant::default() }), |row| self.grant(row))
    }

    fn grant(&self, row: &Row) -> Result<RateGrant, StoreError> {
        let times = |rate: Option<f64>, start: Option<f64>| match rate.zip(start) {
            Some((rate, start)) => RateTimes::from(start, 1.0 / rate),
            None => RateTimes::default(),
        };
        Ok(RateGrant {
            is_drawn: self.get(row, 0)?,
            requests: times(self.get(row, 1)?, self.get(row, 2)?),
            tokens: times(self.get(row, 3)?, self.get(row, 4)?),
            blocked: duration(self.get(row, 5)?),
        })
    }

    pub(super) async fn learn(&self, scope: &LimitScope, rates: LearnedRates) -> Result<(), StoreError> {
        // What is left now is what the provider says, if that is less.
        let next = |rate: &str, left: &str| {
            format!(
                "coalesce(clock_timestamp() - make_interval(secs => ({left}::float8 - 1) / {rate}::float8), 'epoch')"
            )
        };
        let sql = format!(
            "WITH {UNSYNCED}
            INSERT INTO polylogue.rate_limits AS r(provider, account, model, requests_per_second, requests_burst, requests_next,
                tokens_per_second, tokens_burst, tokens_next)
            SELECT $1, $2, $3, $4, $5, {}, $7, $8, {} FROM unsynced
            ON CONFLICT (provider, account, model) DO UPDATE SET
                requests_per_second = coalesce(excluded.requests_per_second, r.requests_per_second),
                requests_burst = coalesce(excluded.requests_burst, r.requests_burst),
                requests_next = greatest(r.requests_next, excluded.requests_next),
                tokens_per_second = coalesce(excluded.tokens_per_second, r.tokens_per_second),
                tokens_burst = coalesce(excluded.tokens_burst, r.tokens_burst),
                tokens_next = greatest(r.tokens_next, excluded.tokens_next)",
            next("$4", "$6"),
            next("$7", "$9"),
        );
        let (requests, tokens) = (numbers(rates.requests), numbers(rates.tokens));
        let more: Vec<_> = requests.iter().chain(&tokens).map(|number| number as &dyn Parameter).collect();
        self.of_scope(Access::Write, &sql, scope, &more).await.map(drop)
    }

    pub(super) async fn block(&self, scope: &LimitScope, wait: Duration) -> Result<(), StoreError> {
        let sql = format!(
            "WITH {UNSYNCED}
            INSERT INTO polylogue.rate_limits AS r(provider, account, model, blocked_until, refusals)
            SELECT $1, $2, $3, clock_timestamp() + make_interval(secs => $4), 1 FROM unsynced
            ON CONFLICT (provider, account, model) DO UPDATE SET
                blocked_until = greatest(r.blocked_until, excluded.blocked_until), refusals = r.refusals + 1"
        );
        self.of_scope(Access::Write, &sql, scope, &[&wait.as_secs_f64()]).await.map(drop)
    }

    pub(super) async fn blocked(&self, scope: &LimitScope) -> Result<Duration, StoreError> {
        let sql = format!("SELECT {} FROM polylogue.rate_limits WHERE {ROW}", seconds("blocked_until"));
        let rows = self.of_scope(Access::Read, &sql, scope, &[]).await?;
        rows.first().map_or(Ok(Duration::ZERO), |row| self.get(row, 0).map(duration))
    }
}

/// How many a second, how many at once, and how many of these now.
#[expect(clippy::cast_precision_loss, reason = "no limit needs 52 bits")]
fn numbers(learned: Option<LearnedRate>) -> [Option<f64>; 3] {
    let Some(LearnedRate { rate, remaining }) = learned else { return [None; 3] };
    let burst = rate.burst.max(1.0);
    [Some(rate.per_second()), Some(burst), Some(remaining.map_or(burst, |left| burst.min(left as f64)))]
}

fn duration(seconds: Option<f64>) -> Duration {
    Duration::try_from_secs_f64(seconds.unwrap_or_default()).unwrap_or_default()
}
