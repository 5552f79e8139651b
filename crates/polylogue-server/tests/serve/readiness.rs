//! `/readyz`: whether the store can be written.

use std::fs;
use std::time::{Duration, Instant};

use polylogue_runtime::StoreLocation;
use polylogue_server::{ServerLimits, ServerOptions};
use rusqlite::Connection;

use crate::client::Request;
use crate::world::{World, generous, loopback, place};

fn limits(every: Duration) -> ServerLimits {
    ServerLimits { store_check: every, ..generous() }
}

/// The status of `/readyz`, which takes no token.
async fn ready(world: &World) -> u16 {
    let response = Request::new("GET", "/readyz").send(world.address).await;
    if response.status != 200 {
        let problem = response.problem();
        assert!(!problem["hint"].as_str().unwrap().is_empty(), "{problem}");
        let path = world.dir.path().to_str().unwrap();
        assert!(!response.body.contains(path), "everyone can ask: {}", response.body);
    }
    response.status
}

#[tokio::test]
async fn a_server_is_not_ready_while_its_database_cannot_be_written() {
    let world = World::with(limits(Duration::from_millis(1))).await;
    assert_eq!(ready(&world).await, 200);
    let database = Connection::open(place(world.dir.path()).path()).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Longer than the result of a check counts.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let begun = Instant::now();
    assert_eq!(ready(&world).await, 503);
    assert!(begun.elapsed() < Duration::from_secs(10), "it does not wait for the database");
    assert_eq!(Request::new("GET", "/healthz").send(world.address).await.status, 200);
    database.execute_batch("ROLLBACK").unwrap();
    while ready(&world).await != 200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_server_is_not_ready_while_its_folder_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let options = ServerOptions {
        limits: limits(Duration::from_millis(1)),
        ..ServerOptions::new(loopback(), StoreLocation::new(&logs))
    };
    let world = World::start(dir, options).await;
    assert_eq!(ready(&world).await, 200);
    assert_eq!(fs::read_dir(&logs).unwrap().count(), 0, "nothing stays there");
    let away = world.dir.path().join("away");
    fs::rename(&logs, &away).unwrap();
    fs::write(&logs, "no folder").unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(ready(&world).await, 503);
    fs::remove_file(&logs).unwrap();
    fs::rename(&away, &logs).unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(ready(&world).await, 200);
}

#[tokio::test]
async fn many_probes_write_to_the_store_once_in_a_while() {
    let world = World::with(limits(Duration::from_hours(1))).await;
    let database = Connection::open(place(world.dir.path()).path()).unwrap();
    // It is another number after each commit of others.
    let version = || database.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = version();
    assert_eq!(ready(&world).await, 200);
    let once = version();
    assert_ne!(once, before, "the first probe writes");
    let probes = futures_util::future::join_all((0..50).map(|_| ready(&world))).await;
    assert!(probes.iter().all(|status| *status == 200), "{probes:?}");
    assert_eq!(version(), once);
}
