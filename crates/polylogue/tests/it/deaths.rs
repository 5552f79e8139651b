//! Several model calls of one turn can be in flight when the process dies: all of them count before the next process
//! sends anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue::{Act, Agent, AnyModel, Assistant, Chat, Name, Status, Turn, parallel, sequential};
use polylogue_core::{AgentCall, Allowance, AllowanceOwner, Body, Event, ModelCall, Money, StopReason};

use crate::common::cents::{Cents, cents, dollars};
use crate::common::seeker::{Seeker, search};
use crate::common::{log_of, run_or_resume, until_dead};

/// Calls agents at the same time.
struct Caller(Name, Vec<Assistant>);

impl Agent for Caller {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        let calls = self.1.iter().map(|agent| AgentCall::of(agent, "go"));
        for reply in turn.ask_all(calls).await {
            reply?;
        }
        Ok(Act::say("all have replied"))
    }
}

/// Asks its own model.
struct Asker(Name, AnyModel);

impl Agent for Asker {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        Ok(Act::Say(turn.ask_model(ModelCall::of(&self.1)).await?.parts))
    }
}

fn chat(agent: impl Agent + 'static) -> Chat {
    Chat::builder("deaths").participant(agent).policy(sequential()).build().unwrap()
}

/// The events of `chat`, which continues after `events` and dies when `model` was called `calls` times.
async fn killed(chat: &Chat, model: &Cents, calls: u64, events: &[Arc<Event>]) -> Vec<Arc<Event>> {
    killed_at(10.0, chat, model, calls, events).await
}

/// The same under a limit on money.
async fn killed_at(
    limit: f64,
    chat: &Chat,
    model: &Cents,
    calls: u64,
    events: &[Arc<Event>],
) -> Vec<Arc<Event>> {
    let mut log = log_of(events).await.limits(dollars(limit));
    let run = run_or_resume(chat, &mut log, "go");
    let ended = until_dead(run, || model.made() >= calls).await;
    assert!(ended.is_none(), "it ended: {ended:?}");
    log.events().await
}

/// Resumes `events` under a limit on money, which it must not exceed, and returns why it ended.
async fn resumed(chat: &Chat, events: &[Arc<Event>], limit: f64) -> Option<StopReason> {
    let mut log = log_of(events).await.limits(dollars(limit));
    let status = chat.resume(&mut log).await.unwrap().status;
    assert!(log.usage().await.counted_cost() <= Money::dollars(limit), "{:?}", log.usage().await);
    match status {
        Status::Closed { reason, .. } => Some(reason),
        _ => None,
    }
}

fn cost(limit: f64, spent: f64, next: f64) -> Option<StopReason> {
    let next = Some(Money::dollars(next));
    Some(StopReason::Cost { limit: Money::dollars(limit), spent: Money::dollars(spent), next, cut: None })
}

#[tokio::test]
async fn calls_of_agents_called_at_the_same_time_count_before_one_is_sent_again() {
    let agents = |model: &Cents| {
        let agent = |name| Assistant::new(name, AnyModel::new(model.clone())).unwrap();
        chat(Caller(Name::new("A").unwrap(), vec![agent("B"), agent("C")]))
    };
    let hanging = Cents { hangs: true, ..Cents::default() };
    let events = killed(&agents(&hanging), &hanging, 2, &[]).await;
    let quick = Cents::default();
    assert_eq!(resumed(&agents(&quick), &events, 0.50).await, cost(0.50, 0.40, 0.20));
    assert_eq!(quick.made(), 0);
}

#[tokio::test]
async fn what_tools_asked_at_the_same_time_counts_before_one_asks_again() {
    let seeker = |asked: &Arc<AtomicU64>| chat(Seeker::new("A", search(asked), 3));
    let mut log = log_of(&[]).await.limits(dollars(1.0));
    seeker(&Arc::default()).run_in(&mut log, "go").await.unwrap();
    let events = log.events().await;
    let is_reserved = |event: &Arc<Event>| matches!(&event.body, Body::Charged(charge) if !charge.counts());
    let sent = events.iter().rposition(is_reserved).unwrap();
    let asked = Arc::default();
    let reason = resumed(&seeker(&asked), &events[..=sent], 0.035).await;
    assert_eq!((reason, asked.load(Ordering::SeqCst)), (cost(0.035, 0.03, 0.01), 0));
    // One has returned: the others count.
    let asked = Arc::default();
    let reason = resumed(&seeker(&asked), &events[..=sent + 1], 0.035).await;
    assert_eq!((reason, asked.load(Ordering::SeqCst)), (cost(0.035, 0.03, 0.01), 0));
}

#[tokio::test]
async fn both_requests_of_a_paused_reply_count() {
    let asker = |model: &Cents| chat(Asker(Name::new("A").unwrap(), AnyModel::new(model.clone())));
    let hanging = Cents { hangs: true, pauses: true, ..Cents::default() };
    let events = killed(&asker(&hanging), &hanging, 2, &[]).await;
    let quick = Cents::default();
    assert_eq!(resumed(&asker(&quick), &events, 0.50).await, cost(0.50, 0.40, 0.20));
    assert_eq!(quick.made(), 0);
    // Once it is charged, only what is sent after that is in flight at the next death.
    let again = Cents { hangs: true, ..Cents::default() };
    let events = killed(&asker(&again), &again, 1, &events).await;
    assert_eq!(resumed(&asker(&quick), &events, 0.65).await, cost(0.65, 0.60, 0.20));
}

/// Three agents that speak at the same time.
fn crowd(model: &Cents) -> Chat {
    let agent = |name| Assistant::new(name, AnyModel::new(model.clone())).unwrap();
    let chat = Chat::builder("crowd").participant(agent("A")).participant(agent("B"));
    chat.participant(agent("C")).policy(parallel()).build().unwrap()
}

/// They fitted into the limit of the process that sent them.
#[tokio::test]
async fn lost_calls_count_whole_where_the_limit_is_lower_now() {
    let hanging = Cents { hangs: true, ..Cents::default() };
    let events = killed_at(0.50, &crowd(&hanging), &hanging, 2, &[]).await;
    let quick = Cents::default();
    let mut log = log_of(&events).await.limits(dollars(0.25)).lost_calls_under(dollars(0.50));
    crowd(&quick).resume(&mut log).await.unwrap();
    assert_eq!((log.usage().await.counted_cost(), quick.made()), (Money::dollars(0.50), 0));
}

/// Which of the calls were sent is not in the log: together they fitted into the limit.
#[tokio::test]
async fn calls_that_did_not_fit_next_to_those_in_flight_count_no_more_than_was_left() {
    let hanging = Cents { hangs: true, ..Cents::default() };
    let events = killed_at(0.50, &crowd(&hanging), &hanging, 2, &[]).await;
    let quick = Cents::default();
    let reason = resumed(&crowd(&quick), &events, 0.50).await;
    assert!(matches!(reason, Some(StopReason::Cost { .. })), "{reason:?}");
    let mut log = log_of(&events).await.limits(dollars(0.50));
    crowd(&quick).resume(&mut log).await.unwrap();
    let events = log.events().await;
    let charged = |event: &Arc<Event>| match &event.body {
        Body::Charged(charge) => Some((charge.cost?, charge.bound.and_then(|bound| bound.cost))),
        _ => None,
    };
    let charges: Vec<_> = events.iter().filter_map(charged).collect();
    assert_eq!(charges, [(cents(20), None), (cents(20), None), (cents(10), Some(cents(20)))]);
    // Under a higher limit, each agent may have had the call for which it was charged less.
    let own = Allowance { cost: Some(cents(30)), ..Allowance::default() };
    let agents = ["A", "B", "C"].map(|who| (Name::new(who).unwrap(), own));
    let mut log = log_of(&events).await.limits(dollars(10.0)).agent_limits(agents);
    log.reopen().await.unwrap();
    let status = crowd(&quick).resume(&mut log).await.unwrap().status;
    let Status::Closed { reason: StopReason::Allowance { of, .. }, .. } = &status else {
        panic!("{status:?}")
    };
    assert!(matches!(of, AllowanceOwner::Agent(_)), "{of}");
    assert_eq!(quick.made(), 0);
}
