//! Servers hear which logs they are asked to continue, and the process that asks knows whether one does.

use std::time::Duration;

use polylogue_postgres::{Address, PostgresAsked, PostgresWatch};
use polylogue_test::postgres::PostgresServer;

use crate::support::id;

/// The locks by which those that ask know who hears them.
const HEARING: &str = "FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted";

/// Waits until so many hear, besides those sessions.
async fn hear(server: &PostgresServer, count: usize, besides: &str) {
    let hearing = format!("SELECT count(*) {HEARING} AND pid <> ALL('{{{besides}}}'::int[])");
    while server.sql(&hearing) != count.to_string() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn all_servers_hear_what_one_is_asked_and_who_asks_knows_whether_there_are_any() {
    let Some(server) = PostgresServer::start() else { return };
    let address = || Address::parse(&server.url()).unwrap();
    let ask = async |tenant: &str, log: &str| {
        PostgresWatch::new(address(), tenant).ask_server(&id(log)).await.unwrap()
    };
    assert!(!ask("local", "early").await);
    let (mut first, mut second) = (PostgresAsked::listen(address()), PostgresAsked::listen(address()));
    hear(&server, 2, "").await;
    for (tenant, log) in [("local", "a"), ("a \"tenant\"", "b"), ("local", "a")] {
        assert!(ask(tenant, log).await);
        let asked = (tenant.to_owned(), id(log));
        assert_eq!([first.asked().await, second.asked().await], [asked.clone(), asked]);
    }
    // After their connections are lost, they hear again.
    let lost = server.sql(&format!("SELECT string_agg(pid::text, ',') {HEARING}"));
    let _ = server.sql(&format!("SELECT pg_terminate_backend(pid) {HEARING}"));
    hear(&server, 2, &lost).await;
    assert!(ask("local", "c").await);
    let asked = ("local".to_owned(), id("c"));
    assert_eq!([first.asked().await, second.asked().await], [asked.clone(), asked]);
    drop((first, second));
    hear(&server, 0, "").await;
    assert!(!ask("local", "late").await);
}
