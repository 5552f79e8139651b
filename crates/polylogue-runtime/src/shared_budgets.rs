//! The budgets that the processes with one database share: opening, listing and recounting.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use polylogue::runs::batch::BudgetSource;
use polylogue_core::{Allowance, Budget, Chat, CountedUsage, Log, StopReason};
use polylogue_postgres::{BudgetListing, PostgresBudgets, Recount};

use crate::budgets::{Paying, SharedBudgets};
use crate::{Error, Prepared, Result, Runtime};

impl Runtime {
    /// Returns the same runtime, whose conversations are paid by these budgets, next to those that they have besides: each
    /// counts the conversations of all processes. One that does not exist is made with its limits, if it has any here; limits
    /// of one that exists are changed, where one is given. For a runtime that has no conversation open.
    ///
    /// # Errors
    /// [`Error::NoSharedBudgets`] where a store is of one machine, [`Error::UnknownBudget`], or when the database cannot be written.
    pub async fn with_shared_budgets(self, budgets: &[(String, Allowance)]) -> Result<Self> {
        if budgets.is_empty() {
            return Ok(self);
        }
        let pool = self.budget_pool()?;
        for (name, limits) in budgets {
            if *limits != Allowance::default() {
                pool.set(name, *limits).await?;
            }
            if pool.budget(name).await?.is_none() {
                return Err(Error::UnknownBudget { name: name.clone() });
            }
        }
        self.paid_by(budgets.iter().map(|(name, _)| name.clone()).collect())
    }

    /// Returns the same runtime, whose conversations are paid by the shared budgets of these names, which exist.
    ///
    /// # Errors
    /// [`Error::NoSharedBudgets`].
    pub fn paid_by(self, names: Vec<String>) -> Result<Self> {
        if names.is_empty() {
            return Ok(self);
        }
        let pool = self.budget_pool()?;
        Ok(self.with_shared(SharedBudgets::new(names, pool)))
    }

    /// Returns the budgets that all processes with this store share; none where a store is of one machine.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn shared_budgets(&self) -> Result<Vec<BudgetListing>> {
        match self.place().shared_budgets()? {
            Some(pool) => Ok(pool.list().await?),
            None => Ok(Vec::new()),
        }
    }

    /// Sets what was used of a shared budget to what the logs of its conversations say.
    ///
    /// # Errors
    /// As [`with_shared_budgets`](Self::with_shared_budgets).
    pub async fn recount_budget(&self, name: &str) -> Result<Recount> {
        let recount = self.budget_pool()?.recount(name).await?;
        recount.ok_or_else(|| Error::UnknownBudget { name: name.to_owned() })
    }

    /// Removes a shared budget, with what was used of it: conversations that it paid for continue without it. Returns whether it was
    /// removed: one from which a process has drawn is not.
    ///
    /// # Errors
    /// As [`with_shared_budgets`](Self::with_shared_budgets).
    pub async fn remove_budget(&self, name: &str) -> Result<bool> {
        let removed = self.budget_pool()?.remove(name).await?;
        removed.ok_or_else(|| Error::UnknownBudget { name: name.to_owned() })
    }

    /// Returns the limit that is reached of one of these shared budgets, for all processes together: the limits of that budget,
    /// and what is used of it.
    ///
    /// # Errors
    /// As [`with_shared_budgets`](Self::with_shared_budgets).
    pub async fn reached_budget(
        &self,
        names: impl Iterator<Item = &str>,
    ) -> Result<Option<(StopReason, Allowance, CountedUsage)>> {
        let pool = self.budget_pool()?;
        for name in names {
            if let Some(reached) = pool.reached(name).await? {
                return Ok(Some(reached));
            }
        }
        Ok(None)
    }

    fn budget_pool(&self) -> Result<Arc<PostgresBudgets>> {
        let pool = self.place().shared_budgets()?;
        pool.ok_or_else(|| Error::NoSharedBudgets { place: self.place().shown() })
    }
}

/// The budgets that processes share, which pay for the conversations of a batch of a runtime.
pub struct SharedBudgetSource {
    runtime: Runtime,
    /// Why models of the team cannot be called under a limit on cost.
    unpriced: Option<Error>,
    /// Those that have paid, by their names.
    seen: Mutex<BTreeMap<String, Budget>>,
}

impl Runtime {
    /// Returns the budgets that processes share, for a batch of `prepared` with the store of this runtime: those of the runtime, and those
    /// that have paid for a conversation before. Under a limit on cost they pay for no model of unknown price.
    pub fn batch_budget_source(&self, prepared: &Prepared) -> Arc<SharedBudgetSource> {
        let unpriced = prepared.run().require_prices().err();
        Arc::new(SharedBudgetSource { runtime: self.clone(), unpriced, seen: Mutex::default() })
    }
}

impl BudgetSource for SharedBudgetSource {
    fn attach<'a>(
        &'a self,
        log: Log,
        chat: &'a Chat,
        is_new: bool,
    ) -> BoxFuture<'a, polylogue_core::Result<Log>> {
        Box::pin(async move {
            let id = (!is_new).then(|| log.id().clone());
            let paying = self.runtime.shared().paying(self.runtime.place(), id.as_ref(), None).await;
            let Some(paying) = paying.map_err(Error::into_run)? else { return Ok(log) };
            if let Some(error) = &self.unpriced
                && Paying::all(Some(&paying)).any(|budget| budget.limits().cost.is_some())
            {
                return Err(error.clone().into_run());
            }
            self.seen().extend(paying.budgets.iter().cloned());
            let paid = if is_new { paying.begin(log).await } else { paying.open(log, chat).await };
            paid.map_err(Error::into_run)
        })
    }

    fn budgets(&self) -> Vec<Budget> {
        self.seen().values().cloned().collect()
    }
}

impl SharedBudgetSource {
    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, Budget>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SharedBudgetSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBudgetSource")
            .field("names", &self.runtime.shared().names())
            .finish_non_exhaustive()
    }
}
