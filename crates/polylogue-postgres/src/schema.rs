//! The tables, their format, and the migrations that make it.
//!
//! Only processes of the last format write. A migration is one transaction. It waits for the statements that run, keeps others from running, and
//! releases all claims: a process of an earlier format appends nothing more. The statements by which it would claim, post, reserve a key or schedule
//! check the format themselves, and so do its heartbeats, by which it notices. Until then it may execute statements that need no
//! claim and check nothing, on budgets, limits of model servers and followed logs: a migration after which these would write
//! something wrong gives their tables other names, so that they fail.

use polylogue_core::StoreError;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::address::Address;
use crate::error::{Failure, changed, unsuitable};

/// A step to a format of the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    /// The format that it makes.
    pub(crate) format: u64,
    /// The oldest format whose processes can read these tables.
    pub(crate) oldest_reader: u64,
    /// Its statements. The first migration makes the tables, each other one changes those of the one before.
    pub(crate) sql: &'static str,
}

/// Migrations, from the oldest format to the last one.
pub(crate) type Formats = &'static [Migration];

/// Those of this version. A later version adds migrations at the end, and changes none.
pub(crate) const FORMATS: Formats =
    &[Migration { format: 10, oldest_reader: 10, sql: include_str!("schema.sql") }];

/// The format of the tables.
pub(crate) const FORMAT: u64 = last(FORMATS);

/// The format that the last migration makes.
pub(crate) const fn last(formats: Formats) -> u64 {
    match formats {
        [.., last] => last.format,
        [] => 0,
    }
}

/// The tables that every process uses; `format` is read before.
pub(crate) const TABLES: [&str; 14] = [
    "archives", "blobs", "budget_logs", "budgets", "events", "inbox", "logs", "nodes", "rate_limits",
    "reserved_keys", "set_aside", "slots", "teams", "watched",
];

const MISSING: &str =
    "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass('polylogue.' || name) IS NULL LIMIT 1";

/// A right that the user lacks on one of [`TABLES`], or to number claims, and on what.
pub(crate) const RIGHTS: &str = "SELECT what, name FROM unnest($1::text[]) AS name, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS what
        WHERE NOT has_table_privilege('polylogue.' || name, what)
    UNION ALL SELECT 'USAGE', name FROM unnest(ARRAY['fences', 'leases']) AS name
        WHERE NOT has_sequence_privilege('polylogue.' || name, 'USAGE, UPDATE')
    LIMIT 1";

/// Begins the transaction of a migration: one at a time. What is read of tables after the lock is what the one before has left. Timeouts of
/// the database do not count in it.
pub(crate) const BEGIN: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = 0; SELECT pg_advisory_xact_lock(5787213827046133840)";

/// Whether there are no tables. `to_regclass` would say what the session has seen before it had the lock.
const HAS_NONE: &str =
    "SELECT NOT EXISTS (SELECT FROM pg_tables WHERE (schemaname, tablename) = ('polylogue', 'format'))";

/// Whether the schema has nothing of another program, if it is there.
const IS_EMPTY: &str =
    "SELECT NOT EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'polylogue')";

/// The code with which `polylogue.is_format` fails.
const OTHER_FORMAT: &str = "PLFMT";

/// Creates the tables if there are none, which `has_format` says. Returns the format of those that are there, if it is newer and they can be
/// read.
pub(crate) async fn ensure(
    client: &Client,
    address: &Address,
    formats: Formats,
    has_format: bool,
) -> Result<Option<u64>, Failure> {
    match has_format {
        true => check(client, address, formats).await,
        false => create(client, address, formats).await,
    }
}

fn foreign(address: &Address) -> StoreError {
    let why = "its schema `polylogue` has tables of another program";
    StoreError::Foreign { place: address.to_string(), why: why.into() }
}

async fn holds(client: &Client, address: &Address, sql: &str) -> Result<bool, Failure> {
    let row = client.query_typed_one(sql, &[]).await.and_then(|row| row.try_get(0));
    row.map_err(|error| Failure::of(address, &error))
}

/// Executes statements without parameters. The end of the connection undoes the transaction of those that fail.
pub(crate) async fn execute(client: &Client, address: &Address, sql: &str) -> Result<(), Failure> {
    client.batch_execute(sql).await.map_err(|error| Failure::of(address, &error))
}

/// Creates the tables in one transaction; of several processes at once, one does. Returns the same as [`ensure`].
pub(crate) async fn create(
    client: &Client,
    address: &Address,
    formats: Formats,
) -> Result<Option<u64>, Failure> {
    execute(client, address, BEGIN).await?;
    if !holds(client, address, HAS_NONE).await? {
        execute(client, address, "ROLLBACK").await?;
        return check(client, address, formats).await;
    }
    match holds(client, address, IS_EMPTY).await? {
        true => apply(client, address, formats).await.map(|()| None),
        // The transaction ends with its connection.
        false => Err(Failure::Refused(foreign(address))),
    }
}

/// Executes migrations in a transaction that has begun, and commits it.
pub(crate) async fn apply(
    client: &Client,
    address: &Address,
    migrations: &[Migration],
) -> Result<(), Failure> {
    for Migration { format, oldest_reader, sql } in migrations {
        execute(client, address, sql).await?;
        let noted = format!("UPDATE polylogue.format SET format = {format}, oldest_reader = {oldest_reader}");
        execute(client, address, &noted).await?;
    }
    execute(client, address, "COMMIT").await
}

/// The format of the tables, and the oldest one whose processes can read them.
pub(crate) async fn stored(client: &Client, address: &Address) -> Result<(u64, u64), Failure> {
    let failed = |error| Failure::of(address, &error);
    let rows = client.query_typed("SELECT format, oldest_reader FROM polylogue.format", &[]).await;
    let rows = rows.map_err(failed)?;
    let [row] = rows.as_slice() else { return Err(Failure::Refused(foreign(address))) };
    let number =
        |column| row.try_get::<_, i32>(column).map(|number| u64::try_from(number).unwrap_or_default());
    Ok((number(0).map_err(failed)?, number(1).map_err(failed)?))
}

async fn check(client: &Client, address: &Address, formats: Formats) -> Result<Option<u64>, Failure> {
    let ((found, oldest_reader), known) = (stored(client, address).await?, last(formats));
    if found == known {
        return Ok(None);
    }
    match found > known && oldest_reader <= known {
        true => Ok(Some(found)),
        false => Err(Failure::Refused(refusal(address, formats, found))),
    }
}

/// The error for tables of another format than the last one.
pub(crate) fn refusal(address: &Address, formats: Formats, found: u64) -> StoreError {
    let (place, known) = (address.to_string(), last(formats));
    if formats.iter().any(|migration| migration.format == found) {
        let why = format!("its tables have format {found}, and this version uses format {known}");
        let hint =
            "`polylogue migrate` changes them; processes of earlier versions do not write there after that";
        return unsuitable(address, &why, hint);
    }
    match found > known {
        true => StoreError::Newer { place, found, known },
        false => StoreError::Older { place, found, known },
    }
}

/// Fails if a table is missing. Most of them are not needed before a conversation is under way.
pub(crate) async fn check_tables(client: &Client, address: &Address) -> Result<(), Failure> {
    let failed = |error| Failure::of(address, &error);
    let rows =
        client.query_typed(MISSING, &[(&TABLES.as_slice(), Type::TEXT_ARRAY)]).await.map_err(failed)?;
    let Some(row) = rows.first() else { return Ok(()) };
    let name: String = row.try_get(0).map_err(failed)?;
    Err(Failure::Refused(changed(address, &format!("the table `polylogue.{name}` does not exist"))))
}

/// The format of the tables, if a statement has failed because a process has migrated them.
pub(crate) fn changed_format(error: &tokio_postgres::Error) -> Option<u64> {
    let error = error.as_db_error().filter(|error| error.code().code() == OTHER_FORMAT)?;
    error.message().parse().ok()
}
