//! Rates and slots of model servers, shared by several processes: each has connections, a runtime and an endpoint of its own. Where a test
//! says so, they are processes of the system: this very program, which reads its task from variables.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use polylogue_core::{AnyModel, LearnedRate, LearnedRates, LimitScope, Rate, RateDemand, SharedLimits};
use polylogue_models::{ClusterLimits, Config, Endpoint, Key};
use polylogue_postgres::{Address, PostgresLimits};
use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};

fn limits(server: &PostgresServer) -> Arc<PostgresLimits> {
    limits_at(&server.url())
}

fn limits_at(url: &str) -> Arc<PostgresLimits> {
    Arc::new(PostgresLimits::open(Address::parse(url).unwrap()).unwrap())
}

/// A model as another process has it.
fn model(database: &PostgresServer, provider: &Server, change: impl FnOnce(Config) -> Config) -> AnyModel {
    model_at(&database.url(), &provider.base_url(), change)
}

fn model_at(database: &str, provider: &str, change: impl FnOnce(Config) -> Config) -> AnyModel {
    let cluster = Some(ClusterLimits::new(limits_at(database)));
    let config = Config { provider: "house".into(), cluster, ..Config::new(provider) };
    Endpoint::new(change(config)).unwrap().model("m").into()
}

/// Where a caller finds the database and the provider, and how many calls it makes.
const DATABASE: &str = "POLYLOGUE_TEST_DATABASE";
const PROVIDER: &str = "POLYLOGUE_TEST_PROVIDER";
const CALLS: &str = "POLYLOGUE_TEST_CALLS";

/// Another process of the system, which makes so many calls.
fn caller(database: &PostgresServer, provider: &Server, calls: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "limits::calls_of_another_process", "--ignored", "--test-threads=1"]);
    command.env(DATABASE, database.url()).env(PROVIDER, provider.base_url()).env(CALLS, calls.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

/// By 4 endpoints with 8 callers each.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "is the other process: the test below starts it"]
async fn calls_of_another_process() {
    let get = |name| std::env::var(name).expect("is started by the other test only");
    let left = Arc::new(AtomicUsize::new(get(CALLS).parse().unwrap()));
    let mut callers = Vec::new();
    for _ in 0..4 {
        let model = model_at(&get(DATABASE), &get(PROVIDER), |config| config);
        for _ in 0..8 {
            let (model, left) = (model.clone(), Arc::clone(&left));
            callers.push(tokio::spawn(async move {
                while left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok()
                {
                    model.ask("again").await.unwrap();
                }
            }));
        }
    }
    for caller in callers {
        caller.await.unwrap();
    }
}

fn keyed(key: &str) -> impl FnOnce(Config) -> Config {
    let key = Key::new(key);
    move |config| config.with_keys(key)
}

fn scope(model: &str) -> LimitScope {
    LimitScope { provider: "house".into(), account: [7; 32], model: model.into() }
}

fn rate(count: u64, burst: f64) -> LearnedRates {
    let rate = Rate { count, period: Duration::from_secs(1), burst };
    LearnedRates { requests: Some(LearnedRate { rate, remaining: None }), tokens: None }
}

/// A provider that allows 10 requests a second, 10 of them at once, and refuses others.
fn strict() -> (Playbook, Arc<Mutex<Vec<Instant>>>, Arc<AtomicUsize>) {
    let (arrivals, refused) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let bucket = Mutex::new((10.0_f64, Instant::now()));
    let (seen, counted) = (Arc::clone(&arrivals), Arc::clone(&refused));
    let playbook = Playbook::new(move |received, _| {
        let mut bucket = bucket.lock().unwrap();
        let left = (bucket.0 + 10.0 * received.at.duration_since(bucket.1).as_secs_f64()).min(10.0);
        *bucket = (left, received.at);
        if left < 1.0 {
            counted.fetch_add(1, Ordering::Relaxed);
            return Answer::status(429).retry_after_secs(1);
        }
        bucket.0 = left - 1.0;
        seen.lock().unwrap().push(received.at);
        let reset = format!("{:.0}ms", (10.0 - bucket.0) * 100.0);
        Answer::text("yes")
            .header("x-ratelimit-limit-requests", "10")
            .header("x-ratelimit-remaining-requests", format!("{:.0}", bucket.0.floor()))
            .header("x-ratelimit-reset-requests", reset)
    });
    (playbook, arrivals, refused)
}

/// W32: 8 processes of the system with 4 endpoints of 8 callers each, for as many seconds as `POLYLOGUE_SECONDS` says (default: 8).
#[tokio::test(flavor = "multi_thread")]
async fn w32_eight_processes_together_keep_a_rate_that_they_learn_and_use_it() {
    const PROCESSES: usize = 8;
    let Some(database) = PostgresServer::start() else { return };
    let (playbook, arrivals, refused) = strict();
    let provider = Server::start(playbook).await;
    let seconds: usize = std::env::var("POLYLOGUE_SECONDS").map_or(8, |text| text.parse().unwrap());
    // The first reply tells the rate.
    model(&database, &provider, |config| config).ask("first").await.unwrap();
    while database.sql("SELECT count(*) FROM polylogue.rate_limits WHERE requests_per_second IS NOT NULL")
        != "1"
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // What all of them together want is more than the rate, until the last of them ends.
    let calls = 10 * seconds;
    let of_each = |nth: usize| calls / PROCESSES + usize::from(nth < calls % PROCESSES);
    let mut callers =
        std::array::from_fn::<_, PROCESSES, _>(|nth| caller(&database, &provider, of_each(nth)));
    for caller in &mut callers {
        while caller.try_wait().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(caller.wait().unwrap().success());
    }
    let times = arrivals.lock().unwrap().clone();
    let most = times.iter().map(|from| {
        times
            .iter()
            .filter(|time| *time >= from && time.duration_since(*from) < Duration::from_secs(1))
            .count()
    });
    let most = most.max().unwrap();
    let drawn: usize = database.sql("SELECT sum(requests) FROM polylogue.rate_limits").parse().unwrap();
    // From the first call of a process, before which is that which learned the rate.
    let (first, last) = (times[1], *times.last().unwrap());
    let took = last.duration_since(first);
    println!("{} calls in {took:?}, {most} in a second at most, {drawn} permissions", times.len());
    assert_eq!(refused.load(Ordering::Relaxed), 0, "the provider refused calls");
    assert!(most <= 20, "{most} calls in a second");
    assert_eq!(times.len(), calls + 1);
    assert!(drawn * 95 <= times.len() * 100, "{drawn} permissions for {} calls", times.len());
    // At the rate, these calls take a tenth of a second each.
    let allowed = took.as_secs_f64() * 10.0;
    assert!(calls as f64 >= 0.95 * allowed, "{calls} calls, {allowed:.0} were allowed");
}

/// W33.
#[tokio::test(flavor = "multi_thread")]
async fn w33_a_wait_that_a_provider_asks_for_stops_all_calls_with_that_key_and_no_others() {
    let Some(database) = PostgresServer::start() else { return };
    let refusal: Arc<Mutex<Option<Instant>>> = Arc::default();
    let arrivals: Arc<Mutex<Vec<(bool, Instant)>>> = Arc::default();
    let is_due = Arc::new(AtomicBool::new(false));
    let (refused, seen, due) = (Arc::clone(&refusal), Arc::clone(&arrivals), Arc::clone(&is_due));
    let provider = Server::start(Playbook::new(move |received, _| {
        let is_first = received.header("authorization").unwrap().contains("first-secret");
        if is_first && due.swap(false, Ordering::SeqCst) {
            *refused.lock().unwrap() = Some(received.at);
            return Answer::status(429).retry_after_secs(5);
        }
        seen.lock().unwrap().push((is_first, received.at));
        Answer::text("yes")
    }))
    .await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for key in ["first-secret", "first-secret", "first-secret", "second-secret"] {
        let model = model(&database, &provider, keyed(key));
        let is_over = Arc::clone(&is_over);
        callers.push(tokio::spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                model.ask("again").await.unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }));
    }
    let of_first = |after: Instant| {
        arrivals.lock().unwrap().iter().filter(|(is_first, at)| *is_first && *at > after).count()
    };
    let begun = Instant::now();
    let wait = async |is_done: &dyn Fn() -> bool| {
        while !is_done() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    wait(&|| of_first(begun) > 10).await;
    is_due.store(true, Ordering::SeqCst);
    wait(&|| refusal.lock().unwrap().is_some()).await;
    let at = refusal.lock().unwrap().unwrap();
    // Until they continue.
    wait(&|| of_first(at + Duration::from_millis(4950)) > 0).await;
    is_over.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.unwrap();
    }
    let within = |is_first: bool| {
        let arrivals = arrivals.lock().unwrap();
        let of_key = arrivals.iter().filter(|(first, _)| *first == is_first);
        let after = of_key.filter_map(|(_, time)| time.checked_duration_since(at));
        after.filter(|after| (1000..4950).contains(&after.as_millis())).count()
    };
    assert_eq!(within(true), 0, "calls of the first key go on");
    assert!(within(false) > 10, "calls of the other key stopped");
    let rows = database.sql("SELECT string_agg(r::text, ' ') FROM polylogue.rate_limits r");
    assert!(!rows.contains("secret"), "{rows}");
    assert_eq!(
        database.sql("SELECT count(DISTINCT account), sum(refusals) FROM polylogue.cluster_limits"),
        "1|1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_of_a_server_are_shared() {
    let Some(database) = PostgresServer::start() else { return };
    let behavior = Behavior::from(Playbook::always(Answer::text("yes"))).latency(Duration::from_millis(40));
    let provider = Server::start(behavior).await;
    let mut callers = Vec::new();
    // A process that has ended frees its slots when their leases expire: all of them stay.
    let model = |_| model(&database, &provider, |config| Config { slots: Some(3), ..config });
    let models: Vec<AnyModel> = (0..4).map(model).collect();
    for model in &models {
        for _ in 0..4 {
            let model = model.clone();
            callers.push(tokio::spawn(async move { model.ask("once").await.map(drop) }));
        }
    }
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(provider.count(), 16);
    assert!(provider.most_at_once() <= 3, "{} at once", provider.most_at_once());
    // The last ones are freed soon.
    let view = || database.sql("SELECT slots, slots_taken FROM polylogue.cluster_limits WHERE slots > 0");
    while view() != "3|0" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_of_a_process_that_died_is_free_after_its_lease() {
    let Some(database) = PostgresServer::start() else { return };
    let (dead, alive) = (limits(&database), limits(&database));
    let taken = dead.take_slot(&scope(""), 1).await.unwrap().unwrap();
    assert_eq!(alive.take_slot(&scope(""), 1).await.unwrap(), None);
    drop(dead);
    assert_eq!(alive.take_slot(&scope(""), 1).await.unwrap(), None, "until its lease expires");
    let _ = database.sql("UPDATE polylogue.slots SET until = 'epoch'");
    let slot = alive.take_slot(&scope(""), 1).await.unwrap().unwrap();
    assert_eq!((slot.number, taken.number), (0, 0));
    alive.free(slot);
    while alive.take_slot(&scope(""), 1).await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draw_that_would_have_to_wait_too_long_changes_nothing() {
    let Some(database) = PostgresServer::start() else { return };
    grants_rates(&database).await;
}

/// On a server without limits.
pub(crate) async fn grants_rates(database: &PostgresServer) {
    let limits = limits(database);
    let demand = |requests, patience| RateDemand { requests, tokens: 0, patience };
    let unknown = limits.draw(&scope("m"), demand(1000, None)).await.unwrap();
    assert!(unknown.is_drawn && unknown.wait(1000, 0).is_zero(), "{unknown:?}");
    limits.learn(&scope("m"), rate(1, 2.0)).await.unwrap();
    let first = limits.draw(&scope("m"), demand(12, None)).await.unwrap();
    assert!(first.is_drawn && first.wait(1, 0) < Duration::from_millis(1), "two at once: {first:?}");
    let second = first.wait(2, 0).as_secs_f64();
    assert!((0.9..=1.0).contains(&second), "then one a second: {first:?}");
    let patience = Some(Duration::from_secs(5));
    let late = limits.draw(&scope("m"), demand(1, patience)).await.unwrap();
    assert!(!late.is_drawn && late.wait(0, 0) > Duration::from_secs(5), "{late:?}");
    assert_eq!(database.sql("SELECT requests FROM polylogue.rate_limits"), "12");
    limits.block(&scope("m"), Duration::from_secs(600)).await.unwrap();
    let blocked = limits.draw(&scope("m"), demand(1, patience)).await.unwrap();
    assert!(!blocked.is_drawn && blocked.wait(0, 0) > Duration::from_secs(500), "{blocked:?}");
    assert!(limits.blocked(&scope("m")).await.unwrap() > Duration::from_secs(500));
    assert!(limits.blocked(&scope("other")).await.unwrap().is_zero());
}

/// What was drawn and not used comes back: tokens of the next draw can be negative.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_drawn_and_returned() {
    let Some(database) = PostgresServer::start() else { return };
    let limits = limits(&database);
    let tokens = rate(10, 1.0).requests;
    limits.learn(&scope("m"), LearnedRates { requests: None, tokens }).await.unwrap();
    let demand = |tokens| RateDemand { requests: 1, tokens, patience: None };
    limits.draw(&scope("m"), demand(6000)).await.unwrap();
    let full = limits.draw(&scope("m"), demand(0)).await.unwrap().wait(0, 0);
    assert!((550..=600).contains(&full.as_secs()), "{full:?}");
    limits.draw(&scope("m"), demand(-5000)).await.unwrap();
    let less = limits.draw(&scope("m"), demand(0)).await.unwrap().wait(0, 0);
    assert!((50..=100).contains(&less.as_secs()), "{less:?}");
}
