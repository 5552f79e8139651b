//! The connections of shared limits, and the names of accounts in the tables.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicI64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use polylogue_core::{LimitScope, StoreError};
use tokio::sync::OnceCell;
use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;

use crate::address::Address;
use crate::database::{Access, Database, Parameter};
use crate::logs::fresh_node;

/// Makes the commit of a statement not wait for the disk.
pub(super) const UNSYNCED: &str =
    "unsynced AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS is_off)";

/// The database, and what this process has of it.
pub(super) struct Inner {
    pub(super) database: Database,
    /// The name of this process in leases.
    pub(super) node: String,
    salt: OnceCell<[u8; 32]>,
    pub(super) slots: HeldSlots,
}

/// The slots that this process has.
#[derive(Default)]
pub(super) struct HeldSlots {
    pub(super) tickets: AtomicI64,
    held: Mutex<HashSet<i64>>,
    /// How many rows a server has.
    rows: Mutex<BTreeMap<LimitScope, u32>>,
}

impl HeldSlots {
    pub(super) fn held(&self) -> MutexGuard<'_, HashSet<i64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn rows(&self) -> MutexGuard<'_, BTreeMap<LimitScope, u32>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    pub(super) fn new(address: Address) -> Self {
        // Its statements wait for no disk.
        let database = Database::new(address).with_connections(1);
        Self { database, node: fresh_node(), salt: OnceCell::new(), slots: HeldSlots::default() }
    }

    /// The name of an account in the tables: a digest that is keyed by the database.
    async fn account(&self, scope: &LimitScope) -> Result<String, StoreError> {
        let read = || async {
            let rows = self.database.query(Access::Read, "SELECT salt FROM polylogue.format", &[]).await?;
            let salt: Vec<u8> = match rows.first() {
                Some(row) => self.get(row, 0)?,
                None => Vec::new(),
            };
            Ok::<_, StoreError>(*blake3::hash(&salt).as_bytes())
        };
        let salt = self.salt.get_or_try_init(read).await?;
        let digest = blake3::keyed_hash(salt, &scope.account).to_hex();
        Ok(digest.chars().take(32).collect())
    }

    pub(super) fn get<T: FromSqlOwned>(&self, row: &Row, column: usize) -> Result<T, StoreError> {
        self.database.get(row, column)
    }

    /// Executes a statement whose first parameters are the provider, the account and the model of `scope`.
    pub(super) async fn of_scope(
        &self,
        access: Access,
        sql: &str,
        scope: &LimitScope,
        more: &[&dyn Parameter],
    ) -> Result<Vec<Row>, StoreError> {
        let account = self.account(scope).await?;
        let mut parameters: Vec<&dyn Parameter> = vec![&scope.provider, &account, &scope.model];
        parameters.extend_from_slice(more);
        self.database.query(access, sql, &parameters).await
    }
}
