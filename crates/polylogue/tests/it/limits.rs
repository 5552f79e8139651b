//! Limits hold whatever happens at the same time, and whatever the process dies of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue::runs::batch::{Batch, BatchStart};
use polylogue::{
    Act, Agent, AnyModel, Assistant, Chat, Limits, Name, Status, Step, Tool, Transcript, Turn, parallel,
    sequential,
};
use polylogue_core::{
    Allowance, AnyStore, AnyTool, Body, Bound, Budget, ChargeReason, Event, FailedAttempt, LimitOverrides,
    LogId, Meta, ModelCall, Money, RunBound, RunOutcome, StopReason, ToolCx, ToolError, ToolResult, ToolSpec,
    TurnRequest,
};
use polylogue_store::Memory;

use crate::common::cents::{Cents, dollars};
use crate::common::seeker::{Seeker, search};
use crate::common::{log_of, reason, run_or_resume, until_dead};

fn unbounded() -> Cents {
    Cents { unbounded: true, ..Cents::default() }
}

/// Twenty who speak at the same time, and then it is over.
fn crowd(model: &Cents) -> Chat {
    let names: Vec<Name> = (0..20).map(|number| Name::new(format!("A{number}")).unwrap()).collect();
    let turns: Vec<TurnRequest> = names.iter().cloned().map(TurnRequest::to_all).collect();
    let policy = move |chat: &Transcript| match chat.turns() {
        0 => Step::Parallel(turns.clone()),
        _ => Step::close(StopReason::Finished, chat),
    };
    let mut chat = Chat::builder("crowd");
    for name in &names {
        chat = chat.participant(Assistant::new(name.as_str(), AnyModel::new(model.clone())).unwrap());
    }
    chat.policy(policy).build().unwrap()
}

fn one(model: &Cents) -> Chat {
    let agent = Assistant::new("A", AnyModel::new(model.clone())).unwrap();
    Chat::builder("one").participant(agent).policy(sequential()).build().unwrap()
}

/// Runs `chat` until its model was called `calls` times in all, and dies. Returns the log, and how it ended if it did.
async fn killed(
    chat: &Chat,
    model: &Cents,
    calls: u64,
    events: &[Arc<Event>],
    limits: Limits,
) -> (Vec<Arc<Event>>, Option<Status>) {
    let mut log = log_of(events).await.limits(limits);
    let watch = log.subscribe().await;
    let run = until_dead(run_or_resume(chat, &mut log, "go"), || model.made() >= calls).await;
    drop(watch);
    (log.events().await, run.map(|run| run.unwrap().status))
}

#[tokio::test]
async fn twenty_at_the_same_time_make_no_more_calls_than_are_allowed() {
    let model = unbounded();
    let mut log = log_of(&[]).await.limits(Limits { calls: Some(1), ..Limits::default() });
    let status = crowd(&model).run_in(&mut log, "go").await.unwrap().status;
    assert_eq!((reason(&status), model.made()), (&StopReason::Calls { limit: 1 }, 1));
    // Under a higher limit, refused conversations continue, and nothing was counted for them.
    log.reopen().await.unwrap();
    let mut log = log.limits(Limits { calls: Some(20), ..Limits::default() });
    let status = crowd(&model).resume(&mut log).await.unwrap().status;
    assert_eq!((reason(&status), model.made()), (&StopReason::Finished, 20));
    assert!(log.usage().await.uncertain.is_nothing());
}

#[tokio::test]
async fn twenty_at_the_same_time_spend_no_more_than_is_allowed() {
    let model = Cents::default();
    let mut log = log_of(&[]).await.limits(dollars(0.50));
    let status = crowd(&model).run_in(&mut log, "go").await.unwrap().status;
    let (limit, spent, next) = (Money::dollars(0.50), Money::dollars(0.40), Some(Money::dollars(0.20)));
    // Each took half of what it could have taken: the fifth could have passed the limit.
    assert_eq!((reason(&status), model.made()), (&StopReason::Cost { limit, spent, next, cut: None }, 4));
}

#[tokio::test]
async fn where_the_longest_reply_is_unknown_calls_are_made_one_after_the_other() {
    let model = unbounded();
    let mut log = log_of(&[]).await.limits(dollars(0.50));
    let status = crowd(&model).run_in(&mut log, "go").await.unwrap().status;
    let (limit, spent) = (Money::dollars(0.50), Money::dollars(0.50));
    assert_eq!(
        (reason(&status), model.made()),
        (&StopReason::Cost { limit, spent, next: None, cut: None }, 5)
    );
}

#[tokio::test]
async fn a_reply_that_does_not_say_what_it_took_counts_at_its_reservation() {
    let model = Cents { silent: true, ..Cents::default() };
    let mut log = log_of(&[]).await.limits(dollars(0.50));
    let status = crowd(&model).run_in(&mut log, "go").await.unwrap().status;
    let (limit, spent, next) = (Money::dollars(0.50), Money::dollars(0.40), Some(Money::dollars(0.20)));
    assert_eq!((reason(&status), model.made()), (&StopReason::Cost { limit, spent, next, cut: None }, 2));
}

#[tokio::test]
async fn calls_in_flight_at_a_death_count_once_for_each_death() {
    let model = Cents { hangs: true, ..Cents::default() };
    let (chat, mut events) = (one(&model), Vec::new());
    for death in 1..=12 {
        let status;
        (events, status) = killed(&chat, &model, death, &events, dollars(0.50)).await;
        if let Some(status) = status {
            let (limit, spent, next) =
                (Money::dollars(0.50), Money::dollars(0.40), Some(Money::dollars(0.20)));
            assert_eq!((reason(&status), death), (&StopReason::Cost { limit, spent, next, cut: None }, 3));
            assert_eq!(model.made(), 2);
            return;
        }
    }
    panic!("12 deaths, {} calls", model.made());
}

#[tokio::test]
async fn calls_of_a_crowd_in_flight_at_a_death_count_each() {
    let model = Cents { hangs: true, ..Cents::default() };
    let calls = |calls| Limits { calls: Some(calls), ..Limits::default() };
    let (events, status) = killed(&crowd(&model), &model, 20, &[], calls(30)).await;
    assert_eq!((status, model.made()), (None, 20));
    let quick = Cents::default();
    let mut log = log_of(&events).await.limits(calls(30));
    let status = crowd(&quick).resume(&mut log).await.unwrap().status;
    assert_eq!((reason(&status), quick.made()), (&StopReason::Calls { limit: 30 }, 10));
    assert_eq!(log.usage().await.uncertain.calls, 20);
}

#[tokio::test]
async fn calls_not_in_flight_are_not_charged_when_a_run_continues() {
    let model = Cents::default();
    let mut log = log_of(&[]).await;
    let whole = one(&model).run_in(&mut log, "go").await.unwrap().status;
    assert_eq!(reason(&whole).code(), "replied");
    let events = log.events().await;
    // The reply is in the log, and the turn is not over.
    let sampled = events.iter().position(|event| matches!(event.body, Body::ModelReplied(_))).unwrap();
    let mut log = log_of(&events[..=sampled]).await;
    one(&model).resume(&mut log).await.unwrap();
    assert!(log.usage().await.uncertain.is_nothing());
    assert_eq!(model.made(), 1);
}

#[tokio::test]
async fn a_turn_that_failed_is_charged_for_its_attempts_and_not_once_more() {
    let fails = Cents { fails: 1, ..Cents::default() };
    let mut log = log_of(&[]).await.limits(Limits { calls: Some(2), ..Limits::default() });
    let status = one(&fails).run_in(&mut log, "go").await.unwrap().status;
    assert_eq!((reason(&status).code(), fails.made()), ("replied", 2));
    let charges: Vec<_> = log.events().await.iter().filter_map(|event| charge(event)).collect();
    assert_eq!(charges, [(ChargeReason::Failed, 1)]);
    let events = log.events().await;
    let log = log_of(&events[..2]).await;
    let broken = Cents { fails: 3, ..Cents::default() };
    let mut few = log.limits(Limits { calls: Some(3), ..Limits::default() });
    let status = one(&broken).resume(&mut few).await.unwrap().status;
    // The call that may have been in flight, and two attempts.
    assert_eq!((reason(&status), broken.made()), (&StopReason::Calls { limit: 3 }, 2));
    assert_eq!(few.usage().await.uncertain.calls, 3);
}

fn charge(event: &Event) -> Option<(ChargeReason, u64)> {
    match &event.body {
        Body::Charged(charge) => Some((charge.why, charge.calls)),
        _ => None,
    }
}

#[tokio::test]
async fn a_call_that_is_broken_off_counts_and_its_repetition_counts_again() {
    let model = Cents { hangs: true, ..Cents::default() };
    let mut log = log_of(&[]).await;
    let (cancel, chat) = (log.cancellation(), one(&model));
    let stop = async {
        while model.made() < 1 {
            tokio::task::yield_now().await;
        }
        cancel.cancel_now();
    };
    let (status, ()) = tokio::join!(chat.run_in(&mut log, "go"), stop);
    assert_eq!(status.unwrap().status, Status::Cancelled);
    let spent = log.usage().await.uncertain;
    assert_eq!((spent.calls, spent.cost), (1, Money::dollars(0.20)));
    // Nothing is in flight when it is resumed in another process; then there is again.
    let (events, _) = killed(&chat, &model, 2, &log.events().await, Limits::default()).await;
    let charges: Vec<_> = events.iter().filter_map(|event| charge(event)).collect();
    assert_eq!(charges, [(ChargeReason::Cancelled, 1), (ChargeReason::Repeated, 0)]);
    let quick = Cents::default();
    let mut log = log_of(&events).await;
    one(&quick).resume(&mut log).await.unwrap();
    assert_eq!(log.usage().await.uncertain.calls, 2);
}

/// Asks its model twice, and says that all is well.
struct Careless(Name, AnyModel);

impl Agent for Careless {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        for _ in 0..2 {
            let _ = turn.ask_model(ModelCall::of(&self.1)).await;
        }
        Ok(Act::say("all is well"))
    }
}

#[tokio::test]
async fn a_run_in_which_a_limit_refused_a_call_does_not_end_as_done() {
    let agent = Careless(Name::new("A").unwrap(), AnyModel::new(Cents::default()));
    let chat = Chat::builder("one").participant(agent).policy(sequential()).build().unwrap();
    let mut log = log_of(&[]).await.limits(Limits { calls: Some(1), ..Limits::default() });
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    let Status::Closed { reason, summary } = status else { panic!("{status:?}") };
    assert_eq!((reason, &*summary), (StopReason::Calls { limit: 1 }, "all is well"));
}

/// A nested chat ends at its own limit, with one of its two turns open: it never ends, and counts no more.
#[tokio::test]
async fn turns_that_never_end_do_not_count_toward_the_limit_on_turns() {
    let agent = |who: &str| Assistant::new(who, AnyModel::new(unbounded())).unwrap();
    let chat = || {
        let limits = Allowance { calls: Some(1), ..Allowance::default() };
        let desk = Chat::builder("desk").participant(agent("A")).participant(agent("B")).limits(limits);
        let desk = desk.policy(parallel()).build().unwrap();
        let outer = Chat::builder("outer").participant(desk);
        let outer = ["D", "E", "F"].into_iter().fold(outer, |outer, who| outer.participant(agent(who)));
        outer.policy(sequential()).build().unwrap()
    };
    let turns = |most| Limits { turns: Some(most), ..Limits::default() };
    let mut log = log_of(&[]).await.limits(turns(4));
    let status = chat().run_in(&mut log, "go").await.unwrap().status;
    assert_eq!((reason(&status).outcome(), log.turns().await), (RunOutcome::Done, 4), "{status:?}");
    // What is allowed beyond a limit is allowed.
    let mut log = log_of(&[]).await.limits(turns(2));
    let status = chat().run_in(&mut log, "go").await.unwrap().status;
    assert_eq!((reason(&status), log.turns().await), (&StopReason::Turns { limit: 2, next: None }, 2));
    let more = LimitOverrides { turns: Some(1), ..LimitOverrides::default() };
    let limits = log.limits_beyond(more).await.apply_to(turns(2));
    assert_eq!(chat().ends_again(&log, &limits, more).await.unwrap(), None);
    log.reopen_for(more).await.unwrap();
    let mut log = log.limits(limits);
    chat().resume(&mut log).await.unwrap();
    assert_eq!(log.turns().await, 3);
}

/// Runs a batch of five rows on `dollars`, `at_once` of them at the same time, until `model` was called `calls` times
/// in all; the process dies then. Returns what of the budget it counts as spent.
async fn five_rows(store: &AnyStore, model: &Cents, (dollars, at_once): (f64, usize), calls: u64) -> Money {
    let budget = Budget::new("batch", Money::dollars(dollars));
    let rows = || (0..5).map(|row| format!("row-{row}"));
    let start = |row: &String| {
        Ok(BatchStart {
            id: LogId::new(row)?,
            meta: Meta::default(),
            chat: one(model),
            task: row.clone(),
            bound: RunBound::default(),
        })
    };
    let batch = Batch::new(store.clone()).concurrency(at_once).budget(budget.clone());
    let run = async {
        let batch = batch.charge(rows(), |row| Ok(LogId::new(row)?), start).await.unwrap();
        batch.run(rows(), start, |_| ()).await.unwrap();
    };
    until_dead(run, || model.made() >= calls).await;
    budget.used().cost
}

#[tokio::test]
async fn calls_of_all_rows_in_flight_at_a_death_count_before_a_batch_makes_another() {
    let store = AnyStore::new(Memory::default());
    let hangs = Cents { hangs: true, ..Cents::default() };
    five_rows(&store, &hangs, (1.00, 5), 5).await;
    assert_eq!(hangs.made(), 5, "a dollar is reserved");
    for at_once in [1, 5] {
        let quick = Cents::default();
        let spent = five_rows(&store, &quick, (1.00, at_once), 100).await;
        assert_eq!((quick.made(), spent), (0, Money::dollars(1.00)), "{at_once} at once");
    }
    // They count once: nothing was in flight since.
    let quick = Cents::default();
    let spent = five_rows(&store, &quick, (2.00, 1), 100).await;
    assert_eq!((quick.made(), spent), (5, Money::dollars(1.50)));
}

fn tokens(limit: u64) -> Limits {
    Limits { tokens: Some(limit), ..Limits::default() }
}

/// The most tokens that the call of [`one`] can take.
async fn bound_of_one() -> u64 {
    let mut log = log_of(&[]).await.limits(tokens(1));
    let status = one(&Cents::default()).run_in(&mut log, "go").await.unwrap().status;
    let StopReason::Tokens { limit: 1, used: 0, next: Some(next), cut: None } = reason(&status) else {
        panic!("{status:?}")
    };
    *next
}

#[tokio::test]
async fn a_call_that_could_pass_the_limit_on_tokens_is_not_sent() {
    let bound = bound_of_one().await;
    // Twenty for the reply, and every byte of what is read.
    assert!((22..200).contains(&bound), "{bound}");
    for (limit, calls) in [(bound - 1, 0), (bound, 1)] {
        let model = Cents::default();
        let mut log = log_of(&[]).await.limits(tokens(limit));
        let status = one(&model).run_in(&mut log, "go").await.unwrap().status;
        assert_eq!(model.made(), calls, "{status:?}");
        match reason(&status) {
            StopReason::Other(replied) => assert_eq!((&*replied.code, calls), ("replied", 1)),
            met => assert_eq!(met, &StopReason::Tokens { limit, used: 0, next: Some(bound), cut: None }),
        }
    }
}

#[tokio::test]
async fn twenty_at_the_same_time_take_no_more_tokens_than_are_allowed() {
    for model in [Cents::default(), unbounded()] {
        let mut log = log_of(&[]).await.limits(tokens(330));
        let status = crowd(&model).run_in(&mut log, "go").await.unwrap().status;
        assert!(matches!(reason(&status), StopReason::Tokens { limit: 330, .. }), "{status:?}");
        // A call takes 15, and two can be in flight.
        assert!((2..20).contains(&model.made()), "{}", model.made());
        assert!(log.usage().await.counted_tokens() <= 330);
    }
}

#[tokio::test]
async fn tokens_of_calls_in_flight_at_a_death_count() {
    let (bound, model) = (bound_of_one().await, Cents { hangs: true, ..Cents::default() });
    let (events, status) = killed(&one(&model), &model, 1, &[], tokens(bound + 20)).await;
    assert_eq!((status, model.made()), (None, 1));
    let quick = Cents::default();
    let mut log = log_of(&events).await.limits(tokens(bound + 20));
    let status = one(&quick).resume(&mut log).await.unwrap().status;
    let (limit, used, next) = (bound + 20, bound, Some(bound));
    assert_eq!((reason(&status), quick.made()), (&StopReason::Tokens { limit, used, next, cut: None }, 0));
}

fn seeking(calls: usize) -> (Chat, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let chat = Chat::builder("one").participant(Seeker::new("A", search(&asked), calls)).policy(sequential());
    (chat.build().unwrap(), asked)
}

#[tokio::test]
async fn what_tools_ask_of_models_at_the_same_time_is_reserved() {
    let (chat, asked) = seeking(5);
    let mut log = log_of(&[]).await.limits(dollars(0.025));
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    let (limit, spent, next) = (Money::dollars(0.025), Money::dollars(0.02), Some(Money::dollars(0.01)));
    assert_eq!(
        (reason(&status), asked.load(Ordering::SeqCst)),
        (&StopReason::Cost { limit, spent, next, cut: None }, 2)
    );
    // A budget that runs share counts it, too, and it is not a model call of the run.
    let (chat, asked) = seeking(5);
    let budget = Budget::new("batch", Money::dollars(0.025));
    let limits = Limits { calls: Some(1), ..Limits::default() };
    let mut log = log_of(&[]).await.limits(limits).budget(budget.clone());
    chat.run_in(&mut log, "go").await.unwrap();
    assert_eq!((asked.load(Ordering::SeqCst), budget.used().cost), (2, Money::dollars(0.02)));
    // Of several budgets, the lowest holds, all are charged, and nothing stays reserved.
    for (process, token, most) in [(0.035, 0.025, 2), (0.035, 1.0, 3), (0.015, 0.025, 1)] {
        let (chat, asked) = seeking(5);
        let budgets = [("process", process), ("token", token)]
            .map(|(name, most)| Budget::new(name, Money::dollars(most)));
        let [one, other] = budgets.clone();
        let mut log = log_of(&[]).await.budget(one).budget(other);
        chat.run_in(&mut log, "go").await.unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), most, "{process} {token}");
        for budget in budgets {
            assert_eq!(
                (budget.used().cost, budget.reserved()),
                (Money::dollars(most as f64 / 100.0), Money::default())
            );
        }
    }
}

/// A tool that sends several requests, which it reserves at three cents, and of which one fails after the others.
struct Partly(ToolSpec, Vec<Option<Money>>, FailedAttempt);

impl Tool for Partly {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    async fn call(&self, _: serde_json::Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let Self(_, paid, failed) = self;
        let bound = Bound::of_texts(&["a text".to_owned()], |_| Some(Money::dollars(0.03)));
        let reserved = cx.meter.reserve("test:vectors", bound).await.map_err(|error| error.to_string())?;
        if let Some(reserved) = reserved {
            paid.iter().for_each(|cost| reserved.paid(Some(5), *cost));
            reserved.fail(*failed);
        }
        Ok(ToolResult::done("nothing"))
    }
}

#[tokio::test]
async fn what_a_tool_paid_before_a_request_failed_counts() {
    let cents = |count: u64| Money::dollars(count as f64 / 100.0);
    let (refused, broken) = (FailedAttempt::Refused, FailedAttempt::Broken);
    for (paid, failed, expected) in [
        (vec![], refused, 0),
        (vec![Some(cents(1))], refused, 1),
        (vec![Some(cents(1)), Some(cents(1))], FailedAttempt::Unsent, 2),
        // What it cost is unknown.
        (vec![Some(cents(1)), None], refused, 3),
        (vec![Some(cents(1))], broken, 3),
    ] {
        let spec = ToolSpec::new("search", "Searches.", serde_json::json!({"type": "object"}));
        let agent = Seeker::new("A", AnyTool::new(Partly(spec, paid.clone(), failed)), 1);
        let chat = Chat::builder("one").participant(agent).policy(sequential()).build().unwrap();
        let budget = Budget::new("batch", cents(9));
        let mut log = log_of(&[]).await.budget(budget.clone());
        chat.run_in(&mut log, "go").await.unwrap();
        let used = (log.usage().await.counted_cost(), budget.used().cost, budget.reserved());
        assert_eq!(used, (cents(expected), cents(expected), Money::default()), "{paid:?} {failed:?}");
    }
}

#[tokio::test]
async fn what_a_tool_asked_when_the_process_died_counts() {
    let (chat, _) = seeking(1);
    let mut log = log_of(&[]).await;
    chat.run_in(&mut log, "go").await.unwrap();
    let events = log.events().await;
    // Until a tool has reserved what it asks for, it has sent nothing.
    let reserved =
        events.iter().position(|event| charge(event) == Some((ChargeReason::Reserved, 0))).unwrap();
    let (chat, asked) = seeking(1);
    let mut log = log_of(&events[..=reserved]).await.limits(dollars(0.015));
    let status = chat.resume(&mut log).await.unwrap().status;
    let (limit, spent, next) = (Money::dollars(0.015), Money::dollars(0.01), Some(Money::dollars(0.01)));
    assert_eq!(
        (reason(&status), asked.load(Ordering::SeqCst)),
        (&StopReason::Cost { limit, spent, next, cut: None }, 0)
    );
}
