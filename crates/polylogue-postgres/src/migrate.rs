//! Migrating tables to the last format, when a person asks for it: processes of earlier versions cannot write there after that.

use polylogue_core::StoreError;

use crate::address::Address;
use crate::claim::{freed, is_woken, still_parked};
use crate::connection::connect_to_migrate;
use crate::database::Database;
use crate::error::{Failure, unsuitable};
use crate::schema::{BEGIN, apply, execute, last, refusal, stored};

/// What a migration has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    /// The format of the tables before it.
    pub from: u64,
    /// Their format now; equal to [`from`](Self::from) if there was nothing to do.
    pub to: u64,
    /// The number of conversations that processes were running, and do not run any more. Workers continue those that they would continue if these
    /// processes had died.
    pub released: u64,
}

/// Waits for the statements that run, and keeps others from running until the end of the transaction. Not for long: those that come
/// after it wait, too, and claims expire.
const LOCK: &str = "SET LOCAL lock_timeout = '10s'; LOCK TABLE polylogue.logs IN ACCESS EXCLUSIVE MODE; SET LOCAL lock_timeout = 0";

/// Releases all claims. Returns how many of them had not expired.
const RELEASE: &str = concat!(
    "WITH held AS (SELECT nr, lease FROM polylogue.logs WHERE holder IS NOT NULL),
    released AS (
        UPDATE polylogue.logs SET ",
    freed!(),
    ", ",
    still_parked!(),
    ", due = CASE WHEN due IS NOT NULL OR ",
    is_woken!(),
    " THEN now() END FROM held WHERE logs.nr = held.nr)
    SELECT count(*) FROM held WHERE lease > now()"
);

/// Migrates the tables to the last format, and creates them if there are none.
pub(crate) async fn migrate(database: &Database) -> Result<Migrated, Failure> {
    let (address, formats) = (database.address(), database.formats());
    let client = connect_to_migrate(address, formats).await?;
    execute(&client, address, BEGIN).await?;
    let ((from, _), to) = (stored(&client, address).await?, last(formats));
    if from == to {
        // The transaction ends with its connection.
        return Ok(Migrated { from, to, released: 0 });
    }
    let known = formats.iter().position(|migration| migration.format == from);
    let Some(later) = known.and_then(|known| formats.get(known + 1..)) else {
        return Err(Failure::Refused(refusal(address, formats, from)));
    };
    execute(&client, address, LOCK).await.map_err(|failure| is_locked(address, failure))?;
    let released = client.query_typed_one(RELEASE, &[]).await;
    let released = released.and_then(|row| row.try_get::<_, i64>(0));
    let released = released.map_err(|error| Failure::of(address, &error))?.cast_unsigned();
    apply(&client, address, later).await?;
    Ok(Migrated { from, to, released })
}

/// The error for tables that another program has locked, if that is why locking them failed.
fn is_locked(address: &Address, failure: Failure) -> Failure {
    match failure {
        Failure::Again(StoreError::Unsuitable { .. }) => Failure::Refused(unsuitable(
            address,
            "another program has locked its tables for more than 10 s, and nothing was changed",
            "migrate again when that program, such as a backup, has ended",
        )),
        failure => failure,
    }
}

#[cfg(test)]
#[path = "migrate_tests.rs"]
mod tests;
