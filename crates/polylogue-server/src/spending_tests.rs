//! Tests of what tokens spend.

use polylogue_core::{Body, Charge, ChargeReason, Meta, Name, Path, Timestamp};
use polylogue_store::Memory;

use super::*;
use crate::token::NewToken;
use crate::token_file::TokenFile;

#[test]
fn a_token_pays_until_another_one_does_also_if_that_has_no_budget() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = TokenFile::at(dir.path().join("tokens.json"));
    let spending = Spending::at(dir.path().join("spending.jsonl"), false);
    let payer = |tokens_per_day| {
        let per_day = DailyBudget { tokens: tokens_per_day, ..DailyBudget::default() };
        let (token, _) = tokens.create(NewToken { per_day, ..NewToken::local("a") }).unwrap();
        spending.payer(&token)
    };
    let (bounded, free) = (payer(Some(9)), payer(None));
    let run = LogId::new("run").unwrap();
    spending.note(&free, "local", &run, 0).unwrap();
    assert_eq!(spending.lines().unwrap(), [], "no budget is counted");
    for (payer, from) in [(&bounded, 3), (&free, 7), (&Payer::default(), 8)] {
        spending.note(payer, "local", &run, from).unwrap();
    }
    let lines: Vec<_> = spending.lines().unwrap().into_iter().map(|line| (line.payer, line.from)).collect();
    assert_eq!(lines, [(bounded.noted.clone(), 3), (free.noted, 7), (NotedPayer::default(), 8)]);
    let limits = &lines[0].0.limits;
    assert!(limits.len() == 1 && limits[0].per_day.tokens == Some(9), "{limits:?}");
    let torn = fs::read(&spending.file).unwrap();
    fs::write(&spending.file, torn.strip_suffix(b"}\n").unwrap()).unwrap();
    spending.note(&bounded, "local", &run, 9).unwrap();
    let from: Vec<_> = spending.lines().unwrap().iter().map(|line| line.from).collect();
    assert_eq!(from, [3, 7, 9], "a torn line takes no other with it");
    let paid = spending.note(&bounded, "local", &run, 10).unwrap().unwrap();
    spending.settle(paid, &[]).unwrap();
    let used: Vec<_> =
        spending.lines().unwrap().iter().map(|line| (line.from, line.used.is_some())).collect();
    assert_eq!(used, [(3, false), (7, false), (9, false), (10, true)], "one line of each run");
    let huge = TotalUsage { input: u64::MAX, output: u64::MAX, ..TotalUsage::default() };
    assert!(bounded.accounts[0].spent().is_none());
    let payer = payer(Some(1));
    (0..2).for_each(|_| payer.budgets()[0].spend(huge.counted()));
    assert!(payer.accounts[0].spent().unwrap().ends_with(" of 1 tokens"));
}

/// An event at which ten tokens are charged.
fn charged(seq: u64) -> Arc<Event> {
    let (who, model, why) = (Name::new("Ann").unwrap(), "test".into(), ChargeReason::Failed);
    let (output, cost, call, bound) = (None, None, None, None);
    let charge = Charge { who, model, why, calls: 1, tokens: Some(10), output, cost, call, bound };
    let (at, time, body) = (Path::root(), Timestamp(0), Body::Charged(charge));
    Arc::new(Event { seq, chat: at, time, ran_ms: 0, inbox: None, body })
}

#[tokio::test]
async fn what_a_dead_process_has_left_is_settled_once_before_the_conversation_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = TokenFile::at(dir.path().join("tokens.json"));
    let spending = Spending::at(dir.path().join("spending.jsonl"), false);
    let per_day = DailyBudget { tokens: Some(100), ..DailyBudget::default() };
    let (token, _) = tokens.create(NewToken { per_day, ..NewToken::local("a") }).unwrap();
    let (payer, run) = (spending.payer(&token), LogId::new("run").unwrap());
    let store = AnyStore::new(Memory::new());
    let claim = store.create(&run, &Meta::default()).await.unwrap();
    store.append(&claim, &[charged(0), charged(1), charged(2)]).await.unwrap();
    for from in [0, 1] {
        spending.note(&payer, "local", &run, from).unwrap();
    }
    let used = || -> Vec<(u64, Option<u64>)> {
        let of = |line: &Line| (line.from, line.used.map(|used| used.counted().tokens));
        spending.lines().unwrap().iter().map(of).collect()
    };
    let running = spending.settle_left("local", &store, &run).await;
    assert!(matches!(running, Err(StoreError::Busy { .. })), "{running:?}");
    assert_eq!(used(), [(0, None), (1, None)]);
    store.release(claim).await.unwrap();
    for tenant in ["other", "local", "local"] {
        spending.settle_left(tenant, &store, &run).await.unwrap();
    }
    assert_eq!(used(), [(0, Some(10)), (1, Some(20))]);
    // A conversation of the same id begins, and ends.
    store.remove(&run).await.unwrap();
    let paid = spending.note(&payer, "local", &run, 0).unwrap().unwrap();
    assert_eq!(used(), [(0, Some(10)), (1, Some(20)), (0, None)]);
    spending.settle(paid, &[charged(0)]).unwrap();
    assert_eq!(used(), [(0, Some(10)), (1, Some(20)), (0, Some(10))]);
}

#[test]
fn a_new_day_drops_the_lines_of_earlier_ones() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = TokenFile::at(dir.path().join("tokens.json"));
    let spending = Spending::at(dir.path().join("spending.jsonl"), false);
    let per_day = DailyBudget { tokens: Some(100), ..DailyBudget::default() };
    let (token, _) = tokens.create(NewToken { per_day, ..NewToken::local("a") }).unwrap();
    let (payer, day) = (spending.payer(&token), today());
    let run = |name: &str| LogId::new(name).unwrap();
    for name in ["a", "b"] {
        let PaidRun(line) = spending.note(&payer, "local", &run(name), 0).unwrap().unwrap();
        spending.append(&Line { day: day - 1, used: Some(TotalUsage::default()), ..line }).unwrap();
    }
    let names =
        || -> Vec<String> { spending.lines().unwrap().iter().map(|line| line.run.to_string()).collect() };
    assert_eq!(names(), ["a", "b"], "the same day");
    // As if it had been written last on the day before.
    spending.written.store(day - 1, Ordering::Relaxed);
    spending.note(&payer, "local", &run("c"), 0).unwrap();
    assert_eq!(names(), ["c"]);
    assert_eq!(fs::read_to_string(&spending.file).unwrap().trim().lines().count(), 1);
}

#[test]
fn what_is_noted_while_earlier_lines_are_counted_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = TokenFile::at(dir.path().join("tokens.json"));
    let spending = Spending::at(dir.path().join("spending.jsonl"), false);
    let per_day = DailyBudget { tokens: Some(100), ..DailyBudget::default() };
    let (token, _) = tokens.create(NewToken { per_day, ..NewToken::local("a") }).unwrap();
    let payer = spending.payer(&token);
    let note = |name: &str| spending.note(&payer, "local", &LogId::new(name).unwrap(), 0).unwrap().unwrap();
    let (settled, _left) = (note("a"), note("b"));
    let lines = spending.lines_of(today()).unwrap();
    // Another process settles one, and begins another.
    spending.settle(settled, &[charged(0)]).unwrap();
    note("c");
    let counted = TotalUsage { input: 7, ..TotalUsage::default() };
    spending.keep(today(), lines.into_iter().map(|line| (line, Some(counted)))).unwrap();
    let used: Vec<_> = spending.lines().unwrap().into_iter().map(|line| line.used).collect();
    assert_eq!(used, [Some(Summary::of([&*charged(0)], true).usage), Some(counted), None]);
}
