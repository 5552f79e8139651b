use polylogue_core::{FailedAttempt, ModelError, ModelErrorKind};

use super::*;

fn state(weights: &[u32]) -> State {
    let keys = weights.iter().map(|weight| KeyState::new(*weight)).collect();
    State { keys, circuit: Circuit::default() }
}

fn failure(status: u16, again: RetryAdvice) -> Failure {
    failure_of(if status < 429 { ModelErrorKind::Config } else { ModelErrorKind::Unavailable }, status, again)
}

fn failure_of(kind: ModelErrorKind, status: u16, again: RetryAdvice) -> Failure {
    let error = ModelError { status: Some(status), ..ModelError::new(kind, "m", "no") };
    Failure { error, again, ended: FailedAttempt::Refused, unparsed: None }
}

fn order(state: &mut State, count: usize) -> Vec<usize> {
    (0..count).map(|_| state.next(None, Instant::now())).collect()
}

async fn pass(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn keys_share_requests_by_weight() {
    assert_eq!(order(&mut state(&[1, 1, 1]), 6), [0, 1, 2, 0, 1, 2]);
    assert_eq!(order(&mut state(&[2, 1]), 6), [0, 1, 0, 0, 1, 0]);
    let mut uneven = state(&[5, 1, 0]);
    let chosen = order(&mut uneven, 700);
    let count = |key| chosen.iter().filter(|nth| **nth == key).count();
    assert_eq!([count(0), count(1), count(2)], [500, 100, 100], "a weight of 0 counts as 1");
    assert_eq!(uneven.next(Some(2), Instant::now()), 2, "a conversation stays with its key");
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_its_rate_limit_and_others_are_used() {
    let mut keys = state(&[1, 1]);
    let limited = |asked| failure(429, RetryAdvice::Yes(asked));
    let after = keys.failed(0, limited(Some(20 * SECOND)), Instant::now());
    assert_eq!(after.again, RetryAdvice::OtherKey, "the other key at once");
    assert_eq!(order(&mut keys, 3), [1, 1, 1]);
    assert_eq!(keys.next(Some(0), Instant::now()), 1, "even if a conversation is bound to the first");
    assert_eq!(keys.waiting_for(Instant::now()), None);
    // Without a wait from the provider: 5 s.
    let after = keys.failed(1, limited(None), Instant::now());
    assert_eq!(after.again, RetryAdvice::Yes(None), "no other key is left");
    assert_eq!(keys.waiting_for(Instant::now()), Some(5 * SECOND));
    assert_eq!(keys.next(None, Instant::now()), 1, "the one that is ready first");
    pass(5).await;
    assert_eq!((keys.waiting_for(Instant::now()), order(&mut keys, 2)), (None, vec![1, 1]));
    pass(15).await;
    assert!(order(&mut keys, 2).contains(&0));
    keys.failed(0, limited(Some(Duration::from_secs(86_400))), Instant::now());
    assert_eq!(keys.keys[0].cools_for(Instant::now()), 600 * SECOND, "no longer than ten minutes");
    let after = keys.failed(1, limited(Some(Duration::ZERO)), Instant::now());
    assert_eq!((after.again, keys.next(None, Instant::now())), (RetryAdvice::Yes(Some(Duration::ZERO)), 1));
}

/// Several requests in flight meet the same limit, and not each response says for how long.
#[tokio::test(start_paused = true)]
async fn a_later_response_does_not_shorten_the_wait_of_a_key() {
    let mut keys = state(&[1]);
    for asked in [Some(60 * SECOND), None, Some(2 * SECOND)] {
        keys.failed(0, failure(429, RetryAdvice::Yes(asked)), Instant::now());
    }
    assert_eq!(keys.waiting_for(Instant::now()), Some(60 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn five_failures_in_a_row_open_the_circuit_and_one_call_tries_it_after_30_s() {
    let mut keys = state(&[1]);
    let fail =
        |keys: &mut State, status| drop(keys.failed(0, failure(status, RetryAdvice::No), Instant::now()));
    for status in [500, 503, 529, 502, 400, 401, 404, 429] {
        fail(&mut keys, status);
        assert_eq!(keys.circuit.open_for(Instant::now()), None, "{status}");
    }
    fail(&mut keys, 500);
    assert_eq!(keys.circuit.open_for(Instant::now()), Some(30 * SECOND));
    pass(30).await;
    assert_eq!(keys.circuit.open_for(Instant::now()), None, "one tries it");
    assert_eq!(keys.circuit.open_for(Instant::now()), Some(30 * SECOND), "and others do not");
    pass(10).await;
    fail(&mut keys, 500);
    assert_eq!(keys.circuit.open_for(Instant::now()), Some(30 * SECOND), "it failed again");
    pass(30).await;
    assert_eq!(keys.circuit.open_for(Instant::now()), None);
    keys.circuit.close();
    fail(&mut keys, 500);
    assert_eq!(keys.circuit.open_for(Instant::now()), None, "a reply closed it");
    for _ in 0..9 {
        let filtered = failure_of(ModelErrorKind::ContentFiltered, 400, RetryAdvice::No);
        drop(keys.failed(0, filtered, Instant::now()));
    }
    assert_eq!(keys.circuit.open_for(Instant::now()), None, "a filtered prompt says nothing of the endpoint");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_five_times_in_a_row_is_not_used_for_30_s_while_another_works() {
    let mut keys = state(&[1, 1]);
    let succeed = |keys: &mut State, nth: usize| {
        keys.circuit.close();
        keys.keys[nth].circuit.close();
    };
    let fail = |keys: &mut State, nth| drop(keys.failed(nth, failure(500, RetryAdvice::No), Instant::now()));
    for round in 0..5 {
        assert!(order(&mut keys, 2).contains(&0), "round {round}");
        fail(&mut keys, 0);
        succeed(&mut keys, 1);
    }
    assert_eq!(order(&mut keys, 4), [1, 1, 1, 1]);
    assert_eq!(keys.next(Some(0), Instant::now()), 1, "even if a conversation is bound to the first");
    assert_eq!(keys.waiting_for(Instant::now()), None, "the endpoint works");
    pass(30).await;
    assert_eq!(order(&mut keys, 3).iter().filter(|nth| **nth == 0).count(), 1, "one call tries it");
    fail(&mut keys, 0);
    assert_eq!(order(&mut keys, 2), [1, 1], "it failed again");
    pass(30).await;
    assert!(order(&mut keys, 2).contains(&0));
    succeed(&mut keys, 0);
    assert_eq!(order(&mut keys, 4).iter().filter(|nth| **nth == 0).count(), 2, "a reply closed its circuit");
    // If no key is left, the one is used that waited longest, and models with a fallback skip the endpoint.
    for nth in [0, 0, 0, 0, 0, 1, 1, 1, 1, 1] {
        fail(&mut keys, nth);
    }
    assert_eq!(keys.waiting_for(Instant::now()), Some(30 * SECOND));
    assert!(keys.next(None, Instant::now()) < 2);
}

/// A day's quota begins again, and accounts are topped up, while a server runs.
#[tokio::test(start_paused = true)]
async fn keys_without_credit_are_tried_again_after_ten_minutes() {
    let mut keys = state(&[1, 1, 1]);
    let spend = |keys: &mut State, nth, status| {
        let failure = failure_of(ModelErrorKind::QuotaExceeded, status, RetryAdvice::Spent);
        keys.failed(nth, failure, Instant::now()).again
    };
    assert_eq!(spend(&mut keys, 0, 429), RetryAdvice::Now, "the next key");
    assert_eq!(order(&mut keys, 4), [1, 2, 1, 2]);
    pass(60).await;
    assert_eq!(spend(&mut keys, 1, 402), RetryAdvice::Now);
    assert_eq!(spend(&mut keys, 2, 400), RetryAdvice::Spent, "none is left");
    assert_eq!(keys.waiting_for(Instant::now()), Some(540 * SECOND), "a fallback skips the endpoint");
    assert_eq!(order(&mut keys, 2), [0, 0], "without one, the key is tried that may be used first");
    assert_eq!(spend(&mut keys, 0, 403), RetryAdvice::Spent, "and no other, which may not, either");
    pass(600).await;
    assert_eq!((keys.waiting_for(Instant::now()), keys.circuit.open_for(Instant::now())), (None, None));
    let mut tried = order(&mut keys, 3);
    tried.sort_unstable();
    assert_eq!(tried, [0, 1, 2]);
    // An account that is topped up counts at once.
    let mut keys = state(&[1]);
    spend(&mut keys, 0, 429);
    assert_eq!(keys.waiting_for(Instant::now()), Some(600 * SECOND));
    keys.keys[0].succeed();
    assert_eq!(keys.waiting_for(Instant::now()), None);
}

/// A key that was revoked while a server runs.
#[tokio::test(start_paused = true)]
async fn a_refused_key_is_left_out_unless_it_is_the_last_one() {
    let mut keys = state(&[1, 1]);
    let refuse =
        |keys: &mut State, nth| keys.failed(nth, failure(401, RetryAdvice::KeyRefused), Instant::now()).again;
    assert_eq!(refuse(&mut keys, 0), RetryAdvice::OtherKey);
    assert_eq!(order(&mut keys, 3), [1, 1, 1]);
    assert_eq!(refuse(&mut keys, 1), RetryAdvice::KeyRefused, "none is left");
    assert_eq!(order(&mut keys, 3), [1, 1, 1], "so that each call says what is wrong");
    assert_eq!(keys.waiting_for(Instant::now()), None, "and no fallback hides it");
    pass(600).await;
    assert!(order(&mut keys, 2).contains(&0), "it may have been renewed");
    let mut only = state(&[1]);
    assert_eq!(refuse(&mut only, 0), RetryAdvice::KeyRefused);
    assert_eq!(only.waiting_for(Instant::now()), None);
}
