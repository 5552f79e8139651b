//! What this process shares with others that use the same database.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use polylogue_core::SharedLimits;
use polylogue_postgres::{Address, PostgresBudgets, PostgresLimits};

use crate::Result;

/// The limits of each database, by its address: one for all teams of the process, so that their callers draw together.
static LIMITS: LazyLock<Mutex<HashMap<String, Arc<PostgresLimits>>>> = LazyLock::new(Mutex::default);

/// The limits in the database at `address`.
pub(crate) fn limits(address: &Address) -> Result<Arc<dyn SharedLimits>> {
    let mut all = LIMITS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = address.to_string();
    if let Some(limits) = all.get(&place) {
        return Ok(Arc::clone(limits) as Arc<dyn SharedLimits>);
    }
    let limits = Arc::new(PostgresLimits::open(address.clone())?);
    all.insert(place, Arc::clone(&limits));
    Ok(limits)
}

/// The budgets of each database and tenant that the process has open: each process draws once.
static BUDGETS: LazyLock<Mutex<OpenBudgets>> = LazyLock::new(Mutex::default);

/// By the address of the database, and the tenant.
type OpenBudgets = HashMap<(String, String), Weak<PostgresBudgets>>;

/// The budgets in the database at `address`, for the conversations of a tenant. What was drawn is returned when the last one is dropped.
pub(crate) fn budgets(address: &Address, tenant: &str) -> Result<Arc<PostgresBudgets>> {
    let mut all = BUDGETS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = (address.to_string(), tenant.to_owned());
    if let Some(budgets) = all.get(&place).and_then(Weak::upgrade) {
        return Ok(budgets);
    }
    let budgets = Arc::new(PostgresBudgets::open(address.clone(), tenant)?);
    all.insert(place, Arc::downgrade(&budgets));
    Ok(budgets)
}
