//! W48: settings of a server, a database or a role that would change what statements do: refused, warned of, or without effect.

use std::cell::Cell;
use std::sync::Arc;

use polylogue_core::{AnyStore, ListQuery, Meta, Store as _, StoreError};
use polylogue_postgres::{Address, Postgres};
use polylogue_test::postgres::PostgresServer;
use polylogue_test::store;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::support::{id, open, opened};
use crate::{budgets, limits, queue};

/// Settings that change what other programs read and write, and nothing here. The isolation level is that of the database, unless its user has
/// another one.
const UNUSUAL: [&str; 13] = [
    "array_nulls=off",
    "bytea_output=escape",
    "client_encoding=LATIN1",
    "DateStyle=SQL, DMY",
    "default_transaction_deferrable=on",
    "default_transaction_isolation=serializable",
    "extra_float_digits=-15",
    "idle_in_transaction_session_timeout=1ms",
    "IntervalStyle=sql_standard",
    "row_security=off",
    "search_path=",
    "standard_conforming_strings=off",
    "TimeZone=Asia/Kathmandu",
];

/// Gives the user of the address the isolation level that is needed, as the hint says.
fn commits_are_read(server: &PostgresServer) {
    let _ = server.sql(
        "ALTER ROLE polylogue IN DATABASE polylogue SET default_transaction_isolation = 'read committed'",
    );
}

#[tokio::test]
async fn another_isolation_level_is_refused_until_the_user_has_read_committed() {
    let Some(server) = PostgresServer::start() else { return };
    for level in ["repeatable read", "serializable"] {
        let _ =
            server.sql(&format!("ALTER DATABASE polylogue SET default_transaction_isolation = '{level}'"));
        let store = open(&server);
        let error = store.list(&ListQuery::default()).await.unwrap_err();
        assert_eq!(store.create(&id("a"), &Meta::default()).await, Err(error.clone()));
        assert_eq!(store.check().await.unwrap_err(), error);
        let why = format!("`default_transaction_isolation` is {level}");
        assert!(
            matches!(error, StoreError::Unsuitable { .. }) && error.to_string().contains(&why),
            "{error}"
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("'read committed'")), "{error:?}");
    }
    assert_eq!(server.sql("SELECT to_regnamespace('polylogue') IS NULL"), "t", "nothing was made");
    commits_are_read(&server);
    open(&server).create(&id("a"), &Meta::default()).await.unwrap();
}

/// It is noticed by a statement that fails because of it: the next connection is checked.
#[tokio::test]
async fn an_isolation_level_that_is_set_later_is_refused_when_a_statement_fails_by_it() {
    let Some((server, store)) = opened() else { return };
    store.create(&id("a"), &Meta::default()).await.unwrap();
    drop(store);
    // As a conflict at that level does.
    let _ = server.sql(
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not serialize access due to concurrent update' USING ERRCODE = '40001';
        END $$;
        CREATE TRIGGER fails BEFORE INSERT ON polylogue.logs EXECUTE FUNCTION fails()",
    );
    let store = open(&server);
    store.check().await.unwrap();
    let _ = server.sql("ALTER DATABASE polylogue SET default_transaction_isolation = 'serializable'");
    let error = store.create(&id("b"), &Meta::default()).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Unsuitable { why, .. } if why.contains("serializable")),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unusual_settings_of_a_server_change_nothing() {
    let Some(server) = PostgresServer::start_with(&UNUSUAL) else { return };
    let isolation = || server.sql("SHOW default_transaction_isolation");
    assert_eq!(isolation(), "serializable", "it is that of other users");
    commits_are_read(&server);
    assert_eq!(isolation(), "read committed");
    let tenants = Cell::new(0);
    store::conforms(|| {
        tenants.set(tenants.get() + 1);
        AnyStore::new(open(&server).of_tenant(&format!("tenant {}", tenants.get())).unwrap())
    })
    .await;
    budgets::pays_for_lost_calls(&server).await;
    limits::grants_rates(&server).await;
    let url = server.url();
    queue::is_a_queue(Arc::new(server), &url).await;
}

#[tokio::test]
async fn a_database_whose_encoding_cannot_hold_every_text_is_refused() {
    let Some(server) = PostgresServer::start() else { return };
    for encoding in ["SQL_ASCII", "LATIN1"] {
        let _ = server.sql(&format!("CREATE DATABASE {encoding} ENCODING '{encoding}' TEMPLATE template0"));
        let url = server.url();
        // Names are lower case.
        let url = format!("{}/{}", url.trim_end_matches("/polylogue"), encoding.to_lowercase());
        let store = Postgres::open(Address::parse(&url).unwrap()).unwrap();
        let error = store.create(&id("a"), &Meta::default()).await.unwrap_err();
        assert!(error.to_string().contains(&format!("its encoding is {encoding}")), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("--encoding=UTF8")), "{error:?}");
    }
}

/// A session that has locked a table.
async fn locked(server: &PostgresServer, table: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let lock = format!("BEGIN; SET LOCAL lock_timeout = 0; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE");
    client.batch_execute(&lock).await.unwrap();
    client
}

/// The transaction of `statement` that waits for a lock, as soon as there is one other than `last`.
async fn waiting<T>(client: &Client, statement: &JoinHandle<T>, last: Option<String>) -> Option<String> {
    let sql = "SELECT virtualtransaction FROM pg_locks WHERE NOT granted";
    loop {
        assert!(!statement.is_finished(), "it is not tried again");
        let rows = client.query(sql, &[]).await.unwrap();
        let found: Option<String> = rows.first().map(|row| row.get(0));
        if found.is_some() && found != last {
            return found;
        }
    }
}

#[tokio::test]
async fn timeouts_of_the_database_are_warned_of_and_what_they_cancel_is_tried_again() {
    let Some(server) = PostgresServer::start() else { return };
    open(&server).create(&id("a"), &Meta::default()).await.unwrap();
    let _ = server.sql(
        "ALTER ROLE polylogue SET lock_timeout = '200ms'; ALTER ROLE polylogue SET statement_timeout = '59s'",
    );
    let store = open(&server);
    let warnings = store.check().await.unwrap();
    for setting in ["`lock_timeout` is 200ms", "`statement_timeout` is 59s"] {
        assert!(warnings.iter().any(|warning| warning.starts_with(setting)), "{warnings:?}");
    }
    // Of a store that has connected.
    let lock = locked(&server, "polylogue.logs").await;
    let listed = tokio::spawn(async move { store.list(&ListQuery::default()).await });
    let first = waiting(&lock, &listed, None).await;
    waiting(&lock, &listed, first).await;
    lock.batch_execute("COMMIT").await.unwrap();
    assert_eq!(listed.await.unwrap().unwrap().logs.len(), 1);
    // On first use it is an error at once: it may be the setting.
    let _lock = locked(&server, "polylogue.format").await;
    let error = open(&server).list(&ListQuery::default()).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Unsuitable { .. }) && error.to_string().contains("lock timeout"),
        "{error}"
    );
    assert!(error.hint().is_some_and(|hint| hint.contains("lock_timeout")), "{error:?}");
}
