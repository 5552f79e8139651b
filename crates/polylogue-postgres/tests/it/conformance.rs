//! The store keeps all promises of stores.

use std::cell::Cell;

use polylogue_core::AnyStore;
use polylogue_test::postgres::PostgresServer;
use polylogue_test::store;

use crate::support::open;

/// W1: twice on one database, whose tenants are separate stores. The suite has titles with NUL and events of a megabyte.
#[tokio::test]
async fn postgres_conforms_twice_on_one_database() {
    let Some(server) = PostgresServer::start() else { return };
    let tenants = Cell::new(0);
    let make = || {
        tenants.set(tenants.get() + 1);
        AnyStore::new(open(&server).of_tenant(&format!("tenant {}", tenants.get())).unwrap())
    };
    store::conforms(make).await;
    store::conforms(make).await;
    assert!(tenants.get() > 60, "each rule has a store of its own");
}

#[tokio::test]
async fn postgres_survives() {
    let Some(server) = PostgresServer::start() else { return };
    store::survives(|| AnyStore::new(open(&server))).await;
    store::survives(|| AnyStore::new(open(&server).of_tenant("again").unwrap())).await;
}
