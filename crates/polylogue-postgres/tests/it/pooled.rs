//! W22: through a pooler in transaction mode, which may give each statement to another session.

use std::cell::Cell;
use std::sync::Arc;

use polylogue_core::AnyStore;
use polylogue_postgres::{Address, Postgres};
use polylogue_test::postgres::{Pooler, PostgresServer};
use polylogue_test::store;

use crate::queue::is_a_queue;

/// Fewer sessions than the stores have connections.
const SESSIONS: u16 = 3;

#[tokio::test]
async fn postgres_is_a_queue_through_a_pooler_in_transaction_mode() {
    let Some(server) = PostgresServer::start() else { return };
    let Some(pooler) = Pooler::start(&server, SESSIONS) else { return };
    is_a_queue(Arc::new(server), &pooler.url()).await;
}

#[tokio::test]
async fn postgres_conforms_through_a_pooler_in_transaction_mode() {
    let Some(server) = PostgresServer::start() else { return };
    let Some(pooler) = Pooler::start(&server, SESSIONS) else { return };
    let tenants = Cell::new(0);
    let make = || {
        tenants.set(tenants.get() + 1);
        let store = Postgres::open(Address::parse(&pooler.url()).unwrap()).unwrap();
        AnyStore::new(store.of_tenant(&format!("tenant {}", tenants.get())).unwrap())
    };
    store::conforms(make).await;
    store::survives(|| AnyStore::new(Postgres::open(Address::parse(&pooler.url()).unwrap()).unwrap())).await;
    let sessions = server
        .sql("SELECT count(*) FROM pg_stat_activity WHERE datname = 'polylogue' AND client_addr IS NOT NULL");
    let sessions: u16 = sessions.parse().unwrap();
    assert!(sessions <= SESSIONS + 1, "{sessions} sessions, and that of this question");
}
