//! Processes hear of inbox messages for the logs that they have claimed.

use std::time::Duration;

use polylogue_core::{Due, Event, InboxMessage, Instruction, Meta, Queue as _, Store as _, Timestamp};
use polylogue_postgres::{Address, Postgres};
use polylogue_test::postgres::{Pooler, PostgresServer};

use crate::support::{id, open, opened, some};

fn message(key: &str) -> InboxMessage {
    InboxMessage { key: key.into(), request: None, posted: Timestamp(1), instruction: Instruction::Pause }
}

/// Waits until the store hears of messages.
async fn hears(store: &Postgres) {
    // A message for it would end the wait, too: there is none.
    while tokio::time::timeout(Duration::from_millis(100), store.inbox_news(&id("a"))).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_message_is_heard_by_the_process_that_has_its_log() {
    let Some(server) = PostgresServer::start() else { return };
    let (holder, other) = (open(&server), open(&server));
    let claim = holder.create(&id("a"), &Meta::default()).await.unwrap();
    let others = other.create(&id("b"), &Meta::default()).await.unwrap();
    assert_eq!(holder.inbox_news(&id("a")).await, Ok(false), "it is not connected yet");
    hears(&holder).await;
    let a = id("a");
    let news = holder.inbox_news(&a);
    let (heard, posted) = tokio::join!(news, async {
        // One for another log of another process is not for it.
        other.post(&others.id, &message("b")).await.unwrap();
        other.post(&claim.id, &message("a")).await.unwrap()
    });
    assert_eq!((heard, posted), (Ok(true), 1));
    assert_eq!(holder.inbox(&id("a"), 0).await.unwrap().len(), 1);
    // One that came before it was waited for is not missed.
    other.post(&claim.id, &message("again")).await.unwrap();
    assert_eq!(holder.inbox_news(&id("a")).await, Ok(true));
    // The end of a claim ends the wait; without one, nothing is heard.
    let (heard, released) = tokio::join!(holder.inbox_news(&a), holder.release(claim.clone()));
    released.unwrap();
    assert_eq!(heard, Ok(true));
    assert_eq!(holder.inbox_news(&id("a")).await, Ok(false));
    // After the connection is lost, it hears again.
    let claim = holder.claim(&id("a")).await.unwrap();
    let _ = server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'");
    while holder.inbox_news(&id("a")).await == Ok(true) {}
    hears(&holder).await;
    let later = message("later");
    let (heard, _) = tokio::join!(holder.inbox_news(&a), other.post(&claim.id, &later));
    assert_eq!(heard, Ok(true));
}

/// W24: an answer that is given again with its key, by several processes at once, is one message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_many_processes_post_at_once_with_one_key_is_one_message() {
    const PROCESSES: usize = 8;
    let Some(server) = PostgresServer::start() else { return };
    let stores: Vec<Postgres> = (0..PROCESSES).map(|_| open(&server)).collect();
    let log = id("a");
    let claim = stores[0].create(&log, &Meta::default()).await.unwrap();
    stores[0].release(claim).await.unwrap();
    for number in 1..=5 {
        let message = message(&format!("key {number}"));
        let posted = stores.iter().map(|store| store.post(&log, &message));
        let numbers: Vec<_> = futures_util::future::join_all(posted).await;
        assert_eq!(numbers, vec![Ok(number); PROCESSES]);
        assert_eq!(stores[0].inbox(&log, number - 1).await, Ok(vec![(number, message)]));
    }
}

/// Through a pooler in transaction mode, `LISTEN` succeeds and nothing arrives: inboxes are polled.
#[tokio::test]
async fn through_a_pooler_in_transaction_mode_nothing_is_heard() {
    let Some(server) = PostgresServer::start() else { return };
    let Some(pooler) = Pooler::start(&server, 3) else { return };
    let store = Postgres::open(Address::parse(&pooler.url()).unwrap()).unwrap();
    let claim = store.create(&id("a"), &Meta::default()).await.unwrap();
    for _ in 0..30 {
        assert_eq!(store.inbox_news(&claim.id).await, Ok(false));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A message is one with its key for a week; what no event takes yet stays, also in a log that no worker looks at, such as a next speaker for the
/// next run.
#[tokio::test]
async fn messages_that_a_log_has_are_kept_for_a_week() {
    let Some((server, store)) = opened() else { return };
    for name in ["taken", "waiting"] {
        let claim = store.create(&id(name), &Meta::default()).await.unwrap();
        store.release(claim).await.unwrap();
        assert_eq!(store.post(&id(name), &message("key")).await, Ok(1));
    }
    let claim = store.claim(&id("taken")).await.unwrap();
    let mut events = some(0, 2);
    let taking = Event { inbox: Some(1), ..(*events[1]).clone() };
    events[1] = taking.into();
    store.append(&claim, &events).await.unwrap();
    store.release_until(claim, Due::Never).await.unwrap();
    let left = async |days: u64| -> String {
        let _ = server.sql(&format!("UPDATE polylogue.inbox SET at = now() - interval '{days} days'"));
        let other = open(&server);
        let claim = other.create(&id(&format!("other-{days}")), &Meta::default()).await.unwrap();
        other.release(claim).await.unwrap();
        server.sql("SELECT string_agg(id, ' ' ORDER BY id) FROM polylogue.inbox JOIN polylogue.logs ON log = logs.nr")
    };
    assert_eq!(left(6).await, "taken waiting");
    assert_eq!(store.post(&id("taken"), &message("key")).await, Ok(1), "it is the same message");
    assert_eq!(left(8).await, "waiting");
    assert_eq!(store.inbox(&id("waiting"), 0).await.unwrap().len(), 1);
    assert_eq!(store.post(&id("taken"), &message("key")).await, Ok(2), "it is another one");
}
