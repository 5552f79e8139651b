//! The budgets that the processes with one database share: opening, listing and recounting.

use std::sync::Arc;

use polylogue_core::Allowance;
use polylogue_postgres::{BudgetListing, PostgresBudgets, Recount};

use crate::budgets::SharedBudgets;
use crate::{Error, Result, Runtime};

impl Runtime {
    /// The same store, whose conversations are paid by these budgets, next to those that they have besides: each counts the conversations of
    /// all processes. One that does not exist is made with its limits, if it has any here; limits of one that exists are changed, where one is
    /// given. For a runtime that has no conversation open.
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

    /// The same store, whose conversations are paid by the shared budgets of these names, which exist.
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

    /// The budgets that all processes with this store share; none where a store is of one machine.
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

    fn budget_pool(&self) -> Result<Arc<PostgresBudgets>> {
        let pool = self.place().shared_budgets()?;
        pool.ok_or_else(|| Error::NoSharedBudgets { place: self.place().shown() })
    }
}
