//! Limits on running time: of a run, a chat and an agent, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use polylogue::{
    AnyModel, Assistant, Chat, Human, Limits, Log, Name, Status, Step, Transcript, round_robin, sequential,
};
use polylogue_core::{
    Allowance, AllowanceOwner, AnyStore, Body, DeltaRef, DeltaSink, LimitOverrides, LogId, Model, ModelError,
    ModelErrorKind, ModelWrapper, Money, Path, Reply, Request, RunOutcome, StopReason, Timer, Timestamp,
    TurnRequest, Usage,
};
use polylogue_store::Memory;
use tokio::time::{Instant, sleep};

use crate::common::into_reason;

/// A model that says half of its reply, and the rest four seconds later.
#[derive(Clone, Default)]
struct Slow(Arc<AtomicU64>);

impl Slow {
    fn requests(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Model for Slow {
    fn name(&self) -> &str {
        "test:slow"
    }
    async fn complete(&self, _: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let nth = self.0.fetch_add(1, Ordering::SeqCst);
        deltas.push(DeltaRef::Text("half "));
        sleep(Duration::from_secs(4)).await;
        let usage = Usage { input: Some(5), output: Some(5), ..Usage::default() };
        Ok(Reply { usage, ..Reply::new(format!("half of {nth}")) })
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        Some(Money::dollars(usage.output? as f64 / 100.0))
    }
    fn max_output(&self, _: &polylogue_core::Params) -> Option<u64> {
        Some(20)
    }
}

fn speaker(name: &str, model: &Slow) -> Assistant {
    Assistant::new(name, AnyModel::new(model.clone())).unwrap()
}

/// A log of the virtual clock.
fn timed(log: Log, limit_s: Option<u64>) -> Log {
    let began = Instant::now();
    let limits = Limits { time_ms: limit_s.map(|limit| limit * 1000), ..Limits::default() };
    let clock = move || Timestamp(u64::try_from(began.elapsed().as_millis()).unwrap());
    log.clock(clock).timer(Timer::new(sleep)).limits(limits)
}

async fn stored(store: &AnyStore) -> Log {
    let id = LogId::new("x").unwrap();
    match Log::create(store.clone(), id.clone()).await {
        Ok(log) => log,
        Err(_) => Log::open(store.clone(), id).await.unwrap(),
    }
}

fn time(limit_s: u64, used_s: u64) -> StopReason {
    StopReason::Time { limit_ms: limit_s * 1000, used_ms: used_s * 1000 }
}

#[tokio::test(start_paused = true)]
async fn a_call_in_flight_ends_with_the_time_of_the_run_and_a_resumption_counts_the_time_before() {
    let (store, model) = (AnyStore::new(Memory::new()), Slow::default());
    let chat = Chat::builder("pair").participant(speaker("A", &model)).participant(speaker("B", &model));
    let chat = chat.policy(round_robin()).build().unwrap();
    let mut log = timed(stored(&store).await, Some(10));
    let reason = into_reason(chat.run_in(&mut log, "go").await.unwrap().status);
    // The third call is cut after two of its four seconds.
    assert_eq!((&reason, model.requests()), (&time(10, 10), 3));
    assert_eq!(
        (reason.outcome(), reason.to_string().as_str()),
        (RunOutcome::Limit, "the limit of 10 s of running time")
    );
    let events = log.events().await;
    let is_cut = |body: &Body| matches!(body, Body::ReplyInterrupted { text, .. } if **text == *"half ");
    assert!(events.iter().any(|event| is_cut(&event.body)), "what had arrived is kept");
    assert_eq!((log.usage().await.counted_calls(), log.reserved()), (3, Money::default()));
    log.release().await.unwrap();
    // A day later, in another process: the time in between does not count, that before does.
    sleep(Duration::from_secs(86_400)).await;
    let mut log = timed(stored(&store).await, Some(10));
    let none = LimitOverrides::default();
    let limits = |limit_s: u64| Limits { time_ms: Some(limit_s * 1000), ..Limits::default() };
    assert_eq!(chat.ends_again(&log, &limits(10), none).await.unwrap(), Some(time(10, 10)));
    assert_eq!(chat.ends_again(&log, &limits(25), none).await.unwrap(), None);
    let more = LimitOverrides { time_ms: Some(15_000), ..none };
    assert_eq!(log.limits_beyond(more).await.time_ms, Some(25_000));
    log.reopen().await.unwrap();
    log = timed(log, Some(25));
    let reason = into_reason(chat.resume(&mut log).await.unwrap().status);
    // The cut call is sent again: three more fit into 15 seconds.
    assert_eq!((reason, model.requests()), (time(25, 25), 7));
}

#[tokio::test(start_paused = true)]
async fn the_time_in_which_a_person_is_waited_for_does_not_count() {
    let model = Slow::default();
    let chat = Chat::builder("pair").participant(speaker("A", &model)).participant(Human::new("Me").unwrap());
    let chat = chat.policy(round_robin()).build().unwrap();
    let mut log = timed(Log::in_memory(), Some(10));
    let mut status = chat.run_in(&mut log, "go").await.unwrap().status;
    for _ in 0..2 {
        assert!(matches!(status, Status::Waiting(_)), "{status:?}");
        sleep(Duration::from_secs(3600)).await;
        log.answer(&Path::root(), &Name::new("Me").unwrap(), "more").await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    assert_eq!((into_reason(status), model.requests()), (time(10, 10), 3));
}

#[tokio::test(start_paused = true)]
async fn a_chat_and_an_agent_have_time_of_their_own_and_the_outer_chat_continues() {
    let seconds = |limit: u64| Allowance { time_ms: Some(limit * 1000), ..Allowance::default() };
    let model = Slow::default();
    let inner = Chat::builder("inner").participant(speaker("A", &model)).participant(speaker("B", &model));
    let inner = inner.policy(round_robin()).limits(seconds(6)).build().unwrap();
    let outer = Chat::builder("outer").participant(inner).participant(speaker("C", &model));
    let outer = outer.policy(sequential()).build().unwrap();
    let mut log = timed(Log::in_memory(), None);
    outer.run_in(&mut log, "go").await.unwrap();
    let events = log.events().await;
    let ends: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Closed { reason, .. } => Some(format!("{}: {reason}", event.chat)),
            _ => None,
        })
        .collect();
    assert_eq!(ends[0], "/inner.1: the chat `inner` has reached the limit of 6 s of running time");
    assert_eq!((ends.len(), model.requests()), (2, 3));

    let pair = Chat::builder("pair").participant(speaker("A", &model)).participant(speaker("B", &model));
    let pair = pair.policy(round_robin()).build().unwrap();
    let agent = Name::new("B").unwrap();
    let mut log = timed(Log::in_memory(), None).agent_limits([(agent.clone(), seconds(6))]);
    let reason = into_reason(pair.run_in(&mut log, "go").await.unwrap().status);
    // A, B, A, and half of B's second call.
    assert_eq!(
        reason,
        StopReason::Allowance { of: AllowanceOwner::Agent(agent), limit: Box::new(time(6, 6)) }
    );
    assert_eq!(log.time_used_ms().await, 14_000);
}

/// Fails for the first time, after two seconds.
#[derive(Default)]
struct FailsFirst(Slow, AtomicU64);

impl ModelWrapper for FailsFirst {
    type Inner = Slow;
    fn inner(&self) -> &Slow {
        &self.0
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        if self.1.fetch_add(1, Ordering::SeqCst) > 0 {
            return self.0.complete(request, deltas).await;
        }
        sleep(Duration::from_secs(2)).await;
        Err(ModelError::new(ModelErrorKind::Connection, "test:slow", "it broke"))
    }
}

/// The turn of A fails after two seconds and is given up. Then B and A speak for four seconds each.
#[tokio::test(start_paused = true)]
async fn a_turn_that_is_given_up_takes_no_more_time_of_its_agent_and_the_chat_still_does() {
    let [a, b] = ["A", "B"].map(|name| Name::new(name).unwrap());
    let seconds = |limit: u64| Allowance { time_ms: Some(limit * 1000), ..Allowance::default() };
    let main = AllowanceOwner::Chat { name: Name::new("main").unwrap(), path: Path::root() };
    let reached = StopReason::Allowance { of: main, limit: Box::new(time(9, 9)) };
    for (of_agent, of_chat, ends) in [(7, 60, StopReason::Finished), (60, 9, reached)] {
        let (failing, model) = (AnyModel::new(FailsFirst::default()), Slow::default());
        let (first, second) = (a.clone(), b.clone());
        let policy =
            move |chat: &Transcript| match (chat.turns_begun_by(&first), chat.turns_begun_by(&second)) {
                (0, _) | (1, 1) => Step::Turn(TurnRequest::to_all(first.clone())),
                (1, 0) => Step::Turn(TurnRequest::to_all(second.clone())),
                _ => Step::close(StopReason::Finished, chat),
            };
        let chat = Chat::builder("main").participant(Assistant::new("A", failing).unwrap());
        let chat = chat.participant(speaker("B", &model)).policy(policy).limits(seconds(of_chat));
        let chat = chat.build().unwrap();
        let mut log = timed(Log::in_memory(), None).agent_limits([(a.clone(), seconds(of_agent))]);
        chat.run_in(&mut log, "go").await.unwrap_err();
        chat.end_open_turns(&mut log).await.unwrap();
        assert!(log.events().await.iter().any(|event| matches!(event.body, Body::RolledBack { .. })));
        let reason = into_reason(chat.resume(&mut log).await.unwrap().status);
        assert_eq!(reason, ends, "{of_agent} s of the agent, {of_chat} s of the chat");
    }
}
