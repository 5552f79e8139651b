//! What a person allows at a limit is added to the limit, however much of it is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{log, name};
use polylogue::{AnyModel, Assistant, Chat, Limits, Log, Status, round_robin, sequential};
use polylogue_core::{
    Allowance, DeltaSink, LimitOverrides, LimitRaise, Model, ModelError, Money, OnLimit, Params, Reply,
    Request, StopReason, Timestamp, Usage,
};

/// Each call takes 15 tokens, 10 of at most 20 cents, and two seconds, by the clock that it moves on.
struct Metered(Arc<AtomicU64>);

impl Model for Metered {
    fn name(&self) -> &str {
        "test:metered"
    }
    async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let began = self.0.fetch_add(2_000, Ordering::SeqCst);
        let usage = Usage { input: Some(5), output: Some(10), ..Usage::default() };
        Ok(Reply { usage, ..Reply::new(format!("words {began}")) })
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        Some(Money::dollars(usage.output? as f64 / 100.0))
    }
    fn max_output(&self, _: &Params) -> Option<u64> {
        Some(20)
    }
}

/// Whose limit it is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Of {
    Run,
    Agent,
    Chat,
}

/// A desk of two who talk for long in the turn of an outer chat, and a log under `limit`.
async fn limited(of: Of, limit: Allowance) -> (Chat, Log) {
    let time = Arc::new(AtomicU64::new(0));
    let model = AnyModel::new(Metered(Arc::clone(&time)));
    let speaker = |who: &str| Assistant::new(who, model.clone()).unwrap();
    let desk = Chat::builder("desk").participant(speaker("A")).participant(speaker("B"));
    let desk = desk.policy(round_robin()).max_turns(400);
    let desk = if of == Of::Chat { desk.limits(limit) } else { desk };
    let team = Chat::builder("team").participant(desk.build().unwrap()).policy(sequential());
    let asks = Limits { on_limit: OnLimit::Ask, ..Limits::default() };
    let Allowance { calls, tokens, cost, time_ms } = limit;
    let limits = if of == Of::Run { Limits { calls, tokens, cost, time_ms, ..asks } } else { asks };
    let log = log().await.clock(move || Timestamp(time.load(Ordering::SeqCst))).limits(limits);
    let log = if of == Of::Agent { log.agent_limits([(name("A"), limit)]) } else { log };
    (team.build().unwrap(), log)
}

fn asked(status: Status) -> LimitRaise {
    let Status::Waiting(mut questions) = status else { panic!("{status:?}") };
    assert_eq!(questions.len(), 1);
    *questions.remove(0).1.limit.unwrap()
}

/// The limit that was reached, a total.
fn total_of(reached: &StopReason) -> LimitOverrides {
    let none = LimitOverrides::default();
    match *reached {
        StopReason::Calls { limit } => LimitOverrides { calls: Some(limit), ..none },
        StopReason::Tokens { limit, .. } => LimitOverrides { tokens: Some(limit), ..none },
        StopReason::Cost { limit, .. } => LimitOverrides { cost: Some(limit), ..none },
        StopReason::Time { limit_ms, .. } => LimitOverrides { time_ms: Some(limit_ms), ..none },
        StopReason::Allowance { ref limit, .. } => total_of(limit),
        _ => panic!("{reached}"),
    }
}

fn sum(limit: Allowance, more: Allowance) -> Allowance {
    let add = |limit: Option<u64>, more: Option<u64>| limit.zip(more).map(|(limit, more)| limit + more);
    Allowance {
        calls: add(limit.calls, more.calls),
        tokens: add(limit.tokens, more.tokens),
        cost: limit.cost.zip(more.cost).map(|(limit, more)| limit + more),
        time_ms: add(limit.time_ms, more.time_ms),
    }
}

/// At the limit on money and on tokens, some of it is left; that on time is exceeded by a call.
#[tokio::test]
async fn yes_and_an_amount_raise_every_limit_by_exactly_that() {
    let none = Allowance::default();
    let calls = |calls| Allowance { calls: Some(calls), ..none };
    let tokens = |tokens| Allowance { tokens: Some(tokens), ..none };
    let cost = |dollars| Allowance { cost: Some(Money::dollars(dollars)), ..none };
    let time = |time_ms| Allowance { time_ms: Some(time_ms), ..none };
    for (limit, text, amount) in [
        (calls(2), "3", calls(3)),
        (tokens(1_000), "300", tokens(300)),
        (cost(0.25), "$0.15", cost(0.15)),
        (time(3_000), "7 s", time(7_000)),
    ] {
        for of in [Of::Run, Of::Agent, Of::Chat] {
            for (answer, more) in [("yes", limit), (text, amount)] {
                let case = format!("{of:?}, {limit:?}: {answer}");
                let (chat, mut log) = limited(of, limit).await;
                let first = asked(chat.run_in(&mut log, "go").await.unwrap().status);
                assert_eq!(first.more, LimitOverrides::from(limit), "{case}: the question");
                let (at, question) = log.questions().await.unwrap().remove(0);
                log.answer(&at, &question.who, answer).await.unwrap();
                let next = asked(chat.resume(&mut log).await.unwrap().status);
                assert_eq!(total_of(&next.reached), LimitOverrides::from(sum(limit, more)), "{case}");
                // The next question asks for as much as the last one was answered with.
                assert_eq!(next.more, LimitOverrides::from(more), "{case}: the next question");
            }
        }
    }
}
