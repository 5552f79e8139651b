//! The tables, and their format.

use polylogue_core::StoreError;
use tokio_postgres::Client;

use crate::address::Address;
use crate::error::Failure;

/// The format of the tables.
pub(crate) const FORMAT: u64 = 9;

const CREATE: &str = include_str!("schema.sql");

/// Held by who creates the tables, until its transaction ends.
const LOCK: &str = "SELECT pg_advisory_xact_lock(5787213827046133840)";

/// Creates the tables if there are none. Returns the format of those that are there, if it is newer and they can be read.
pub(crate) async fn ensure(
    client: &Client,
    address: &Address,
    has_schema: bool,
    has_format: bool,
) -> Result<Option<u64>, Failure> {
    match (has_schema, has_format) {
        (_, true) => check(client, address).await,
        (true, false) if !is_empty(client, address).await? => Err(Failure::Refused(foreign(address))),
        _ => create(client, address).await,
    }
}

fn foreign(address: &Address) -> StoreError {
    let why = "its schema `polylogue` has tables of another program";
    StoreError::Foreign { place: address.to_string(), why: why.into() }
}

async fn is_empty(client: &Client, address: &Address) -> Result<bool, Failure> {
    let sql = "SELECT NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'polylogue'::regnamespace)";
    let row = client.query_typed_one(sql, &[]).await.and_then(|row| row.try_get(0));
    row.map_err(|error| Failure::of(address, &error))
}

/// Creates the tables in one transaction; of several processes at once, one does.
async fn create(client: &Client, address: &Address) -> Result<Option<u64>, Failure> {
    // Statements of one message are one transaction.
    let script = format!("{LOCK}; {}", CREATE);
    match client.batch_execute(&script).await {
        Ok(()) => Ok(None),
        // Another process was first.
        Err(error) if error.code().is_some_and(|code| ["42P07", "42P06", "23505"].contains(&code.code())) => {
            check(client, address).await
        }
        Err(error) => Err(Failure::of(address, &error)),
    }
}

async fn check(client: &Client, address: &Address) -> Result<Option<u64>, Failure> {
    let failed = |error| Failure::of(address, &error);
    let rows = client.query_typed("SELECT format, oldest_reader FROM polylogue.format", &[]).await;
    let rows = rows.map_err(failed)?;
    let [row] = rows.as_slice() else { return Err(Failure::Refused(foreign(address))) };
    let number =
        |column| row.try_get::<_, i32>(column).map(|number| u64::try_from(number).unwrap_or_default());
    let (found, oldest) = (number(0).map_err(failed)?, number(1).map_err(failed)?);
    match found {
        FORMAT => Ok(None),
        found if found > FORMAT && oldest <= FORMAT => Ok(Some(found)),
        found if found > FORMAT => Err(Failure::Refused(newer(address, found))),
        found => {
            Err(Failure::Refused(StoreError::Older { place: address.to_string(), found, known: FORMAT }))
        }
    }
}

/// The error for tables of a later version.
pub(crate) fn newer(address: &Address, found: u64) -> StoreError {
    StoreError::Newer { place: address.to_string(), found, known: FORMAT }
}
