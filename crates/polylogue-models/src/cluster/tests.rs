//! Callers of one process, on virtual time, with limits in memory.

use std::collections::BTreeMap;

use polylogue_core::{LimitsFuture, RateDemand, RateGrant, RateTimes, SharedLimits, StoreError};

use super::*;

/// Rates in memory, as a database keeps them.
#[derive(Default)]
pub(crate) struct Memory {
    rows: Mutex<BTreeMap<LimitScope, Row>>,
    draws: Mutex<Vec<RateDemand>>,
    /// How many of the next rates are not stored.
    failures: Mutex<usize>,
}

pub(crate) struct Row {
    pub(crate) rates: LearnedRates,
    requests_next: Instant,
    tokens_next: Instant,
    blocked_until: Instant,
}

fn spend(rate: Option<LearnedRate>, next: &mut Instant, blocked: Instant, count: f64) -> RateTimes {
    let Some(LearnedRate { rate, .. }) = rate else { return RateTimes::default() };
    let (now, interval) = (Instant::now(), 1.0 / rate.per_second());
    let oldest = now - Duration::from_secs_f64((rate.burst - 1.0) * interval);
    let start = (*next).max(oldest).max(blocked);
    let moved = Duration::from_secs_f64((count * interval).abs());
    *next = if count < 0.0 { start - moved } else { start + moved };
    let ahead = start.saturating_duration_since(now).as_secs_f64();
    RateTimes::from(ahead - now.saturating_duration_since(start).as_secs_f64(), interval)
}

impl Memory {
    pub(crate) fn row<T>(&self, scope: &LimitScope, change: impl FnOnce(&mut Row) -> T) -> T {
        let now = Instant::now();
        let empty = || Row {
            rates: LearnedRates::default(),
            requests_next: now - Duration::from_secs(3600),
            tokens_next: now - Duration::from_secs(3600),
            blocked_until: now,
        };
        change(self.rows.lock().unwrap().entry(scope.clone()).or_insert_with(empty))
    }
}

impl SharedLimits for Memory {
    fn draw<'a>(&'a self, scope: &'a LimitScope, demand: RateDemand) -> LimitsFuture<'a, RateGrant> {
        self.draws.lock().unwrap().push(demand);
        let grant = self.row(scope, |row| {
            let now = Instant::now();
            let next = row.requests_next.max(row.tokens_next).max(row.blocked_until);
            let wait = next.saturating_duration_since(now);
            let is_drawn = demand.patience.is_none_or(|patience| wait <= patience);
            let blocked = row.blocked_until.saturating_duration_since(now);
            if !is_drawn {
                let interval = row.rates.requests.map_or(0.0, |learned| 1.0 / learned.rate.per_second());
                let requests = RateTimes::from(wait.as_secs_f64(), interval);
                return RateGrant { requests, blocked, ..RateGrant::default() };
            }
            let blocked_until = row.blocked_until;
            let (requests, tokens) = (f64::from(demand.requests), demand.tokens as f64);
            RateGrant {
                is_drawn,
                requests: spend(row.rates.requests, &mut row.requests_next, blocked_until, requests),
                tokens: spend(row.rates.tokens, &mut row.tokens_next, blocked_until, tokens),
                blocked,
            }
        });
        Box::pin(async move { Ok(grant) })
    }

    fn learn<'a>(&'a self, scope: &'a LimitScope, rates: LearnedRates) -> LimitsFuture<'a, ()> {
        let mut failures = self.failures.lock().unwrap();
        if let Some(left) = failures.checked_sub(1) {
            *failures = left;
            return Box::pin(async { Err(StoreError::Full { place: "a database".into() }) });
        }
        self.row(scope, |row| row.rates = rates);
        Box::pin(async { Ok(()) })
    }

    fn block<'a>(&'a self, scope: &'a LimitScope, wait: Duration) -> LimitsFuture<'a, ()> {
        self.row(scope, |row| row.blocked_until = Instant::now() + wait);
        Box::pin(async { Ok(()) })
    }

    fn blocked<'a>(&'a self, scope: &'a LimitScope) -> LimitsFuture<'a, Duration> {
        let wait = self.row(scope, |row| row.blocked_until.saturating_duration_since(Instant::now()));
        Box::pin(async move { Ok(wait) })
    }

    fn take_slot<'a>(&'a self, _: &'a LimitScope, _: u32) -> LimitsFuture<'a, Option<Slot>> {
        Box::pin(async { Ok(None) })
    }

    fn free(&self, _: Slot) {}
}

fn scope() -> LimitScope {
    LimitScope { provider: "p".into(), account: [7; 32], model: "m".into() }
}

pub(crate) fn rate(count: u64, burst: f64) -> Option<LearnedRate> {
    Some(LearnedRate { rate: Rate { count, period: Duration::from_secs(1), burst }, remaining: None })
}

fn limiters(rates: LearnedRates, processes: usize) -> (Arc<Memory>, Vec<Arc<SharedLimiter>>) {
    let memory = Arc::new(Memory::default());
    memory.row(&scope(), |row| row.rates = rates);
    let limiter = |_| Arc::new(SharedLimiter::new(scope(), Arc::clone(&memory) as Arc<dyn SharedLimits>));
    let limiters = (0..processes).map(limiter).collect();
    (memory, limiters)
}

/// Begins `calls` calls at once through each limiter. Returns when they began, in milliseconds, in order.
async fn begin(limiters: &[Arc<SharedLimiter>], calls: usize, tokens: u64) -> Vec<u128> {
    let begun = Instant::now();
    let all = limiters.iter().flat_map(|limiter| vec![Arc::clone(limiter); calls]);
    let tasks: Vec<_> = all
        .map(|limiter| {
            tokio::spawn(async move {
                limiter.pass(tokens, None).await.unwrap();
                begun.elapsed().as_millis()
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.push(task.await.unwrap());
    }
    times.sort_unstable();
    times
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn processes_together_keep_a_rate_and_lose_none_of_it() {
    let (memory, limiters) = limiters(LearnedRates { requests: rate(10, 2.0), tokens: None }, 4);
    let times = begin(&limiters, 50, 0).await;
    assert_eq!(times.len(), 200);
    for (nth, time) in times.iter().enumerate() {
        let in_window = times.iter().filter(|other| **other >= *time && **other < *time + 1000).count();
        assert!(in_window <= 12, "{in_window} calls from {time} ms on, the call {nth}");
    }
    // 2 at once, and then 10 each second.
    assert!((19_700..=20_100).contains(times.last().unwrap()), "{:?}", times.last());
    let largest = memory.draws.lock().unwrap().iter().skip(4).map(|draw| draw.requests).max();
    assert_eq!(largest, Some(20), "2 s at once");
}

#[tokio::test(start_paused = true)]
async fn tokens_limit_calls_and_unused_ones_are_returned() {
    let (memory, limiters) = limiters(LearnedRates { requests: None, tokens: rate(1000, 1.0) }, 1);
    assert_eq!(begin(&limiters, 3, 500).await, [0, 500, 1000], "each waits for the tokens of those before");
    limiters[0].settle(500, 100);
    limiters[0].settle(500, 100);
    // What the last call drew is due at 1.5 s, and 0.8 s of that are not used.
    assert_eq!(begin(&limiters, 2, 500).await, [500, 1000]);
    let draws = memory.draws.lock().unwrap().clone();
    assert_eq!(draws.last().map(|draw| draw.tokens), Some(200), "1,000, less 800");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_a_provider_asks_for_is_heard_by_all_within_a_second() {
    let (_, limiters) = limiters(LearnedRates { requests: rate(10, 1.0), tokens: None }, 2);
    let (one, other) = (Arc::clone(&limiters[0]), Arc::clone(&limiters[1]));
    let begun = Instant::now();
    let calls = tokio::spawn(async move { begin(&[other], 40, 0).await });
    tokio::time::sleep(Duration::from_millis(1050)).await;
    one.block(10 * SECOND).await;
    let times = calls.await.unwrap();
    let before: Vec<_> = times.iter().filter(|time| **time < 11_000).collect();
    assert!(before.iter().all(|time| **time <= 1500), "{before:?}");
    assert_eq!(before.len() + times.iter().filter(|time| **time >= 11_050).count(), 40);
    assert!(begun.elapsed() < 16 * SECOND, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_would_wait_longer_than_its_patience_draws_nothing() {
    let (memory, limiters) = limiters(LearnedRates { requests: rate(1, 1.0), tokens: None }, 1);
    limiters[0].block(60 * SECOND).await;
    let patience = Some(5 * SECOND);
    let (first, second) = tokio::join!(limiters[0].pass(0, patience), limiters[0].pass(0, patience));
    assert_eq!((first, second), (Err(60 * SECOND), Err(61 * SECOND)), "one after the other");
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(limiters[0].pass(0, patience).await, Ok(()));
    assert_eq!(memory.draws.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn callers_that_give_up_draw_nothing_and_hold_up_no_others() {
    let (memory, limiters) = limiters(LearnedRates { requests: rate(1, 1.0), tokens: None }, 1);
    limiters[0].pass(0, None).await.unwrap();
    let waiting = tokio::spawn(begin_one(Arc::clone(&limiters[0])));
    tokio::time::sleep(Duration::from_millis(10)).await;
    let gave_up = tokio::time::timeout(Duration::from_millis(100), limiters[0].pass(0, None)).await;
    assert!(gave_up.is_err());
    waiting.await.unwrap();
    let last = begin(&limiters, 1, 0).await;
    assert_eq!(last, [1000]);
    assert_eq!(memory.draws.lock().unwrap().iter().map(|draw| draw.requests).sum::<u32>(), 3);
}

/// The first caller waits as long as it takes, and others can use another key.
#[tokio::test(start_paused = true)]
async fn a_caller_with_little_patience_does_not_wait_for_a_patient_one() {
    let (_, limiters) = limiters(LearnedRates { requests: rate(1, 1.0), tokens: None }, 1);
    limiters[0].block(60 * SECOND).await;
    let begun = Instant::now();
    let impatient = async {
        let together = limiters[0].pass(0, Some(SECOND)).await;
        tokio::time::sleep(SECOND).await;
        (together, limiters[0].pass(0, Some(SECOND)).await, begun.elapsed())
    };
    let (patient, refused) = tokio::join!(limiters[0].pass(0, None), impatient);
    assert_eq!((patient, refused), (Ok(()), (Err(60 * SECOND), Err(59 * SECOND), SECOND)));
}

#[tokio::test(start_paused = true)]
async fn a_count_of_tokens_that_no_call_can_have_does_not_hold_up_all_processes() {
    let (memory, limiters) = limiters(LearnedRates { requests: None, tokens: rate(1000, 1.0) }, 1);
    limiters[0].settle(0, u64::MAX);
    assert_eq!(begin(&limiters, 1, 500).await.len(), 1);
    assert_eq!(memory.draws.lock().unwrap()[0].tokens, 10_000_500);
}

#[tokio::test(start_paused = true)]
async fn a_limit_per_minute_that_could_not_be_stored_is_stored_with_the_next_call() {
    let memory = Arc::new(Memory { failures: Mutex::new(1), ..Memory::default() });
    let config = Config {
        cluster: Some(ClusterLimits::new(Arc::clone(&memory) as Arc<dyn SharedLimits>)),
        limits: crate::Limits { in_flight: None, per_minute: Some(60) },
        ..Config::new("http://127.0.0.1:1/v1")
    };
    let limiters = EndpointLimiters::new(&config, "http://127.0.0.1:1/v1").unwrap();
    let is_stored = || memory.row(&limiters.server, |row| row.rates.requests.is_some());
    assert!(limiters.begin(None).await.is_ok() && !is_stored());
    assert!(limiters.begin(None).await.is_ok() && is_stored());
}

async fn begin_one(limiter: Arc<SharedLimiter>) {
    limiter.pass(0, None).await.unwrap();
}

#[test]
fn a_limit_per_minute_holds_in_every_minute() {
    for count in [0, 1, 2, 3, 10, 60, 1000] {
        let rate = minutely(count);
        let most = rate.burst + 60.25 * rate.per_second();
        assert!(most < f64::from(count.max(1)) + 1.0, "{count}: {rate:?}");
        assert!(most > f64::from(count) * 0.94 - 1.0, "{count}: {rate:?}");
    }
}

#[test]
fn an_account_is_a_digest_of_address_and_key() {
    assert_eq!(account(&["http://a", "k"]), account(&["http://a", "k"]));
    assert_ne!(account(&["http://a", "k"]), account(&["http://a", "l"]));
    assert_ne!(account(&["http://a", "k"]), account(&["http://ak", ""]));
}
