//! W2, W3, W7, W12 and W29: the database as a queue.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polylogue_core::{
    AnyQueue, Due, Features, LeaseNumber, LogId, MAX_TRIES, Meta, Queue as _, QueueState, Store as _,
    Timestamp, WorkerInfo,
};
use polylogue_postgres::{Address, LivePoint, Postgres, PostgresWatch};
use polylogue_test::postgres::PostgresServer;
use polylogue_test::queue::{Fixture, conforms};

use crate::support::{id, open, some};

#[tokio::test]
async fn postgres_is_a_queue() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.url();
    is_a_queue(Arc::new(server), &url).await;
}

/// The suite of queues, whose clients connect to `url`.
pub(crate) async fn is_a_queue(server: Arc<PostgresServer>, url: &str) {
    let tenants = Cell::new(0);
    conforms(|| {
        tenants.set(tenants.get() + 1);
        let tenant = format!("queue {}", tenants.get());
        let store = Postgres::open(Address::parse(url).unwrap()).unwrap();
        let queue = AnyQueue::new(store.of_tenant(&tenant).unwrap()).unwrap();
        let server = Arc::clone(&server);
        let pass = move |time: Duration| {
            let by = format!("interval '{} milliseconds'", time.as_millis());
            let _ = server.sql(&format!(
                "UPDATE polylogue.logs SET due = due - {by}, lease = lease - {by} WHERE tenant = '{tenant}'"
            ));
        };
        Fixture { queue, pass: Box::new(pass) }
    })
    .await;
}

/// `count` logs, each due a second after the one before; `due` and `needs` are made from `n`.
async fn fill(server: &PostgresServer, count: usize, due: &str, needs: &str) {
    let store = open(server);
    let claim = store.create(&id("log-0"), &Meta::default()).await.unwrap();
    store.append(&claim, &some(0, 1)).await.unwrap();
    store.release(claim).await.unwrap();
    let _ = server.sql(&format!(
        "INSERT INTO polylogue.logs(tenant, id, title, created_ms, origin, chain, summary, state, events, due, needs)
            SELECT tenant, 'log-' || n, title, created_ms, origin, chain, summary, state, events, {due}, {needs}
            FROM polylogue.logs, generate_series(1, {count}) n;
        DELETE FROM polylogue.logs WHERE id = 'log-0'; ANALYZE polylogue.logs"
    ));
}

fn number(id: &LogId) -> u64 {
    id.as_str().trim_start_matches("log-").parse().unwrap()
}

/// W3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rivals_claim_each_ready_log_once_and_in_order() {
    const LOGS: usize = 1000;
    let Some(server) = PostgresServer::start() else { return };
    fill(&server, LOGS, "now() - interval '1 day' + n * interval '1 second'", "''").await;
    let mut rivals = Vec::new();
    for _ in 0..16 {
        let queue = open(&server);
        rivals.push(tokio::spawn(async move {
            let mut taken = Vec::new();
            loop {
                let claims = queue.claim_due(16, &Features::none(), &[], LeaseNumber::ALL).await.unwrap();
                if claims.is_empty() {
                    break;
                }
                let numbers: Vec<u64> = claims.iter().map(|claim| number(&claim.id)).collect();
                assert!(numbers.is_sorted(), "{numbers:?}");
                taken.extend(claims);
            }
            // The claims are valid.
            for claim in &taken {
                queue.append(claim, &some(1, 2)).await.unwrap();
            }
            (queue, taken)
        }));
    }
    let (mut all, mut workers, mut queues) = (Vec::new(), 0, Vec::new());
    for rival in rivals {
        let (queue, taken) = rival.await.unwrap();
        workers += usize::from(!taken.is_empty());
        all.extend(taken);
        queues.push(queue);
    }
    let ids: BTreeSet<LogId> = all.iter().map(|claim| claim.id.clone()).collect();
    assert_eq!((all.len(), ids.len()), (LOGS, LOGS));
    assert!(workers > 1, "one worker has claimed all");
}

/// W3: rows that another transaction has locked are not waited for.
#[tokio::test]
async fn a_log_that_is_being_changed_is_not_waited_for() {
    let Some(server) = PostgresServer::start() else { return };
    fill(&server, 3, "now() - interval '1 day' + n * interval '1 second'", "''").await;
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let driven = tokio::spawn(connection);
    client.batch_execute("BEGIN; SELECT FROM polylogue.logs WHERE id = 'log-2' FOR UPDATE").await.unwrap();
    let queue = open(&server);
    let ids = || async {
        let claims = queue.claim_due(16, &Features::none(), &[], LeaseNumber::ALL).await.unwrap();
        claims.iter().map(|claim| number(&claim.id)).collect::<Vec<_>>()
    };
    // This would wait for as long as the other transaction.
    assert_eq!(ids().await, [1, 3]);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(ids().await, [2]);
    drop(client);
    driven.await.unwrap().unwrap();
}

/// W12: the worker after which a log was parked is named.
#[tokio::test]
async fn a_parked_log_names_its_last_worker() {
    let Some(server) = PostgresServer::start() else { return };
    let queue = open(&server);
    let claim = queue.create(&id("a"), &Meta::default()).await.unwrap();
    queue.release_until(claim, Due::Now).await.unwrap();
    for _ in 0..MAX_TRIES {
        assert_eq!(queue.claim_due(1, &Features::none(), &[], LeaseNumber::ALL).await.unwrap().len(), 1);
        let _ = server.sql("UPDATE polylogue.logs SET due = '-infinity', lease = '-infinity'");
    }
    assert!(queue.claim_due(1, &Features::none(), &[], LeaseNumber::ALL).await.unwrap().is_empty());
    let parked = queue.parked().await.unwrap();
    let holders: Vec<&str> = parked.iter().map(|log| log.holder.as_str()).collect();
    let process = format!("process {}", std::process::id());
    assert!(matches!(holders.as_slice(), [holder] if holder.contains(&process)), "{parked:?}");
}

/// Gives the database a clock that is ahead of that of its processes by `interval`, in new sessions.
fn set_clock(server: &PostgresServer, interval: &str) {
    let _ = server.sql(&format!(
        "CREATE SCHEMA IF NOT EXISTS clock;
        CREATE OR REPLACE FUNCTION clock.now() RETURNS timestamptz LANGUAGE sql STABLE
            AS $$ SELECT pg_catalog.now() + interval '{interval}' $$;
        ALTER ROLE CURRENT_USER SET search_path = clock, pg_catalog, public"
    ));
}

/// A run by the clock of a worker would find that it is not due yet, and release it to be due at once, without an end.
#[tokio::test]
async fn what_is_due_at_a_time_is_due_when_what_is_left_of_it_has_passed_whatever_the_clock_says() {
    let Some(server) = PostgresServer::start() else { return };
    open(&server).check().await.unwrap();
    for (name, ahead) in [("ahead", "1 hour"), ("behind", "-1 hour")] {
        set_clock(&server, ahead);
        let queue = open(&server);
        let claim = queue.create(&id(name), &Meta::default()).await.unwrap();
        let due = async || queue.claim_due(9, &Features::none(), &[], LeaseNumber::ALL).await.unwrap();
        let in_ten_minutes = Due::At(Timestamp(Timestamp::now().0 + 600_000));
        queue.release_until(claim, in_ten_minutes).await.unwrap();
        assert!(due().await.is_empty(), "{name}");
        let left = format!("SELECT extract(epoch FROM due - now()) FROM polylogue.logs WHERE id = '{name}'");
        let left: f64 = server.sql(&left).parse().unwrap();
        assert!((540.0..=600.0).contains(&left), "{name}: {left}");
        queue.schedule(&id(name), Due::At(Timestamp::now()), None).await.unwrap();
        assert_eq!(due().await.len(), 1, "{name}");
    }
}

/// One that a person runs is shown as that, and as lost if its process dies.
#[tokio::test]
async fn a_parked_log_that_is_held_is_shown_as_held() {
    let Some(server) = PostgresServer::start() else { return };
    let queue = open(&server);
    let claim = queue.create(&id("a"), &Meta::default()).await.unwrap();
    queue.release(claim).await.unwrap();
    let _ = server.sql("UPDATE polylogue.logs SET is_parked = true, tries = 5");
    let state = async || {
        let overview = queue.overview(10).await.unwrap();
        overview.logs.iter().map(|log| log.state).collect::<Vec<_>>()
    };
    assert_eq!(state().await, [QueueState::Parked]);
    let claim = queue.claim(&id("a")).await.unwrap();
    assert_eq!(state().await, [QueueState::Held]);
    let _ = server.sql("UPDATE polylogue.logs SET lease = '-infinity'");
    assert_eq!(state().await, [QueueState::Lost]);
    queue.release(claim).await.unwrap();
    assert_eq!(state().await, [QueueState::Parked], "nothing has run it");
    let claim = queue.claim(&id("a")).await.unwrap();
    queue.append(&claim, &some(0, 1)).await.unwrap();
    queue.release_at_rest(claim, Due::Never).await.unwrap();
    assert_eq!(state().await, []);
}

/// How long operations take, and the least of them: what a busy machine adds is none of theirs.
fn least(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    println!("{what}: {:?} (median), {:?} (least)", times[times.len() / 2], times[0]);
    times[0]
}

/// W29: 100,000 timed logs. Due ones come in order, the index is used, and an empty poll takes less than a millisecond in a
/// release build.
#[tokio::test]
async fn a_hundred_thousand_timed_logs_are_found_by_the_index() {
    const LOGS: usize = 100_000;
    let Some(server) = PostgresServer::start() else { return };
    fill(&server, LOGS, "now() + interval '1 day' + n * interval '1 hour'", "''").await;
    let queue = open(&server);
    let none = Features::none();
    assert!(queue.claim_due(16, &none, &[], LeaseNumber::ALL).await.unwrap().is_empty());
    let mut times = Vec::new();
    for _ in 0..100 {
        let begun = Instant::now();
        assert!(queue.claim_due(16, &none, &[], LeaseNumber::ALL).await.unwrap().is_empty());
        times.push(begun.elapsed());
    }
    let least = least("an empty poll among 100,000 timed logs", times);
    // `.ci/nightly` runs this with optimization.
    assert!(cfg!(debug_assertions) || least < Duration::from_millis(1), "{least:?}");
    let _ = server.sql("UPDATE polylogue.logs SET due = due - interval '1 day 30 hours 30 minutes' WHERE id IN ('log-7', 'log-9', 'log-30', 'log-31')");
    let due = queue.claim_due(16, &none, &[], LeaseNumber::ALL).await.unwrap();
    assert_eq!(due.iter().map(|claim| number(&claim.id)).collect::<Vec<_>>(), [7, 9, 30]);
    // Counted by the database, which learns of it from time to time.
    let _ = server.sql("SELECT pg_stat_reset()");
    let scans = |column: &str, view: &str| -> u64 {
        server
            .sql(&format!("SELECT sum({column}) FROM {view} WHERE relname = 'logs'"))
            .trim()
            .parse()
            .unwrap()
    };
    while scans("idx_scan", "pg_stat_user_indexes") == 0 {
        assert!(queue.claim_due(16, &none, &[], LeaseNumber::ALL).await.unwrap().is_empty());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(scans("seq_scan", "pg_stat_user_tables"), 0, "polls read the whole table");
}

/// W29: 100,000 ready logs of three needs. Claiming 16 of them takes less than 20 milliseconds.
#[tokio::test]
async fn of_a_hundred_thousand_ready_logs_of_three_needs_the_oldest_are_claimed() {
    const LOGS: usize = 100_000;
    let Some(server) = PostgresServer::start() else { return };
    let needs = "CASE n % 4 WHEN 0 THEN '' WHEN 1 THEN 'gpu' WHEN 2 THEN 'files gpu' ELSE 'tpu' END";
    fill(&server, LOGS, "now() - interval '2 days' + n * interval '1 second'", needs).await;
    let queue = open(&server);
    let offers = Features::parse("gpu files other").unwrap();
    let mut next = (1..).filter(|number| number % 4 != 3);
    let mut times = Vec::new();
    for _ in 0..20 {
        let begun = Instant::now();
        let claims = queue.claim_due(16, &offers, &[], LeaseNumber::ALL).await.unwrap();
        times.push(begun.elapsed());
        let wanted: Vec<u64> = next.by_ref().take(16).collect();
        assert_eq!(claims.iter().map(|claim| number(&claim.id)).collect::<Vec<_>>(), wanted);
    }
    let least = least("claiming 16 of 100,000 ready logs of three needs", times);
    assert!(cfg!(debug_assertions) || least < Duration::from_millis(20), "{least:?}");
}

/// Another process forgets those that were introduced more than a month ago, and hold nothing.
#[tokio::test]
async fn a_process_that_lives_for_months_is_known_while_it_holds_a_log_and_when_it_claims_one() {
    let Some(server) = PostgresServer::start() else { return };
    let address = || Address::parse(&server.url()).unwrap();
    let point = |secret| LivePoint { address: "127.0.0.1:1/a".into(), secret: [secret; 32] };
    let store = |secret| Postgres::open(address()).unwrap().with_live(point(secret)).unwrap();
    let (holding, idle) = (store(1), store(2));
    let _held = holding.create(&id("held"), &Meta::default()).await.unwrap();
    let free = idle.create(&id("free"), &Meta::default()).await.unwrap();
    idle.release(free).await.unwrap();
    let _ = server.sql("UPDATE polylogue.nodes SET seen = now() - interval '31 days'");
    let other = open(&server);
    let held = other.create(&id("other"), &Meta::default()).await.unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.nodes"), "2", "the idle one is forgotten");
    let watch = PostgresWatch::new(address(), Postgres::LOCAL);
    let live = async |log: &str| watch.look(&[id(log)]).await.unwrap().remove(0).live;
    assert_eq!(live("held").await, Some(point(1)));
    let busy = other.claim(&id("held")).await.unwrap_err();
    assert!(busy.to_string().contains(&format!("process {}", std::process::id())), "{busy}");
    let _free = idle.claim(&id("free")).await.unwrap();
    assert_eq!(live("free").await, Some(point(2)));
    let _ = server.sql("DELETE FROM polylogue.nodes");
    idle.schedule(&id("other"), Due::Now, None).await.unwrap();
    other.release(held).await.unwrap();
    assert_eq!(idle.claim_due(1, &Features::none(), &[], LeaseNumber::ALL).await.unwrap().len(), 1);
    assert_eq!(live("other").await, Some(point(2)), "also by its queue");
}

/// What is held is listed before what has its time later, and all are counted.
#[tokio::test]
async fn of_many_logs_the_first_are_listed_and_all_are_counted() {
    let Some(server) = PostgresServer::start() else { return };
    fill(&server, 10_001, "now() + interval '1 hour'", "''").await;
    let worker = open(&server);
    for held in ["held-1", "held-2", "held-3"] {
        let _claim = worker.create(&id(held), &Meta::default()).await.unwrap();
    }
    worker.announce(Some(&WorkerInfo::default())).await.unwrap();
    let overview = open(&server).overview(10_000).await.unwrap();
    assert_eq!(overview.logs.len(), 10_000);
    let first: Vec<&str> = overview.logs.iter().take(3).map(|log| log.id.as_str()).collect();
    assert_eq!(first, ["held-1", "held-2", "held-3"]);
    let figures = &overview.figures;
    assert_eq!((figures.count(QueueState::Held), figures.count(QueueState::Timed)), (3, 10_001));
    assert_eq!((overview.workers.len(), overview.workers[0].held), (1, 3));
}
