//! W14 to W16: servers that are killed, and standbys that take their place.

use std::time::Duration;

use polylogue_core::{Queue as _, Store, StoreError};
use polylogue_postgres::{Address, Postgres};
use polylogue_test::postgres::PostgresServer;

use crate::support::{assert_events, expire, id, open, some};
use crate::writers::{Writers, Written};

const WRITERS: usize = 16;

/// Long enough for many appends, in which something happens to the server.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// No writer was refused, and every log has exactly what was acknowledged.
async fn assert_whole(written: &[Written], reader: &Postgres) {
    for writer in written {
        assert_eq!(writer.refused, None, "{}", writer.claim.id);
        assert!(writer.acknowledged > 0, "{}", writer.claim.id);
        assert_events(&reader.read(&writer.claim.id, 0).await.unwrap(), writer.acknowledged);
    }
}

/// Both servers, of which clients find the primary.
fn either(first: &PostgresServer, second: &PostgresServer) -> String {
    format!("postgres://polylogue@127.0.0.1:{},127.0.0.1:{}/polylogue", first.port(), second.port())
}

/// W14: under 16 writers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed_five_times() {
    const RESTARTS: usize = 5;
    let Some(mut server) = PostgresServer::start() else { return };
    let writers = Writers::start(&server.url(), WRITERS).await;
    let mut before = 0;
    for restart in 0..RESTARTS {
        a_moment().await;
        server.kill();
        server.restart();
        // They continue by themselves before the next one.
        let events = || server.sql("SELECT sum(events) FROM polylogue.logs").parse::<u64>().unwrap();
        let begun = std::time::Instant::now();
        let after = events();
        assert!(after > before, "restart {restart}: nothing was appended since the one before");
        while events() <= after {
            assert!(begun.elapsed() < Duration::from_secs(30), "restart {restart}: no writer continued");
            a_moment().await;
        }
        before = events();
    }
    let written = writers.stop().await;
    assert_whole(&written, &open(&server)).await;
}

/// W15.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_follow_to_a_synchronous_standby_that_has_all_they_wrote() {
    let Some(mut primary) = PostgresServer::start() else { return };
    let standby = primary.standby();
    primary.wait_for_standby(true);
    let writers = Writers::start(&either(&primary, &standby), WRITERS).await;
    a_moment().await;
    primary.kill();
    standby.promote();
    // It has no standby itself that it would wait for.
    let _ = standby.sql("ALTER SYSTEM SET synchronous_standby_names = ''");
    let _ = standby.sql("SELECT pg_reload_conf()");
    let at_failover: u64 = standby.sql("SELECT sum(events) FROM polylogue.logs").parse().unwrap();
    a_moment().await;
    a_moment().await;
    let written = writers.stop().await;
    assert_whole(&written, &open(&standby)).await;
    let acknowledged: u64 = written.iter().map(|writer| writer.acknowledged).sum();
    assert!(acknowledged > at_failover, "they continue on the standby");
}

/// W16: commits that were acknowledged are lost, as with every asynchronous standby. No log gets two writers, each is a valid beginning, and
/// each writer receives how much was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_asynchronous_standby_that_lacks_commits_has_valid_beginnings_and_one_writer_each() {
    let Some(mut primary) = PostgresServer::start() else { return };
    let mut standby = primary.standby();
    primary.wait_for_standby(false);
    let writers = Writers::start(&either(&primary, &standby), WRITERS).await;
    let all_are_there =
        || standby.sql("SELECT count(*) FROM polylogue.logs WHERE events > 0") == WRITERS.to_string();
    while !all_are_there() {
        a_moment().await;
    }
    // It lacks two seconds of commits, among them a claim: a rival got a fence that the standby has not given yet.
    standby.kill();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let _ = primary.sql(
        "INSERT INTO polylogue.logs(tenant, id, title, created_ms, origin, chain, summary, state)
        SELECT tenant, 'lost', title, created_ms, origin, chain, summary, state FROM polylogue.logs LIMIT 1",
    );
    primary.kill();
    standby.restart();
    standby.promote();
    let reader = open(&standby);
    let lost_log = reader.read(&id("lost"), 0).await;
    assert!(matches!(lost_log, Err(StoreError::NotFound { .. })), "{lost_log:?}");
    a_moment().await;
    let mut lost = 0;
    for writer in writers.stop().await {
        let (log, acknowledged) = (&writer.claim.id, writer.acknowledged);
        let kept = reader.read(log, 0).await.unwrap();
        let kept_events = kept.len() as u64;
        assert_events(&kept, kept_events);
        assert!(kept_events < acknowledged, "{log}: nothing was lost");
        // The loss is an error of the writer, which appends nothing behind it.
        let gap = StoreError::Gap { id: log.clone(), kept: kept_events, given: acknowledged };
        assert_eq!(writer.refused, Some(gap), "{log}");
        lost += acknowledged - kept_events;
    }
    // Those who look at the cluster see it, too.
    assert_eq!(lost_events(&reader).await, lost);
}

async fn lost_events(store: &Postgres) -> u64 {
    store.overview(0).await.unwrap().figures.lost_events
}

/// W16: after a failover the same fence may be given again. The holder tells the claims apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_commit_was_lost_is_void_though_its_fence_is_given_again() {
    let Some(mut primary) = PostgresServer::start() else { return };
    let first = open(&primary);
    let claim = first.create(&id("a"), &polylogue_core::Meta::default()).await.unwrap();
    first.append(&claim, &some(0, 2)).await.unwrap();
    first.release(claim).await.unwrap();
    let mut standby = primary.standby();
    primary.wait_for_standby(false);
    standby.kill();
    let url = either(&primary, &standby);
    let of_both = || Postgres::open(Address::parse(&url).unwrap()).unwrap();
    let (lost, rival) = (of_both(), of_both());
    let void = lost.claim(&id("a")).await.unwrap();
    lost.append(&void, &some(2, 4)).await.unwrap();
    primary.kill();
    standby.restart();
    standby.promote();
    // The number that the lost claim has.
    let _ = standby.sql(&format!("SELECT setval('polylogue.fences', {}, false)", void.fence));
    let valid = rival.claim(&id("a")).await.unwrap();
    assert_eq!(valid.fence, void.fence);
    for _ in 0..2 {
        assert_eq!(lost.append(&void, &some(4, 5)).await, Err(StoreError::Fenced { id: id("a") }));
    }
    assert_eq!(lost_events(&rival).await, 2, "they are counted once");
    rival.append(&valid, &some(2, 3)).await.unwrap();
    expire(&standby);
    assert_eq!(lost.renew(&void).await, Err(StoreError::Fenced { id: id("a") }));
    assert_events(&rival.read(&id("a"), 0).await.unwrap(), 3);
}
