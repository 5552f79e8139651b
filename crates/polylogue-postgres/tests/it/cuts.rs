//! W6: appends whose connections are cut are settled, neither lost nor repeated.

use polylogue_core::{Meta, Store, StoreError};
use polylogue_postgres::{Address, Postgres};
use polylogue_test::postgres::PostgresServer;

use crate::proxy::{Cut, Proxy};
use crate::support::{assert_events, expire, id, open, said, some};

const CUTS: [Cut; 4] = [Cut::BeforeSending, Cut::AfterSending, Cut::AfterCommit, Cut::Late];

fn through(proxy: &Proxy) -> Postgres {
    Postgres::open(Address::parse(&proxy.url()).unwrap()).unwrap()
}

/// How many connections are cut, in all: `POLYLOGUE_CUTS`, by default 200.
fn cuts() -> usize {
    std::env::var("POLYLOGUE_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(200)
}

async fn append_with_cuts(port: u16, log: String, cuts: usize) {
    let proxy = Proxy::start(port).await;
    let store = through(&proxy);
    let claim = store.create(&id(&log), &Meta::default()).await.unwrap();
    let mut next = 0;
    for nth in 0..cuts {
        proxy.cut_next(CUTS[nth % CUTS.len()]);
        let to = next + 1 + (nth as u64) % 3;
        store.append(&claim, &some(next, to)).await.unwrap();
        next = to;
        // One that is not cut follows.
        store.append(&claim, &some(next, next + 1)).await.unwrap();
        next += 1;
    }
    assert_eq!(proxy.cuts(), cuts);
    proxy.has_sent_all().await;
    assert_events(&store.read(&claim.id, 0).await.unwrap(), next);
    store.release(claim).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_connection_is_cut_is_kept_exactly_once() {
    const LOGS: usize = 8;
    let Some(server) = PostgresServer::start() else { return };
    drop(open(&server).check().await.unwrap());
    let logs = (0..LOGS).map(|log| {
        tokio::spawn(append_with_cuts(server.port(), format!("log-{log}"), cuts().div_ceil(LOGS)))
    });
    for log in logs.collect::<Vec<_>>() {
        log.await.unwrap();
    }
    // What was sent late has arrived, and nothing of it was kept twice.
    let rows = server.sql("SELECT count(*) FROM polylogue.events");
    let heads = server.sql("SELECT sum(events) FROM polylogue.logs");
    assert_eq!(rows, heads);
    let store = open(&server);
    for log in 0..LOGS {
        let intact = store.read_intact(&id(&format!("log-{log}"))).await.unwrap();
        assert_eq!(intact.damage, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_is_cut_while_its_log_is_taken_over_is_fenced() {
    let Some(server) = PostgresServer::start() else { return };
    for (nth, cut) in CUTS.into_iter().enumerate() {
        let (proxy, rival) = (Proxy::start(server.port()).await, open(&server));
        let store = through(&proxy);
        let log = id(&format!("log-{nth}"));
        let claim = store.create(&log, &Meta::default()).await.unwrap();
        store.append(&claim, &some(0, 1)).await.unwrap();
        // The rival has the log when the first store asks how its append ended.
        expire(&server);
        let taken = rival.claim(&log).await.unwrap();
        proxy.cut_next(cut);
        let fenced = store.append(&claim, &[said(1, "late")]).await;
        assert_eq!(fenced, Err(StoreError::Fenced { id: log.clone() }), "{cut:?}");
        assert_eq!(proxy.cuts(), 1, "{cut:?}");
        rival.append(&taken, &some(1, 2)).await.unwrap();
        proxy.has_sent_all().await;
        assert_events(&rival.read(&log, 0).await.unwrap(), 2);
    }
}
