//! The database of budgets, and the name of this process in it.

use polylogue_core::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;

use crate::address::Address;
use crate::database::Database;
use crate::logs::fresh_node;

/// The database, and who draws from its budgets.
pub(super) struct Inner {
    pub(super) database: Database,
    pub(super) address: Address,
    pub(super) tenant: String,
    /// The name of this process in pieces.
    pub(super) node: String,
}

impl Inner {
    pub(super) fn new(address: Address, tenant: &str) -> Self {
        let (database, node) = (Database::new(address.clone()).with_connections(2), fresh_node());
        Self { database, address, tenant: tenant.to_owned(), node }
    }

    /// The error for a budget that was removed: no fault of the conversation that it would pay for.
    pub(super) fn gone(&self, name: &str) -> StoreError {
        StoreError::Unsuitable {
            place: format!("the shared budget `{name}` in {}", self.address),
            why: "it was removed".into(),
            hint: format!("`--budget {name}=20` makes it again; or start this process again without it"),
        }
    }

    pub(super) fn get<T: FromSqlOwned>(&self, row: &Row, column: usize) -> Result<T, StoreError> {
        self.database.get(row, column)
    }
}
