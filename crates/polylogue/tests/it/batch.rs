//! Conversations by the thousand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polylogue::policies::with_termination;
use polylogue::runs::Report;
use polylogue::runs::batch::{Batch, BatchResult, BatchStart};
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Error, Human, Status, round_robin, sequential};
use polylogue_core::{
    AnyStore, Budget, DeltaSink, Event, LogId, Meta, Model, ModelError, ModelErrorKind, Money, Reply,
    Request, RunBound, StopReason, Store, Usage,
};
use polylogue_models::Script;
use polylogue_store::{Jsonl, Memory};
use tokio::sync::Semaphore;

/// Repeats its input, for 10 tokens and a cent; fails on request, and counts its calls.
#[derive(Default)]
struct Echo {
    calls: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
    fails: Option<&'static str>,
    /// Waits for a permit before it replies.
    gate: Option<Arc<Semaphore>>,
}

struct Shared(Arc<Echo>);

impl Model for Shared {
    fn name(&self) -> &str {
        "test:echo"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let echo = &*self.0;
        echo.calls.fetch_add(1, Ordering::Relaxed);
        echo.most.fetch_max(1 + echo.now.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        match &echo.gate {
            Some(gate) => gate.acquire().await.unwrap().forget(),
            None => tokio::task::yield_now().await,
        }
        echo.now.fetch_sub(1, Ordering::Relaxed);
        let said = format!("{:?}", request.entries.last().unwrap());
        if echo.fails.is_some_and(|task| said.contains(task)) {
            return Err(ModelError::new(ModelErrorKind::Unavailable, self.name(), "no"));
        }
        let usage = Usage { input: Some(7), output: Some(3), ..Usage::default() };
        Ok(Reply { usage, ..Reply::new(format!("{} words", said.len())) })
    }

    fn cost(&self, _: &Usage) -> Option<Money> {
        Some(Money::dollars(0.01))
    }
}

fn start(model: &AnyModel, turns: u64) -> impl Fn(&String) -> polylogue::Result<BatchStart> {
    let model = model.clone();
    move |task| {
        let agent = |name: &str| Assistant::new(name, model.clone());
        let chat = Chat::builder("pair").participant(agent("Ann")?).participant(agent("Bob")?);
        let chat = chat.policy(with_termination(round_robin(), max_turns(turns))).build()?;
        Ok(BatchStart {
            id: LogId::new(task)?,
            meta: Meta::default(),
            chat,
            task: task.clone(),
            bound: RunBound::default(),
        })
    }
}

fn tasks(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("task-{number:03}")).collect()
}

/// What became of every task.
type Outcomes = BTreeMap<String, (polylogue::Result<Status>, Vec<Arc<Event>>)>;

async fn outcomes(batch: &Batch, tasks: Vec<String>, model: &AnyModel) -> Outcomes {
    let mut outcomes = Outcomes::new();
    let each = |ended: BatchResult<String>| drop(outcomes.insert(ended.item, (ended.status, ended.events)));
    batch.run(tasks, start(model, 4), each).await.unwrap();
    outcomes
}

/// Whether a conversation ended, and for another reason than the budget of the batch.
fn is_over(status: &polylogue::Result<Status>) -> bool {
    matches!(status, Ok(Status::Closed { reason, .. }) if !reason.is_shared())
}

/// Whether the budget of the batch ended it.
fn is_halted(status: &polylogue::Result<Status>) -> bool {
    matches!(status, Ok(Status::Closed { reason, .. }) if reason.is_shared())
}

async fn charged(batch: Batch, tasks: Vec<String>, model: &AnyModel) -> Batch {
    batch.charge(tasks, |task| Ok(LogId::new(task)?), start(model, 4)).await.unwrap()
}

fn memory() -> AnyStore {
    AnyStore::new(Memory::new())
}

/// What was said in a conversation: times differ.
fn said(events: &[Arc<Event>]) -> Vec<String> {
    Report::of_last_run(events)
        .messages
        .iter()
        .map(|message| format!("{}: {}", message.from, message.text()))
        .collect()
}

#[tokio::test]
async fn concurrency_does_not_change_the_results() {
    let mut before: Option<Vec<Vec<String>>> = None;
    for at_once in [0, 1, 3, 50] {
        let echo = Arc::new(Echo::default());
        let model = AnyModel::new(Shared(Arc::clone(&echo)));
        let outcomes = outcomes(&Batch::new(memory()).concurrency(at_once), tasks(20), &model).await;
        assert_eq!(echo.most.load(Ordering::Relaxed), at_once.clamp(1, 20));
        assert!(outcomes.values().all(|(status, _)| matches!(status, Ok(Status::Closed { .. }))));
        let all: Vec<_> = outcomes.values().map(|(_, events)| said(events)).collect();
        assert_eq!(all.len(), 20);
        assert_eq!(before.get_or_insert(all.clone()), &all);
    }
}

#[tokio::test]
async fn one_that_fails_stops_no_other_and_is_the_only_one_to_run_again() {
    let store = memory();
    let failing = Arc::new(Echo { fails: Some("task-003"), ..Echo::default() });
    let first = outcomes(&Batch::new(store.clone()), tasks(6), &AnyModel::new(Shared(failing))).await;
    let failed: Vec<_> =
        first.iter().filter(|(_, (status, _))| status.is_err()).map(|(task, _)| task).collect();
    assert_eq!(failed, ["task-003"]);
    assert!(!first["task-003"].1.is_empty(), "its log is kept");
    let echo = Arc::new(Echo::default());
    let again = outcomes(&Batch::new(store), tasks(6), &AnyModel::new(Shared(Arc::clone(&echo)))).await;
    assert_eq!(echo.calls.load(Ordering::Relaxed), 4, "the turns of the one that failed");
    assert!(again.values().all(|(status, _)| matches!(status, Ok(Status::Closed { .. }))));
}

#[tokio::test]
async fn a_cancelled_batch_continues_without_repeating_a_call() {
    let (store, gate) = (memory(), Arc::new(Semaphore::new(9)));
    let echo = Arc::new(Echo { gate: Some(Arc::clone(&gate)), ..Echo::default() });
    let model = AnyModel::new(Shared(Arc::clone(&echo)));
    let batch = Batch::new(store.clone()).concurrency(4);
    let cancel = batch.cancellation();
    let stop = async {
        while echo.calls.load(Ordering::Relaxed) < 13 {
            tokio::task::yield_now().await;
        }
        cancel.cancel_after_step();
        gate.add_permits(1000);
    };
    let (first, ()) = tokio::join!(outcomes(&batch, tasks(8), &model), stop);
    assert!(first.values().any(|(status, _)| matches!(status, Ok(Status::Cancelled))));
    assert!(first.len() < 8, "the others have not begun");
    let again = outcomes(&Batch::new(store), tasks(8), &model).await;
    assert!(again.values().all(|(status, _)| matches!(status, Ok(Status::Closed { .. }))));
    assert_eq!(echo.calls.load(Ordering::Relaxed), 8 * 4);
}

#[tokio::test]
async fn conversations_at_the_same_time_do_not_overshoot_their_budget_together() {
    let store = memory();
    let run = async |dollars: f64| {
        let echo = Arc::new(Echo::default());
        let budget = Budget::new("batch", Money::dollars(dollars));
        let model = AnyModel::new(Shared(Arc::clone(&echo)));
        let batch = Batch::new(store.clone()).concurrency(20).budget(budget.clone());
        let batch = charged(batch, tasks(20), &model).await;
        let outcomes = outcomes(&batch, tasks(20), &model).await;
        let over = outcomes.values().filter(|(status, _)| is_over(status)).count();
        let halted = outcomes.values().filter(|(status, _)| is_halted(status)).count();
        assert_eq!(over + halted, outcomes.len(), "{outcomes:?}");
        (echo.calls.load(Ordering::Relaxed), over, budget)
    };
    let (calls, over, budget) = run(0.10).await;
    assert_eq!((calls, over < 20), (10, true));
    assert!(budget.is_exhausted());
    assert_eq!(budget.used().cost, Money::dollars(0.10));
    // What was spent before counts: with no more than that, no call is made.
    assert_eq!(run(0.10).await.0, 0);
    let (more, over, budget) = run(10.0).await;
    assert_eq!((calls + more, over), (80, 20));
    assert_eq!(budget.used().cost, Money::dollars(0.80));
}

#[tokio::test]
async fn nothing_is_begun_on_money_that_conversations_took_which_are_not_over() {
    let (store, echo) = (memory(), Arc::new(Echo::default()));
    let budget = || Budget::new("batch", Money::dollars(0.10));
    let model = AnyModel::new(Shared(Arc::clone(&echo)));
    let batch = Batch::new(store.clone()).concurrency(3).budget(budget());
    let over = outcomes(&batch, tasks(20), &model).await;
    assert_eq!(echo.calls.load(Ordering::Relaxed), 10);
    // Finished conversations are skipped from then on, as callers with records do.
    let is_settled = |task: &String| over.get(task).is_some_and(|(status, _)| is_over(status));
    let settled = tasks(20).iter().filter(|task| is_settled(task)).count();
    let left: Vec<String> = tasks(20).into_iter().filter(|task| !is_settled(task)).rev().collect();
    let second = budget();
    second.spend(Money::dollars(settled as f64 * 0.04));
    assert!(!second.is_exhausted(), "the rest is of those that are not over: {settled}");
    let batch = Batch::new(store).concurrency(3).budget(second.clone());
    let batch = charged(batch, left.clone(), &model).await;
    outcomes(&batch, left, &model).await;
    assert_eq!(echo.calls.load(Ordering::Relaxed), 10);
    assert_eq!(second.used().cost, Money::dollars(0.10));
}

#[tokio::test]
async fn a_budget_that_does_not_cover_a_call_stops_the_turn_that_would_make_it() {
    let echo = Arc::new(Echo::default());
    let budget = Budget::new("batch", Money::dollars(0.005));
    let model = AnyModel::new(Shared(Arc::clone(&echo)));
    let outcomes = outcomes(&Batch::new(memory()).budget(budget.clone()), tasks(1), &model).await;
    assert!(is_halted(&outcomes["task-000"].0), "{outcomes:?}");
    assert_eq!((echo.calls.load(Ordering::Relaxed), budget.used()), (0, Default::default()));
    let words =
        "the batch has reached the limit of $0.0050 ($0.00 spent, and the next call could cost up to $0.01)";
    assert_eq!(budget.reached().unwrap().to_string(), words);
}

/// What an earlier run began has the bound that is made for it, and a new conversation that of its start.
#[tokio::test]
async fn conversations_of_an_earlier_run_have_bounds_of_their_own() {
    let store = memory();
    let failing = Arc::new(Echo { fails: Some("task-000"), ..Echo::default() });
    let first = outcomes(&Batch::new(store.clone()), tasks(1), &AnyModel::new(Shared(failing))).await;
    assert!(first["task-000"].0.is_err());
    let batch = Batch::new(store).begun_bounds(|_, _| RunBound { calls: Some(0), ..RunBound::default() });
    let second = outcomes(&batch, tasks(2), &AnyModel::new(Shared(Arc::default()))).await;
    let is_stopped =
        |task: &str| matches!(&second[task].0, Ok(Status::Closed { reason: StopReason::Bound { .. }, .. }));
    assert!(is_stopped("task-000") && !is_stopped("task-001"), "{second:?}");
}

#[tokio::test]
async fn a_pending_question_does_not_block_other_conversations() {
    let script: Script = serde_json::from_str(r#"[{"Ann": "Hi"}]"#).unwrap();
    let model = AnyModel::new(script.model("test"));
    let start = |task: &String| {
        let chat = Chat::builder("pair")
            .participant(Assistant::new("Ann", model.clone())?)
            .participant(Human::new("Eve")?);
        let chat = chat.policy(sequential()).build()?;
        Ok(BatchStart {
            id: LogId::new(task)?,
            meta: Meta::default(),
            chat,
            task: task.clone(),
            bound: RunBound::default(),
        })
    };
    let mut waiting = 0;
    let each =
        |ended: BatchResult<String>| waiting += usize::from(matches!(ended.status, Ok(Status::Waiting(_))));
    Batch::new(memory()).concurrency(1).run(tasks(3), start, each).await.unwrap();
    assert_eq!(waiting, 3);
}

#[tokio::test]
async fn a_conversation_that_cannot_start_reports_its_own_error() {
    let model = AnyModel::new(Shared(Arc::default()));
    let mut ends = Vec::new();
    let each =
        |ended: BatchResult<String>| ends.push((ended.item, ended.status.is_ok(), ended.events.is_empty()));
    let items = ["fine", "not an id"].map(String::from);
    Batch::new(memory()).concurrency(1).run(items, start(&model, 1), each).await.unwrap();
    assert_eq!(ends, [("fine".into(), true, false), ("not an id".into(), false, true)]);
}

// A log of one that another process has is an error of the one; a store that is gone ends all.
#[tokio::test]
async fn a_store_that_cannot_be_written_ends_the_batch() {
    let dir = std::env::temp_dir().join(format!("polylogue-batch-{}", std::process::id()));
    let store = AnyStore::new(Jsonl::open(&dir).unwrap());
    let model = AnyModel::new(Shared(Arc::default()));
    let held = LogId::new("task-001").unwrap();
    let claim = store.create(&held, &Meta::default()).await.unwrap();
    let outcomes = outcomes(&Batch::new(store.clone()), tasks(3), &model).await;
    assert!(matches!(&outcomes["task-001"].0, Err(Error::Store(_))));
    assert_eq!(outcomes.values().filter(|(status, _)| status.is_ok()).count(), 2);
    store.release(claim).await.unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::write(&dir, "no folder any more").unwrap();
    let mut shown = 0;
    let run = Batch::new(store).concurrency(2).run(tasks(50), start(&model, 4), |_| shown += 1).await;
    std::fs::remove_file(&dir).unwrap();
    assert!(matches!(run, Err(Error::Store(_))), "{run:?}");
    assert!(shown <= 2, "{shown}");
}
