//! Budgets that all processes with the same database share.
//!
//! A budget is one row. A process draws pieces of it, which count as used for all others, and reports what the calls of each log have
//! really used: [`polylogue_core::Budget`] knows how much, and a task for each budget does it here. Each statement decides by the row
//! that it changes, and can be repeated.

mod account;
mod daily;
mod inner;
mod logs;
mod names;
mod pieces;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use polylogue_core::{Allowance, Budget, LogId, StoreError};

use self::account::Account;
use self::inner::Inner;
pub use self::logs::{LogUsage, Recount};
pub use self::names::{is_daily, shared_budget_name, token_budget};
pub use self::pieces::BudgetListing;
use crate::address::Address;
use crate::thread::Thread;

/// How long a process that ends waits until its allowances are returned. Otherwise its lease expires.
const FAREWELL: Duration = Duration::from_secs(3);

/// The budgets in a database, as one process draws from them.
#[derive(derive_more::Debug)]
#[debug("PostgresBudgets {{ address: {:?}, .. }}", self.inner.address)]
pub struct PostgresBudgets {
    thread: Thread,
    inner: Arc<Inner>,
    open: Mutex<HashMap<String, Arc<Account>>>,
}

impl PostgresBudgets {
    /// Opens the budgets in the database at `address`, which is connected to on first use, for the logs of a tenant.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn open(address: Address, tenant: &str) -> Result<Self, StoreError> {
        let thread = Thread::start("polylogue-budgets", &address)?;
        Ok(Self { thread, inner: Arc::new(Inner::new(address, tenant)), open: Mutex::default() })
    }

    /// Creates a budget, or changes its limits: a limit without a value stays as it was.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn set(&self, name: &str, limits: Allowance) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.run(move |inner| async move { inner.set(&name, limits).await }).await
    }

    /// Returns the budget of this name, from which calls of this process are paid until this is dropped; `None` if there is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn budget(&self, name: &str) -> Result<Option<Budget>, StoreError> {
        if let Some(account) = self.accounts().get(name) {
            return Ok(Some(account.budget().clone()));
        }
        let wanted = name.to_owned();
        let standing = self.run(move |inner| async move { inner.standing(&wanted).await }).await?;
        let Some(standing) = standing else { return Ok(None) };
        let mut accounts = self.accounts();
        let account = accounts.entry(name.to_owned()).or_insert_with(|| {
            let account = Arc::new(Account::new(name, standing));
            self.thread.handle.spawn(Account::keep(Arc::downgrade(&account), Arc::downgrade(&self.inner)));
            account
        });
        Ok(Some(account.budget().clone()))
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<String, Arc<Account>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of the budgets that pay for the log `id`.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn of_log(&self, id: &LogId) -> Result<Vec<String>, StoreError> {
        let id = id.clone();
        self.run(move |inner| async move { inner.names_of(&id).await }).await
    }

    /// Lets `budget`, which is [for the log](Budget::for_log) `id`, pay for it from now on, under the limits that the database has. `usage` is
    /// what the log has used so far: what an earlier process has not reported of it is counted now, lost calls up to what that process had
    /// drawn. `None` for a new log, which has used nothing, and inherits nothing of one that was removed.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn pay(
        &self,
        (name, budget): (&str, &Budget),
        id: &LogId,
        usage: Option<LogUsage>,
    ) -> Result<(), StoreError> {
        let (name, id) = (name.to_owned(), id.clone());
        let standing = self.run(move |inner| async move { inner.claim(&name, &id, usage).await }).await?;
        budget.knows(standing.limits, standing.spent);
        Ok(())
    }

    /// Lists all budgets, by name.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn list(&self) -> Result<Vec<BudgetListing>, StoreError> {
        self.run(|inner| async move { inner.list().await }).await
    }

    /// Sets what was used of a budget to what the logs of all its conversations say. Those that a process runs report by themselves; those
    /// that may have lost a call when their process died are left as they are, and so is what that process had drawn: they are counted
    /// when they continue. `None` if there is no such budget.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub async fn recount(&self, name: &str) -> Result<Option<Recount>, StoreError> {
        let name = name.to_owned();
        self.run(move |inner| async move { inner.recount(&name).await }).await
    }

    /// Removes a budget, with what was used of it, unless a process has drawn from it whose lease has not expired: logs that it paid for
    /// continue without it. Returns whether it was removed; `None` if there is none.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn remove(&self, name: &str) -> Result<Option<bool>, StoreError> {
        let name = name.to_owned();
        self.run(move |inner| async move {
            match inner.standing(&name).await? {
                Some(_) => inner.remove(&name).await.map(Some),
                None => Ok(None),
            }
        })
        .await
    }

    /// Runs an operation on the thread of the budgets.
    async fn run<T, F>(&self, operation: impl FnOnce(Arc<Inner>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.thread.run(operation(Arc::clone(&self.inner))).await
    }
}

impl Drop for PostgresBudgets {
    fn drop(&mut self) {
        let accounts: Vec<_> = self.accounts().drain().map(|(_, account)| account).collect();
        if !accounts.is_empty() {
            let (done, left) = mpsc::channel();
            let inner = Arc::clone(&self.inner);
            let place = self.inner.address.to_string();
            let closed = StoreError::Io { place, why: "its shared budgets are closed".into() };
            self.thread.handle.spawn(async move {
                for account in accounts {
                    account.leave(&inner).await;
                    account.close(closed.clone());
                }
                // Fails only when it took too long.
                let _ = done.send(());
            });
            let _ = left.recv_timeout(FAREWELL);
        }
    }
}
