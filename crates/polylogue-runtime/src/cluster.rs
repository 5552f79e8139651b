//! What this process shares with others that use the same database.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use polylogue_core::SharedLimits;
use polylogue_postgres::{Address, PostgresLimits};

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
