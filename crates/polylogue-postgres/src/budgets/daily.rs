//! Budgets of a day, such as those of the tokens of servers. Their names are reserved, and each pays for a log until another one does.

use polylogue_core::{Allowance, Budget, CountedUsage, LogId, StopReason, StoreError};

use super::inner::Inner;
use super::logs::RunBy;
use super::names::{day_of, title};
use super::{LogUsage, PostgresBudgets};
use crate::database::{Access, Parameter};

/// After so many days a budget is removed, with what it says of logs.
const KEPT_DAYS: u64 = 31;

/// Ends that a budget pays for a log, at its event `$4`.
const END: &str = "UPDATE polylogue.budget_logs SET until_event = $4
    WHERE tenant = $1 AND log = $2 AND budget = $3 AND until_event IS NULL";

/// Removes the budgets of the days before `$1` of which no process has drawn.
const FORGET: &str = "WITH old AS MATERIALIZED (
        SELECT name FROM polylogue.budgets WHERE name ~ '^@.*:[0-9]{1,18}$' AND pieces = '{}'
            AND substring(name FROM '[0-9]{1,18}$')::bigint < $1
            AND NOT EXISTS (SELECT FROM polylogue.budget_logs WHERE budget = name AND node IS NOT NULL) FOR UPDATE),
    logs AS (DELETE FROM polylogue.budget_logs USING old WHERE budget = old.name)
    DELETE FROM polylogue.budgets USING old WHERE budgets.name = old.name";

impl PostgresBudgets {
    /// Creates a budget of a day, if there is none, and forgets those of earlier days.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn make_daily(&self, name: &str, limits: Allowance) -> Result<(), StoreError> {
        if self.accounts().contains_key(name) {
            return Ok(());
        }
        self.set(name, limits).await?;
        let Some(day) = day_of(name) else { return Ok(()) };
        let is_over = |name: &str| day_of(name).is_some_and(|of| of < day);
        self.accounts().retain(|name, account| !is_over(name) || account.budget().is_in_use());
        self.run(move |inner| async move { inner.forget_before(day.saturating_sub(KEPT_DAYS)).await }).await
    }

    /// Returns the limit of a budget that is reached for all processes together, and how much is used; `None` if none is, or
    /// there is no such budget.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn reached(
        &self,
        name: &str,
    ) -> Result<Option<(StopReason, Allowance, CountedUsage)>, StoreError> {
        let open = self.accounts().get(name).map(|account| account.budget().clone());
        let of = |budget: Budget| budget.reached().map(|reason| (reason, budget.limits(), budget.used()));
        // It may have refused a call, though something is left.
        if let Some(reached) = open.and_then(of) {
            return Ok(Some(reached));
        }
        let wanted = name.to_owned();
        let standing = self.run(move |inner| async move { inner.standing(&wanted).await }).await?;
        Ok(standing.and_then(|standing| {
            let budget = Budget::new(title(name), standing.limits);
            budget.spend(standing.spent);
            of(budget)
        }))
    }

    /// Notes that a budget no longer pays for the log `id`, which has `events` events and has used what `usage` says, as in
    /// [`pay`](Self::pay).
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn end(&self, name: &str, id: &LogId, events: u64, usage: LogUsage) -> Result<(), StoreError> {
        let (name, id) = (name.to_owned(), id.clone());
        self.run(move |inner| async move { inner.end(&name, &id, events, usage).await }).await
    }
}

impl Inner {
    async fn forget_before(&self, day: u64) -> Result<(), StoreError> {
        let day = i64::try_from(day).unwrap_or(i64::MAX);
        self.database.query(Access::Write, FORGET, &[&day]).await.map(drop)
    }

    /// What was used so far is counted first: a process that dies in between leaves a budget that still pays.
    async fn end(&self, name: &str, id: &LogId, events: u64, usage: LogUsage) -> Result<(), StoreError> {
        self.count((name, &self.tenant, id), Some(usage), None, RunBy::Any).await?;
        let events = events.cast_signed();
        let parameters: [&dyn Parameter; 4] = [&self.tenant, &id.as_str(), &name, &events];
        self.database.query(Access::Write, END, &parameters).await.map(drop)
    }
}
