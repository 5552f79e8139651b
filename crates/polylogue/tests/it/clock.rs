//! Running time, and conversations that a limit ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{log, name, script};
use polylogue::policies::with_termination;
use polylogue::stop::{Counted, LibraryStopReason};
use polylogue::stop::{max_time_ms, max_turns};
use polylogue::{AnyModel, Assistant, Chat, Limits, Log, Status, round_robin};
use polylogue_core::{AnyStore, LimitOverrides, LogId, StopReason, Timestamp};
use polylogue_models::Script;
use polylogue_store::Memory;

fn pair(script: &Script, stop: impl polylogue::stop::Condition) -> Chat {
    let speaker = |who: &str| Assistant::new(who, AnyModel::new(script.model("test"))).unwrap();
    let chat = Chat::builder("pair").participant(speaker("A")).participant(speaker("B"));
    chat.policy(with_termination(round_robin(), stop)).build().unwrap()
}

fn words() -> Script {
    script(
        r#"[{"A": "1"}, {"B": "2"}, {"A": "3"}, {"B": "4"}, {"A": "5"}, {"B": "6"}, {"A": "7"}, {"B": "8"}]"#,
    )
}

/// A clock that goes a second further whenever it is looked at.
fn ticking(seconds: &Arc<AtomicU64>) -> impl Fn() -> Timestamp + Send + Sync + 'static {
    let seconds = Arc::clone(seconds);
    move || Timestamp(seconds.fetch_add(1000, Ordering::SeqCst))
}

#[tokio::test]
async fn the_time_in_which_no_process_ran_a_conversation_does_not_count() {
    let store = AnyStore::new(Memory::new());
    let (id, now) = (LogId::new("x").unwrap(), Arc::new(AtomicU64::new(0)));
    let mut log = Log::create(store.clone(), id.clone()).await.unwrap().clock(ticking(&now));
    let limits = Limits { calls: Some(2), ..Limits::default() };
    log = log.limits(limits);
    let chat = pair(&words(), max_time_ms(60_000));
    chat.run_in(&mut log, "go").await.unwrap();
    let ran = log.transcript().await.unwrap().elapsed_ms();
    assert!((1000..60_000).contains(&ran), "{ran}");
    log.release().await.unwrap();
    // A week goes by, in which the machine is off.
    now.fetch_add(7 * 24 * 3600 * 1000, Ordering::SeqCst);
    let mut log = Log::open(store, id).await.unwrap().clock(ticking(&now));
    log.reopen().await.unwrap();
    log = log.limits(Limits { calls: Some(4), ..limits });
    let Status::Closed { reason, .. } = chat.resume(&mut log).await.unwrap().status else { panic!() };
    assert_eq!(reason, StopReason::Calls { limit: 4 }, "it ends for another reason than time");
    let later = log.transcript().await.unwrap().elapsed_ms();
    assert!((ran..60_000).contains(&later), "{later}");
}

/// A system clock that is set back by an hour and ahead by a day, in turn, whenever it is read.
fn jumping() -> impl Fn() -> Timestamp + Send + Sync + 'static {
    const BEGIN: u64 = 1_700_000_000_000;
    let reads = AtomicU64::new(0);
    move || match reads.fetch_add(1, Ordering::SeqCst) {
        0 => Timestamp(BEGIN),
        odd if odd % 2 == 1 => Timestamp(BEGIN - 3_600_000),
        _ => Timestamp(BEGIN + 24 * 3_600_000),
    }
}

#[tokio::test]
async fn a_system_clock_that_is_set_back_and_ahead_meets_no_limit_on_time_and_adds_no_running_time() {
    const LIMIT_MS: u64 = 600_000;
    let store = AnyStore::new(Memory::new());
    let log = Log::create(store.clone(), LogId::new("x").unwrap()).await.unwrap();
    let mut log = log.time_of_day(jumping()).limits(Limits { calls: Some(4), ..Limits::default() });
    let chat = pair(&words(), max_time_ms(LIMIT_MS));
    let Status::Closed { reason, .. } = chat.run_in(&mut log, "go").await.unwrap().status else { panic!() };
    assert_eq!(reason, StopReason::Calls { limit: 4 }, "the limit on time is not met");
    log.release().await.unwrap();
    // Another process finds the clock set ahead, too.
    let log = Log::open(store, LogId::new("x").unwrap()).await.unwrap();
    let mut log = log.time_of_day(jumping()).limits(Limits { calls: Some(6), ..Limits::default() });
    log.reopen().await.unwrap();
    let Status::Closed { reason, .. } = chat.resume(&mut log).await.unwrap().status else { panic!() };
    assert_eq!(reason, StopReason::Calls { limit: 6 }, "the limit on time is not met");
    let events = log.events().await;
    assert!(!events.is_sorted_by_key(|event| event.time), "the events have the times of the clock");
    assert!(events.is_sorted_by_key(|event| event.ran_ms), "the running time only increases");
    assert!(events.iter().all(|event| event.ran_ms < LIMIT_MS), "{:?}", events.last());
}

#[tokio::test]
async fn a_run_ended_by_a_limit_continues_only_under_a_higher_one() {
    let mut log = log().await;
    let (limits, none) = (Limits { calls: Some(2), ..Limits::default() }, LimitOverrides::default());
    log = log.limits(limits);
    let chat = pair(&words(), max_turns(4));
    assert_eq!(chat.ends_again(&log, &limits, none).await.unwrap(), None, "it has not begun");
    chat.run_in(&mut log, "go").await.unwrap();
    let before = log.events().await.len();
    assert_eq!(chat.ends_again(&log, &limits, none).await.unwrap(), Some(StopReason::Calls { limit: 2 }));
    assert_eq!(log.events().await.len(), before, "looking adds nothing");
    let raised = Limits { calls: Some(100), ..limits };
    assert_eq!(chat.ends_again(&log, &raised, none).await.unwrap(), None);
    log.reopen().await.unwrap();
    log = log.limits(raised);
    chat.resume(&mut log).await.unwrap();
    assert!(log.transcript().await.unwrap().last_of(&name("B")).is_some());
    // The chat's own limit is not that of the run.
    assert_eq!(
        chat.ends_again(&log, &raised, none).await.unwrap(),
        Some(StopReason::from(LibraryStopReason::CountReached { count: 4, of: Counted::Turns }))
    );
}
