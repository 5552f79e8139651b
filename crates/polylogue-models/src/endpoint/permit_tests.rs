//! Requests of one process on virtual time, with limits in memory. Nothing is sent.

use std::sync::{Arc, Mutex};

use polylogue_core::{LearnedRates, SharedLimits};
use tokio::time::{Instant, sleep};

use super::*;
use crate::cluster::tests::{Memory, rate};
use crate::config::Config;
use crate::limits::{ClusterLimits, Limits};

const SECOND: Duration = Duration::from_secs(1);

fn endpoint(in_flight: usize, patience: Option<Duration>) -> (Arc<Memory>, Endpoint) {
    let memory = Arc::new(Memory::default());
    let limits = Arc::clone(&memory) as Arc<dyn SharedLimits>;
    let config = Config {
        cluster: Some(ClusterLimits { limits, patience }),
        limits: Limits { in_flight: Some(in_flight), per_minute: None },
        ..Config::new("http://127.0.0.1:1/v1")
    };
    (memory, Endpoint::new(config).unwrap())
}

fn scope(endpoint: &Endpoint, model: &str) -> polylogue_core::LimitScope {
    endpoint.0.shared_limiters.as_ref().unwrap().scope(0, model)
}

/// What is noted of all requests: how many are in flight, and at most were; who began, and when, in milliseconds.
#[derive(Default)]
struct Noted {
    in_flight: usize,
    most: usize,
    begun: Vec<(&'static str, usize, u128)>,
}

/// The request `nth` to `model`, which lasts for `time`.
async fn request(
    endpoint: Endpoint,
    noted: Arc<Mutex<Noted>>,
    (model, nth): (&'static str, usize),
    since: Instant,
    time: Duration,
) {
    let name = format!("p:{model}");
    let admitted = endpoint.admitted(None, 0, &endpoint.context(&name)).await.unwrap();
    {
        let mut noted = noted.lock().unwrap();
        noted.in_flight += 1;
        noted.most = noted.most.max(noted.in_flight);
        noted.begun.push((model, nth, since.elapsed().as_millis()));
    }
    sleep(time).await;
    noted.lock().unwrap().in_flight -= 1;
    drop(admitted);
}

/// Sends `calls` of a number of requests to models which last for some time. Returns what is noted of them.
async fn send(endpoint: &Endpoint, calls: &[(&'static str, usize, Duration)]) -> Noted {
    let (noted, since) = (Arc::new(Mutex::new(Noted::default())), Instant::now());
    let mut tasks = Vec::new();
    for &(model, count, time) in calls {
        for nth in 0..count {
            let task = request(endpoint.clone(), Arc::clone(&noted), (model, nth), since, time);
            tasks.push(tokio::spawn(task));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    std::mem::take(&mut *noted.lock().unwrap())
}

fn times(noted: &Noted, model: &str) -> Vec<u128> {
    noted.begun.iter().filter(|(of, ..)| *of == model).map(|(.., time)| *time).collect()
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_a_rate_leave_their_places_to_others() {
    let (memory, endpoint) = endpoint(2, None);
    memory.block(&scope(&endpoint, "blocked"), 60 * SECOND).await.unwrap();
    let ten_ms = Duration::from_millis(10);
    let noted = send(&endpoint, &[("blocked", 10, ten_ms), ("free", 10, ten_ms)]).await;
    assert_eq!(noted.most, 2);
    let free = times(&noted, "free");
    assert!(free.len() == 10 && free.iter().all(|time| *time < 1_000), "{free:?}");
    let blocked = times(&noted, "blocked");
    assert!(blocked.len() == 10 && blocked.iter().all(|time| *time >= 60_000), "{blocked:?}");
}

/// One that tries its place for a moment can be overtaken by those that have none to try.
#[tokio::test(start_paused = true)]
async fn requests_of_one_rate_are_overtaken_by_no_more_than_have_places() {
    const PLACES: usize = 4;
    let (memory, endpoint) = endpoint(PLACES, None);
    memory
        .row(&scope(&endpoint, "m"), |row| row.rates = LearnedRates { requests: rate(2, 1.0), tokens: None });
    let noted = send(&endpoint, &[("m", 12, Duration::from_millis(10))]).await;
    let order: Vec<usize> = noted.begun.iter().map(|(_, nth, _)| *nth).collect();
    let is_near = |(at, nth): (usize, &usize)| at.abs_diff(*nth) < PLACES;
    assert!(order.len() == 12 && order.iter().enumerate().all(is_near), "{order:?}");
    let times = times(&noted, "m");
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 490), "{times:?}");
    assert!(*times.last().unwrap() <= 6_500, "{times:?}");
}

/// Places are scarce, and so is the rate of one model.
#[tokio::test(start_paused = true)]
async fn a_rate_holds_while_places_are_scarce_and_no_request_waits_forever() {
    let (memory, endpoint) = endpoint(2, None);
    let one_a_second = LearnedRates { requests: rate(1, 1.0), tokens: None };
    memory.row(&scope(&endpoint, "slow"), |row| row.rates = one_a_second);
    let noted = send(&endpoint, &[("slow", 6, SECOND), ("free", 60, 2 * SECOND)]).await;
    assert_eq!((noted.most, noted.begun.len()), (2, 66));
    let slow = times(&noted, "slow");
    assert!(slow.windows(2).all(|pair| pair[1] - pair[0] >= 750), "{slow:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_patience_fails_at_once_and_has_no_place() {
    let (memory, endpoint) = endpoint(1, Some(5 * SECOND));
    memory.block(&scope(&endpoint, "m"), 60 * SECOND).await.unwrap();
    let begun = Instant::now();
    let failure = endpoint.admitted(None, 0, &endpoint.context("p:m")).await.err().unwrap();
    assert_eq!((failure.error.wait(), begun.elapsed()), (Some(60 * SECOND), Duration::ZERO));
    assert!(endpoint.0.limiter.free_place().is_some());
}

/// A turn can be cancelled at any time.
#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_leaves_no_place_behind() {
    let (memory, endpoint) = endpoint(1, None);
    memory.block(&scope(&endpoint, "m"), 60 * SECOND).await.unwrap();
    for milliseconds in [0, 50, 150, 5_000] {
        let context = endpoint.context("p:m");
        let waiting = endpoint.admitted(None, 0, &context);
        assert!(tokio::time::timeout(Duration::from_millis(milliseconds), waiting).await.is_err());
        assert!(endpoint.0.limiter.free_place().is_some(), "{milliseconds} ms");
    }
}
