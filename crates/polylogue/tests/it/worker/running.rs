//! What a worker does with the conversations that it claims.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue::runs::worker::{
    Claimed, Drain, LeaseCheck, Pace, Release, Worker, WorkerEvent, WorkerSlots, WorkerStore, WorkerTime,
};
use polylogue::{Assistant, Chat, models, sequential};
use polylogue_core::{
    AnyQueue, AnyStore, Claim, Due, DynQueue, Error, Event, Features, Heartbeat, LEASE, LeaseNumber, Log,
    LogId, Meta, Queue, QueueWrapper, Store, StoreError, StoreWrapper, Timer, Timestamp,
};
use polylogue_store::Memory;
use tokio::time::{Instant, sleep, sleep_until};

use crate::worker::world::event;

/// A queue in memory on virtual time, whose heartbeats fail on demand.
struct Failing {
    inner: AnyQueue,
    is_silent: Arc<AtomicBool>,
    heartbeats: Arc<AtomicUsize>,
    /// Whether replies to appends are late by more than a lease.
    is_slow: Arc<AtomicBool>,
}

impl StoreWrapper for Failing {
    fn inner(&self) -> &AnyStore {
        self.inner.store()
    }
    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        Store::append(&self.inner, claim, batch).await?;
        if self.is_slow.load(Ordering::Relaxed) {
            sleep(LEASE * 2).await;
        }
        Ok(())
    }
    fn as_queue(&self) -> Option<&dyn DynQueue> {
        Some(self)
    }
}

impl QueueWrapper for Failing {
    async fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        self.heartbeats.fetch_add(1, Ordering::Relaxed);
        if self.is_silent.load(Ordering::Relaxed) {
            return Err(StoreError::Unreachable { place: "here".into(), why: "silent".into() });
        }
        Queue::heartbeat(&self.inner, claims).await
    }
}

/// Notes when it is dropped.
struct OnDrop<'a>(&'a Mutex<Option<Duration>>, Instant);
impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().get_or_insert(self.1.elapsed());
    }
}

struct Setup {
    queue: AnyQueue,
    store: WorkerStore,
    worker: Worker,
    is_silent: Arc<AtomicBool>,
    heartbeats: Arc<AtomicUsize>,
    is_slow: Arc<AtomicBool>,
    told: Arc<Mutex<Vec<WorkerEvent>>>,
    slack: Arc<Mutex<Vec<(LeaseCheck, Duration)>>>,
}

fn setup() -> Setup {
    let begun = Instant::now();
    let clock = move || Timestamp(1_763_712_000_000 + begun.elapsed().as_millis() as u64);
    let queue = AnyQueue::new(Memory::with_clock(clock)).unwrap();
    let is_slow = Arc::<AtomicBool>::default();
    let (is_silent, heartbeats, told) =
        (Arc::<AtomicBool>::default(), Arc::default(), Arc::<Mutex<Vec<_>>>::default());
    let failing = Failing {
        inner: queue.clone(),
        is_silent: Arc::clone(&is_silent),
        heartbeats: Arc::clone(&heartbeats),
        is_slow: Arc::clone(&is_slow),
    };
    let time = WorkerTime::new(move || begun.elapsed(), Timer::new(sleep));
    let slack = Arc::<Mutex<Vec<_>>>::default();
    let seen = Arc::clone(&slack);
    let store = WorkerStore::new(AnyQueue::new(failing).unwrap(), time)
        .observe_leases(move |at, left| seen.lock().unwrap().push((at, left)));
    let heard = Arc::clone(&told);
    let worker = Worker::new(store.clone()).observe(move |event| heard.lock().unwrap().push(event.clone()));
    Setup { queue, store, worker, is_silent, heartbeats, is_slow, told, slack }
}

async fn ready(queue: &AnyQueue, name: &str) -> LogId {
    let claim = Store::create(queue, &LogId::new(name).unwrap(), &Meta::default()).await.unwrap();
    let id = claim.id.clone();
    Queue::release_until(queue, claim, Due::Now).await.unwrap();
    id
}

/// One of them has more conversations than there are places all the time.
#[tokio::test(start_paused = true)]
async fn workers_that_share_places_take_turns() {
    let (one, other) = (setup(), setup());
    for number in 0..9 {
        ready(&one.queue, &format!("log-{number}")).await;
    }
    ready(&other.queue, "other").await;
    let (most, now, order) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::<String>::new()));
    let drains = [one.worker.drain(), other.worker.drain()];
    {
        let (most, now, order, drains) = (&most, &now, &order, &drains);
        let run = |claimed: Claimed| async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            order.lock().unwrap().push(claimed.claim.id.to_string());
            sleep(LEASE * 2).await;
            now.fetch_sub(1, Ordering::Relaxed);
            if order.lock().unwrap().len() == 10 {
                drains.iter().for_each(Drain::request);
            }
            Release::Until(Due::Never)
        };
        let slots = WorkerSlots::new(2);
        let (one, other) = (one.worker.slots(slots.clone()), other.worker.slots(slots));
        tokio::join!(one.run(&run), other.run(&run));
    }
    let order = order.into_inner().unwrap();
    assert_eq!((most.into_inner(), order.len()), (2, 10));
    assert!(order.iter().position(|id| id == "other").unwrap() < 5, "{order:?}");
}

async fn due(queue: &AnyQueue) -> Vec<Claim> {
    Queue::claim_due(queue, 16, &Features::none(), &[], LeaseNumber::ALL).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn conversations_run_at_once_and_are_due_when_they_say() {
    let Setup { queue, worker, .. } = setup();
    for number in 0..5 {
        ready(&queue, &format!("log-{number}")).await;
    }
    let (most, now, drain) = (AtomicUsize::new(0), AtomicUsize::new(0), worker.drain());
    let runs = Mutex::new(BTreeMap::<LogId, usize>::new());
    let begun = Instant::now();
    {
        let (most, now, drain, runs) = (&most, &now, &drain, &runs);
        let run = |claimed: Claimed| async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            // Longer than a lease: heartbeats keep the claim.
            sleep(LEASE * 2).await;
            now.fetch_sub(1, Ordering::Relaxed);
            let mut runs = runs.lock().unwrap();
            let count = runs.entry(claimed.claim.id).or_default();
            *count += 1;
            let is_first = *count == 1;
            if runs.values().sum::<usize>() == 10 {
                drain.request();
            }
            Release::Until(if is_first { Due::After(Duration::from_mins(10)) } else { Due::Never })
        };
        worker.concurrency(3).run(run).await;
    }
    assert_eq!(most.into_inner(), 3);
    assert_eq!(runs.into_inner().unwrap().into_values().collect::<Vec<_>>(), [2; 5]);
    assert!(begun.elapsed() > Duration::from_mins(10));
    sleep(Duration::from_hours(1)).await;
    assert!(due(&queue).await.is_empty(), "they are idle");
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_no_concurrency_runs_one_conversation_at_a_time() {
    let Setup { queue, worker, .. } = setup();
    ready(&queue, "a").await;
    ready(&queue, "b").await;
    let (runs, most, now) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let drain = worker.drain();
    {
        let (runs, most, now, drain) = (&runs, &most, &now, &drain);
        let run = |_: Claimed| async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::Relaxed);
            if runs.fetch_add(1, Ordering::Relaxed) == 1 {
                drain.request();
            }
            Release::Until(Due::Never)
        };
        worker.concurrency(0).run(run).await;
    }
    assert_eq!((runs.into_inner(), most.into_inner()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_cannot_run_is_left_to_others_and_is_not_tried() {
    let Setup { queue, worker, told, .. } = setup();
    let id = ready(&queue, "a").await;
    let (tried, drain, begun) = (Mutex::new(Vec::new()), worker.drain(), Instant::now());
    {
        let (tried, drain, queue) = (&tried, &drain, &queue);
        let run = |_: Claimed| async move {
            tried.lock().unwrap().push(begun.elapsed());
            if tried.lock().unwrap().len() == 7 {
                drain.request();
            }
            Release::ForOthers { why: "no key".into() }
        };
        let others = async {
            sleep(Duration::from_millis(100)).await;
            let claims = due(queue).await;
            assert_eq!(claims.len(), 1, "another worker can claim it at once");
            for claim in claims {
                Queue::release_to_others(queue, claim, "no key here").await.unwrap();
            }
        };
        tokio::join!(worker.run(run), others);
    }
    let tried = tried.into_inner().unwrap();
    for (number, pair) in tried.windows(2).enumerate() {
        let (pause, least) = (pair[1] - pair[0], Duration::from_secs(5 << number));
        assert!((least..least + Duration::from_secs(1)).contains(&pause), "{number}: {pause:?}");
    }
    assert!(Queue::parked(&queue).await.unwrap().is_empty());
    let left = told
        .lock()
        .unwrap()
        .iter()
        .filter(|event| **event == WorkerEvent::LeftToOthers(id.clone(), "no key".into()))
        .count();
    assert_eq!(left, 7);
}

/// Those that it has forgotten are not claimed at once again.
#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_run_more_than_it_remembers_is_not_kept_busy() {
    const LOGS: usize = 1_100;
    const MOST: usize = LOGS * 5;
    let Setup { queue, worker, .. } = setup();
    for number in 0..LOGS {
        ready(&queue, &format!("log-{number}")).await;
    }
    let (claims, drain) = (AtomicUsize::new(0), worker.drain());
    let run = worker.run(|_: Claimed| async {
        if claims.fetch_add(1, Ordering::Relaxed) > MOST {
            drain.request();
        }
        sleep(Duration::from_millis(1)).await;
        Release::ForOthers { why: "no key".into() }
    });
    let wait = async {
        sleep(Duration::from_mins(1)).await;
        drain.request();
    };
    tokio::join!(run, wait);
    let claims = claims.into_inner();
    assert!((LOGS..MOST).contains(&claims), "{claims} in a minute");
}

/// W11.
#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_fails_once_is_harmless() {
    let Setup { queue, worker, is_silent, heartbeats, told, .. } = setup();
    ready(&queue, "a").await;
    let drain = worker.drain();
    worker
        .run(|_| async {
            is_silent.store(true, Ordering::Relaxed);
            while heartbeats.load(Ordering::Relaxed) == 0 {
                sleep(Duration::from_millis(100)).await;
            }
            is_silent.store(false, Ordering::Relaxed);
            sleep(LEASE * 3).await;
            drain.request();
            Release::Until(Due::Never)
        })
        .await;
    let told = told.lock().unwrap();
    assert!(told.iter().any(|event| matches!(event, WorkerEvent::StoreFailed(_))), "{told:?}");
    assert!(!told.iter().any(|event| matches!(event, WorkerEvent::Lost(_))), "{told:?}");
}

/// Heartbeats that are late, and calls that begin near the end of a lease, are seen before a claim is lost.
#[tokio::test(start_paused = true)]
async fn how_much_is_left_of_leases_is_reported_before_heartbeats_and_calls() {
    let Setup { queue, store, worker, is_silent, slack, .. } = setup();
    ready(&queue, "a").await;
    let (drain, any) = (worker.drain(), store.store());
    let (any, is_silent, drain) = (&any, &is_silent, &drain);
    worker
        .run(|claimed: Claimed| async move {
            sleep(Duration::from_secs(5)).await;
            any.confirm(&claimed.claim).await.unwrap();
            is_silent.store(true, Ordering::Relaxed);
            sleep(Duration::from_secs(15)).await;
            any.confirm(&claimed.claim).await.unwrap();
            is_silent.store(false, Ordering::Relaxed);
            sleep(Duration::from_secs(5)).await;
            drain.request();
            Release::Until(Due::Never)
        })
        .await;
    let slack = slack.lock().unwrap();
    let seconds = |at: LeaseCheck| -> Vec<f64> {
        slack.iter().filter(|(when, _)| *when == at).map(|(_, left)| left.as_secs_f64().round()).collect()
    };
    assert_eq!(seconds(LeaseCheck::Call), [25.0, 10.0], "{slack:?}");
    // That with which the worker begins, the first one that fails, those that follow it each second, and the one that succeeds.
    let heartbeats = seconds(LeaseCheck::Heartbeat);
    let least = heartbeats.iter().copied().fold(f64::MAX, f64::min);
    assert!(heartbeats.starts_with(&[30.0, 20.0]) && [9.0, 10.0].contains(&least), "{slack:?}");
}

/// W11: for a whole lease. The run is dropped before the lease ends, and appends nothing.
#[tokio::test(start_paused = true)]
async fn heartbeats_that_fail_for_a_lease_end_the_run_before_another_worker_can_have_it() {
    let Setup { queue, store, worker, is_silent, told, .. } = setup();
    let id = ready(&queue, "a").await;
    let dropped_after = Mutex::new(None);
    let claims = Mutex::new(Vec::new());
    let (drain, begun) = (worker.drain(), Instant::now());
    let any = store.store();
    let run = worker.run(|claimed: Claimed| {
        let (any, dropped_after, claims) = (&any, &dropped_after, &claims);
        is_silent.store(true, Ordering::Relaxed);
        async move {
            let _on_drop = OnDrop(dropped_after, begun);
            claims.lock().unwrap().push(claimed.claim.clone());
            sleep(LEASE * 10).await;
            any.append(&claimed.claim, &[event(0, "too late", None)]).await.unwrap();
            Release::Until(Due::Never)
        }
    });
    let watch = async {
        sleep(LEASE - Duration::from_secs(1)).await;
        drain.request();
        assert!(due(&queue).await.is_empty(), "the lease lasts");
        sleep(Duration::from_secs(2)).await;
        assert_eq!(due(&queue).await.len(), 1, "another worker has it");
    };
    tokio::join!(run, watch);
    let dropped_after = dropped_after.into_inner().unwrap().unwrap();
    assert!(dropped_after < LEASE, "{dropped_after:?}");
    assert!(told.lock().unwrap().contains(&WorkerEvent::Lost(id.clone())));
    let claim = claims.into_inner().unwrap().pop().unwrap();
    // Known to be lost or not: nothing is appended.
    let late = any.append(&claim, &[event(0, "too late", None)]).await;
    assert_eq!(late, Err(StoreError::Fenced { id: id.clone() }));
    assert!(Store::read(&queue, &id, 0).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_drained_worker_lets_turns_end_and_releases_everything_for_others() {
    let Setup { queue, worker, .. } = setup();
    for name in ["a", "b"] {
        ready(&queue, name).await;
    }
    let drain = worker.drain();
    let run = worker.run(|claimed: Claimed| async move {
        while !claimed.stop.is_requested() {
            sleep(Duration::from_millis(100)).await;
        }
        assert!(claimed.is_draining());
        let rest = if claimed.claim.id.as_str() == "a" { 300 } else { 3_000 };
        sleep(Duration::from_millis(rest)).await;
        Release::Until(Due::Now)
    });
    let stop = async {
        sleep(Duration::from_mins(1)).await;
        drain.request();
        ready(&queue, "c").await;
        sleep(Duration::from_secs(1)).await;
        let ids: Vec<String> = due(&queue).await.iter().map(|claim| claim.id.to_string()).collect();
        assert_eq!(ids, ["c", "a"], "a drained worker claims nothing, and one of its logs is free");
    };
    tokio::join!(run, stop);
    assert_eq!(due(&queue).await.len(), 1, "and then the other one");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_panics_or_fails_is_tried_again_and_then_parked() {
    let Setup { queue, worker, told, .. } = setup();
    ready(&queue, "panics").await;
    ready(&queue, "fails").await;
    let drain = worker.drain();
    let run = worker.run(|claimed: Claimed| async move {
        assert_ne!(claimed.claim.id.as_str(), "panics", "on purpose");
        Release::Failed { due: Due::After(Duration::from_secs(1)), why: "no such tool".into() }
    });
    let wait = async {
        sleep(Duration::from_mins(5)).await;
        drain.request();
    };
    tokio::join!(run, wait);
    let parked: Vec<_> =
        Queue::parked(&queue).await.unwrap().into_iter().map(|log| (log.id.to_string(), log.why)).collect();
    let why = |text: &str| Some(text.to_owned());
    assert_eq!(
        parked,
        [
            ("fails".to_owned(), why("no such tool")),
            ("panics".to_owned(), why("its run panicked: this is a bug")),
        ]
    );
    let failures =
        told.lock().unwrap().iter().filter(|event| matches!(event, WorkerEvent::Failed(..))).count();
    assert_eq!(failures, 10);
}

/// W27: what a dropped log releases must not overtake what the worker says: it was due again after a lease, and again.
#[tokio::test(start_paused = true)]
async fn a_log_that_is_dropped_leaves_the_release_to_its_worker() {
    let Setup { queue, store, worker, .. } = setup();
    ready(&queue, "idle").await;
    ready(&queue, "fails").await;
    let (drain, store) = (worker.drain(), &store.store());
    let run = worker.run(|claimed: Claimed| async move {
        drop(Log::open_claimed(store.clone(), claimed.claim.clone()).await.unwrap());
        match claimed.claim.id.as_str() {
            "idle" => Release::Until(Due::Never),
            _ => Release::Failed { due: Due::After(Duration::from_secs(1)), why: "no such tool".into() },
        }
    });
    let wait = async {
        sleep(LEASE - Duration::from_secs(1)).await;
        drain.request();
        sleep(LEASE * 10).await;
    };
    tokio::join!(run, wait);
    assert!(due(&queue).await.is_empty());
    let parked = Queue::parked(&queue).await.unwrap();
    assert_eq!(parked.iter().map(|log| log.id.as_str()).collect::<Vec<_>>(), ["fails"]);
}

/// R3, in the kernel: under a claim that was lost no model call begins.
#[tokio::test(start_paused = true)]
async fn no_call_begins_under_a_claim_that_was_lost() {
    let Setup { queue, store, is_slow, .. } = setup();
    let id = ready(&queue, "a").await;
    let claim =
        Queue::claim_due(&store, 1, &Features::none(), &[], LeaseNumber::ALL).await.unwrap().pop().unwrap();
    let model = models::scripted(r#"[{"Ann": "Hello."}]"#).unwrap();
    let chat = Chat::builder("solo").participant(Assistant::new("Ann", &model).unwrap()).policy(sequential());
    let chat = chat.build().unwrap();
    is_slow.store(true, Ordering::Relaxed);
    // Its last append is kept, and its reply comes when another worker has the log.
    let run = async {
        let mut log = Log::open_claimed(store.store(), claim).await.unwrap();
        chat.run_in(&mut log, "Greet me.").await.map(|run| run.status).unwrap_err()
    };
    let other = async {
        sleep(LEASE + Duration::from_secs(1)).await;
        due(&queue).await.pop().unwrap()
    };
    let (error, other) = tokio::join!(run, other);
    assert!(matches!(error, Error::Store(StoreError::Fenced { .. })), "{error}");
    assert!(!Store::read(&queue, &id, 0).await.unwrap().is_empty(), "the turn had begun");
    // The script has one reply: the other worker receives it.
    let mut log = Log::open_claimed(queue.store().clone(), other).await.unwrap();
    assert_eq!(chat.resume(&mut log).await.unwrap().text(), "Hello.");
}

/// W11, R3: a call begins under a claim that was confirmed 24 seconds ago only when it was confirmed again.
#[tokio::test(start_paused = true)]
async fn a_claim_that_is_old_is_confirmed_before_a_call_begins() {
    let Setup { queue, store, heartbeats, is_silent, .. } = setup();
    ready(&queue, "a").await;
    let claim =
        Queue::claim_due(&store, 1, &Features::none(), &[], LeaseNumber::ALL).await.unwrap().pop().unwrap();
    let any = store.store();
    let asked = || heartbeats.load(Ordering::Relaxed);
    sleep(Duration::from_secs(23)).await;
    any.confirm(&claim).await.unwrap();
    assert_eq!(asked(), 0, "it is fresh");
    sleep(Duration::from_secs(1)).await;
    any.confirm(&claim).await.unwrap();
    assert_eq!(asked(), 1);
    any.confirm(&claim).await.unwrap();
    assert_eq!(asked(), 1, "it is fresh again");
    sleep(Duration::from_secs(24)).await;
    is_silent.store(true, Ordering::Relaxed);
    let unknown = any.confirm(&claim).await;
    assert!(matches!(unknown, Err(StoreError::Unreachable { .. })), "no call begins: {unknown:?}");
}

/// W8: while another worker has a log, the clock of the store jumps forward by a minute, twice. The log is taken over a lease after its last
/// heartbeat.
#[tokio::test(start_paused = true)]
async fn a_jump_of_the_clock_of_the_store_ends_no_lease() {
    let (begun, jump) = (Instant::now(), Arc::<AtomicU64>::default());
    let jumped = Arc::clone(&jump);
    let clock = move || {
        let passed = begun.elapsed().as_millis() as u64 + jumped.load(Ordering::Relaxed);
        Timestamp(1_763_712_000_000 + passed)
    };
    let queue = AnyQueue::new(Memory::with_clock(clock)).unwrap();
    ready(&queue, "a").await;
    let claim = due(&queue).await.pop().unwrap();
    let other = async {
        for second in 1..=55_u64 {
            sleep(Duration::from_secs(1)).await;
            match second {
                10 | 20 | 30 | 40 | 50 => {
                    let held = Queue::heartbeat(&queue, std::slice::from_ref(&claim)).await.unwrap();
                    assert_eq!(held.len(), 1, "after {second} s");
                }
                35 => jump.store(60_000, Ordering::Relaxed),
                55 => jump.store(120_000, Ordering::Relaxed),
                _ => {}
            }
        }
    };
    let time = WorkerTime::new(move || begun.elapsed(), Timer::new(sleep));
    let worker = Worker::new(WorkerStore::new(queue.clone(), time));
    let (drain, taken) = (worker.drain(), Mutex::new(None));
    let run = worker.run(|claimed: Claimed| {
        assert!(claimed.claim.found.unwrap().is_takeover);
        taken.lock().unwrap().get_or_insert(begun.elapsed());
        drain.request();
        async { Release::Until(Due::Never) }
    });
    tokio::join!(run, other);
    let taken = taken.into_inner().unwrap().unwrap();
    let (least, most) = (Duration::from_secs(50) + LEASE, Duration::from_secs(51) + LEASE);
    assert!((least..most).contains(&taken), "{taken:?}");
}

/// W18: by the clock of the workers, a log is with another one less than half a second after its worker is drained, and less than a lease and a
/// second after its worker is killed.
#[tokio::test(start_paused = true)]
async fn a_log_is_soon_with_another_worker_after_a_drain_and_after_a_kill() {
    let begun = Instant::now();
    let clock = move || Timestamp(1_763_712_000_000 + begun.elapsed().as_millis() as u64);
    let queue = AnyQueue::new(Memory::with_clock(clock)).unwrap();
    ready(&queue, "a").await;
    let claims = Arc::<Mutex<Vec<(u32, Duration)>>>::default();
    let start = |number: u32| {
        let time = WorkerTime::new(move || begun.elapsed(), Timer::new(sleep));
        let worker = Worker::new(WorkerStore::new(queue.clone(), time)).pace(Pace::of_process(number));
        let (drain, claims) = (worker.drain(), Arc::clone(&claims));
        let task = tokio::spawn(async move {
            let claims = &claims;
            let run = |claimed: Claimed| async move {
                claims.lock().unwrap().push((number, begun.elapsed()));
                while !claimed.stop.is_requested() {
                    sleep(Duration::from_millis(10)).await;
                }
                Release::Until(Due::Now)
            };
            worker.run(run).await;
        });
        (drain, task)
    };
    let at = |ms| sleep_until(begun + Duration::from_millis(ms));
    let (drain, first) = start(1);
    at(1_000).await;
    let (_, second) = start(2);
    at(60_000).await;
    drain.request();
    first.await.unwrap();
    at(120_000).await;
    let (drain, third) = start(3);
    // Just after a heartbeat: its lease has just begun.
    at(181_100).await;
    second.abort();
    at(240_000).await;
    drain.request();
    third.await.unwrap();
    let claims = claims.lock().unwrap().clone();
    assert_eq!(claims.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3], "{claims:?}");
    let gap = |nth: usize, ms| claims[nth].1 - Duration::from_millis(ms);
    assert!(gap(1, 60_000) < Duration::from_millis(500), "after a drain: {claims:?}");
    let (killed, margin) = (gap(2, 181_100), Duration::from_secs(1));
    assert!(LEASE - margin < killed && killed < LEASE + margin, "after a kill: {claims:?}");
}
