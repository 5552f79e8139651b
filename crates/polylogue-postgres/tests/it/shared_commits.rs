//! Appends of several logs that share a statement.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use polylogue_core::{Claim, Event, Meta, Store as _, StoreError};
use polylogue_postgres::Postgres;
use polylogue_test::postgres::PostgresServer;
use tokio_postgres::NoTls;

use crate::support::{assert_events, id, opened, some};

const LOGS: usize = 40;

/// Appends `events` to all logs at once: they wait until another transaction lets them write.
async fn append_together(
    server: &PostgresServer,
    store: &Postgres,
    claims: &[Claim],
    events: &[Arc<Event>],
) -> Vec<Result<(), StoreError>> {
    let (mut other, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let locked = other.transaction().await.unwrap();
    locked.batch_execute("LOCK TABLE polylogue.events IN EXCLUSIVE MODE").await.unwrap();
    let unlock = async {
        let waiting = "SELECT count(*) >= 4 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        while server.sql(waiting) != "t" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        locked.commit().await.unwrap();
    };
    let appends = join_all(claims.iter().map(|claim| store.append(claim, events)));
    tokio::join!(appends, unlock).0
}

/// How many appends began with the event `seq`, and how many commits they took.
fn commits(server: &PostgresServer, seq: u64) -> (usize, usize) {
    let counts = server
        .sql(&format!("SELECT count(*), count(DISTINCT xmin::text) FROM polylogue.events WHERE seq = {seq}"));
    let (appends, commits) = counts.split_once('|').unwrap();
    (appends.parse().unwrap(), commits.parse().unwrap())
}

#[tokio::test]
async fn appends_that_wait_share_commits_and_those_that_are_refused_fail_alone() {
    let Some((server, store)) = opened() else { return };
    let mut claims = Vec::new();
    for nth in 0..LOGS {
        claims.push(store.create(&id(&format!("log-{nth}")), &Meta::default()).await.unwrap());
    }
    for result in append_together(&server, &store, &claims, &some(0, 3)).await {
        result.unwrap();
    }
    let (appends, shared) = commits(&server, 0);
    println!("{appends} appends in {shared} commits");
    assert!(appends == LOGS && shared < LOGS, "{appends} appends in {shared} commits");
    // One log is damaged: it has an event that is in no head. One is claimed by another process.
    let _ = server.sql(
        "INSERT INTO polylogue.events SELECT nr, 4, '', '' FROM polylogue.logs WHERE id = 'log-7';
        UPDATE polylogue.logs SET holder = 'another' WHERE id = 'log-9'",
    );
    let results = append_together(&server, &store, &claims, &some(3, 5)).await;
    for (nth, result) in results.into_iter().enumerate() {
        match nth {
            7 => assert!(matches!(result, Err(StoreError::Damaged { .. })), "{result:?}"),
            9 => assert_eq!(result, Err(StoreError::Fenced { id: id("log-9") })),
            _ => {
                result.unwrap();
                assert_events(&store.read(&id(&format!("log-{nth}")), 0).await.unwrap(), 5);
            }
        }
    }
    assert_eq!(commits(&server, 3).0, LOGS - 2);
}

/// More appends than fit into one statement, of several events each, which follow one another in each log.
#[tokio::test]
async fn many_logs_at_once_keep_their_events_in_order() {
    let Some((_server, store)) = opened() else { return };
    let one = |nth: usize| {
        let store = &store;
        async move {
            let log = id(&format!("log-{nth}"));
            let claim = store.create(&log, &Meta::default()).await.unwrap();
            let mut next = 0;
            for count in [1, 0, 3, 2, 1] {
                store.append(&claim, &some(next, next + count)).await.unwrap();
                next += count;
            }
            assert_events(&store.read(&log, 0).await.unwrap(), next);
        }
    };
    join_all((0..100).map(one)).await;
}
