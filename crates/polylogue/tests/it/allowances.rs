//! Limits of agents and chats within a run: no level spends more than it may, whatever happens at the same time, and
//! whatever the process dies of.

use std::sync::{Arc, Mutex};

use polylogue::{
    AnyModel, Assistant, Chat, Human, Limits, Log, Message, Name, Status, Step, Transcript, parallel,
    sequential,
};
use polylogue_core::{
    Allowance, AllowanceOwner, DeltaSink, Event, LimitOverrides, Model, ModelError, Money, Path, Reply,
    Request, RunOutcome, StopReason, TurnRequest, Usage,
};

use crate::common::cents::cents;
use crate::common::{Random, counts_within, lived, log_of, name, received};

/// The most cents of one call.
const MOST: u64 = 20;

/// A server that charges for every request that it receives, by chat and agent, and knows of no limits.
#[derive(Clone, Default)]
struct Server {
    random: Random,
    charged: Arc<Mutex<Vec<(Path, Name, u64)>>>,
    /// Always charges the most.
    is_greedy: bool,
    /// Breaks some replies, and says nothing of the usage of others.
    is_broken: bool,
}

impl Server {
    fn seeded(seed: u64) -> Self {
        Self {
            random: Random::seeded(seed),
            is_greedy: seed.is_multiple_of(3),
            is_broken: seed.is_multiple_of(2),
            ..Self::default()
        }
    }

    fn requests(&self) -> usize {
        self.charged.lock().unwrap().len()
    }

    /// The cents of all calls for which `is` holds.
    fn cents(&self, is: impl Fn(&Path, &Name) -> bool) -> u64 {
        self.charged.lock().unwrap().iter().filter(|(at, who, _)| is(at, who)).map(|(.., cents)| cents).sum()
    }

    fn charge(&self, request: &Request<'_>) -> u64 {
        let cents = if self.is_greedy { MOST } else { 1 + self.random.roll(MOST) };
        self.charged.lock().unwrap().push((request.origin.chat.clone(), request.origin.who.clone(), cents));
        cents
    }
}

impl Model for Server {
    fn name(&self) -> &str {
        "test:server"
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let cents = received(request, (&self.random, self.is_broken), || self.charge(request)).await?;
        let is_silent = self.is_broken && self.random.roll(6) == 0;
        let usage = Usage { input: Some(5), output: Some(cents), ..Usage::default() };
        let usage = if is_silent { Usage::default() } else { usage };
        Ok(Reply { usage, ..Reply::new("word") })
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        Some(cents(usage.output?))
    }
    fn max_output(&self, _: &polylogue_core::Params) -> Option<u64> {
        Some(MOST)
    }
}

fn spend(most: u64) -> Allowance {
    Allowance { cost: Some(cents(most)), ..Allowance::default() }
}

/// A chat of so many agents, who speak at the same time in each of three steps.
fn crowd(called: &str, agents: usize, server: &Server) -> polylogue_core::ChatBuilder {
    let names: Vec<Name> = (0..agents).map(|number| name(&format!("{called}{number}"))).collect();
    let mut chat = Chat::builder(called);
    for name in &names {
        chat = chat.participant(Assistant::new(name.as_str(), AnyModel::new(server.clone())).unwrap());
    }
    chat.policy(steps(names))
}

fn steps(names: Vec<Name>) -> impl Fn(&Transcript) -> Step + Send + Sync + 'static {
    let turns: Vec<TurnRequest> = names.into_iter().map(TurnRequest::to_all).collect();
    move |chat: &Transcript| match chat.turns() {
        begun if begun < 3 * turns.len() as u64 => Step::Parallel(turns.clone()),
        _ => Step::close(StopReason::Finished, chat),
    }
}

/// The limits of all levels, in cents.
#[derive(Debug, Clone, Copy)]
struct Cents {
    run: u64,
    budget: u64,
    outer: u64,
    inner: u64,
    agent: u64,
    inner_agent: u64,
}

/// 44 agents and a chat of six, all at the same time.
fn team(server: &Server, limits: &Cents) -> Chat {
    let inner = crowd("inner", 6, server).limits(spend(limits.inner)).build().unwrap();
    let mut names: Vec<Name> = (0..44).map(|number| name(&format!("A{number}"))).collect();
    let mut chat = Chat::builder("outer").limits(spend(limits.outer)).max_turns(200);
    for name in &names {
        chat = chat.participant(Assistant::new(name.as_str(), AnyModel::new(server.clone())).unwrap());
    }
    names.push(name("inner"));
    chat.participant(inner).policy(steps(names)).build().unwrap()
}

/// Runs the team in processes that die. Returns the events.
async fn lived_under(server: &Server, limits: &Cents) -> Vec<Arc<Event>> {
    let agents = [("A0", limits.agent), ("A1", limits.agent), ("inner", limits.inner_agent)];
    let agents = agents.map(|(who, most)| (name(who), spend(most)));
    let run = Limits { cost: Some(cents(limits.run)), ..Limits::default() };
    let opened = |log: Log| log.limits(run).agent_limits(agents.clone());
    lived(&team(server, limits), cents(limits.budget), || server.requests(), &server.random, opened).await
}

fn check(server: &Server, limits: &Cents, seed: u64) {
    let is_inner = |at: &Path, nth: u64| at.as_str() == format!("/inner.{nth}");
    let levels = [
        ("run", server.cents(|_, _| true), limits.run),
        ("budget", server.cents(|_, _| true), limits.budget),
        ("outer", server.cents(|_, _| true), limits.outer),
        ("inner 1", server.cents(|at, _| is_inner(at, 1)), limits.inner),
        ("inner 2", server.cents(|at, _| is_inner(at, 2)), limits.inner),
        ("inner 3", server.cents(|at, _| is_inner(at, 3)), limits.inner),
        ("inner", server.cents(|at, _| !at.is_root()), limits.inner_agent),
        ("A0", server.cents(|_, who| who.as_str() == "A0"), limits.agent),
        ("A1", server.cents(|_, who| who.as_str() == "A1"), limits.agent),
    ];
    for (level, spent, limit) in levels {
        assert!(spent <= limit, "seed {seed}: {level} spent {spent} of {limit} cents; {limits:?}");
    }
}

#[tokio::test]
async fn no_level_spends_more_than_it_may() {
    let mut reached = std::collections::BTreeSet::new();
    for seed in 1..=200 {
        let server = Server::seeded(seed);
        // One level or another is the tightest.
        let some = |least: u64, most: u64| least + server.random.roll(most - least);
        let limits = Cents {
            run: some(100, 4000),
            budget: some(100, 4000),
            outer: some(100, 4000),
            inner: some(10, 300),
            agent: some(10, 2000),
            inner_agent: some(20, 2000),
        };
        let events = lived_under(&server, &limits).await;
        check(&server, &limits, seed);
        counts_within(&events, cents(limits.run), cents(limits.budget)).await;
        reached.extend(events.iter().filter_map(|event| match &event.body {
            polylogue_core::Body::Closed { reason: StopReason::Allowance { of, .. }, .. } => {
                Some(of.to_string())
            }
            polylogue_core::Body::Closed { reason, .. } => Some(reason.code().to_owned()),
            _ => None,
        }));
    }
    let expected =
        ["the batch", "cost", "the agent `A0`", "the agent `inner`", "the chat `inner`", "the chat `outer`"];
    for level in expected {
        assert!(reached.contains(level), "no seed reached {level}: {reached:?}");
    }
}

#[tokio::test]
async fn the_chat_ends_at_the_limit_of_an_agent_and_says_whose() {
    let server = Server { is_greedy: true, ..Server::default() };
    let chat = || crowd("A", 2, &server).build().unwrap();
    let mut log = Log::in_memory().agent_limits([(name("A1"), spend(45))]);
    let status = chat().run_in(&mut log, "go").await.unwrap().status;
    let Status::Closed { reason, .. } = status else { panic!("{status:?}") };
    let limit = StopReason::Cost { limit: cents(45), spent: cents(40), next: Some(cents(20)), cut: None };
    let of = AllowanceOwner::Agent(name("A1"));
    assert_eq!(reason, StopReason::Allowance { of, limit: Box::new(limit) });
    assert_eq!(
        reason.to_string(),
        "the agent `A1` has reached the limit of $0.45 ($0.40 spent, and the next call could cost up to $0.20)"
    );
    assert_eq!(reason.outcome(), RunOutcome::Budget);
    // A0 has spoken three times, and A1 twice.
    assert_eq!(server.requests(), 5);
    // Under the same limit, it would end again; under a higher one, the turn continues.
    assert!(chat().ends_again(&log, &Limits::default(), Default::default()).await.unwrap().is_some());
    log.reopen().await.unwrap();
    let mut log = log.agent_limits([(name("A1"), spend(60))]);
    let status = chat().resume(&mut log).await.unwrap().status;
    assert!(matches!(status, Status::Closed { reason: StopReason::Finished, .. }), "{status:?}");
    assert_eq!(server.requests(), 6);
}

#[tokio::test]
async fn a_nested_chat_ends_at_its_own_limit_and_the_outer_one_continues() {
    let server = Server { is_greedy: true, ..Server::default() };
    let calls = Allowance { calls: Some(4), ..Allowance::default() };
    let inner = crowd("inner", 3, &server).limits(calls).build().unwrap();
    let last = Assistant::new("last", AnyModel::new(server.clone())).unwrap();
    let chat =
        Chat::builder("outer").participant(inner).participant(last).policy(sequential()).build().unwrap();
    let mut log = Log::in_memory();
    chat.run_in(&mut log, "go").await.unwrap();
    let events = log.events().await;
    let ends: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.body {
            polylogue_core::Body::Closed { reason, .. } => Some(format!("{}: {reason}", event.chat)),
            _ => None,
        })
        .collect();
    assert_eq!(ends[0], "/inner.1: the chat `inner` has reached the limit of 4 model calls");
    assert_eq!((ends.len(), server.cents(|at, _| at.is_root())), (2, MOST));
}

#[tokio::test]
async fn a_chat_that_ends_at_its_limit_leaves_no_question() {
    let server = Server { is_greedy: true, ..Server::default() };
    let writer = |who: &str| Assistant::new(who, AnyModel::new(server.clone())).unwrap();
    // Kim is asked, and the call of the second writer does not fit.
    let desk = Chat::builder("desk")
        .participant(Human::new("Kim").unwrap())
        .participant(writer("one"))
        .participant(writer("two"))
        .limits(Allowance { calls: Some(1), ..Allowance::default() })
        .policy(parallel())
        .build()
        .unwrap();
    let boss = Human::new("Boss").unwrap();
    let chat =
        Chat::builder("outer").participant(desk).participant(boss).policy(sequential()).build().unwrap();
    let mut log = Log::in_memory();
    let run = chat.run_in(&mut log, "go").await.unwrap();
    let asked = |log: &[Arc<Event>]| {
        log.iter().filter(|event| matches!(event.body, polylogue_core::Body::InputRequired(_))).count()
    };
    assert_eq!(asked(run.events()), 2);
    let [(at, question)] = run.questions() else { panic!("{:?}", run.questions()) };
    assert_eq!((at.as_str(), question.who.as_str()), ("", "Boss"));
    let (at, who) = (at.clone(), question.who.clone());
    log.answer(&at, &who, "approved").await.unwrap();
    let status = chat.resume(&mut log).await.unwrap().status;
    assert!(matches!(&status, Status::Closed { summary, .. } if **summary == *"approved"), "{status:?}");
}

#[tokio::test]
async fn a_resumption_allows_more_than_the_limit_that_was_reached() {
    let server = Server { is_greedy: true, ..Server::default() };
    let chat = crowd("A", 2, &server).limits(spend(45)).build().unwrap();
    let mut log = Log::in_memory();
    chat.run_in(&mut log, "go").await.unwrap();
    assert_eq!(server.requests(), 2);
    let more = |cost| LimitOverrides { cost: Some(cents(cost)), ..LimitOverrides::default() };
    let limits = Limits::default();
    let ends = |allowed| chat.ends_again(&log, &limits, more(allowed));
    // 40 cents are spent, so 4 more are less than the chat has anyway.
    assert!(ends(4).await.unwrap().is_some());
    assert!(ends(50).await.unwrap().is_none());
    log.reopen_for(more(50)).await.unwrap();
    // Another process finds in the log what is allowed: 90 cents in all.
    let mut log = log_of(&log.events().await).await;
    chat.resume(&mut log).await.unwrap();
    assert_eq!(server.requests(), 4);
    let reason = log.transcript().await.unwrap().closed().unwrap().0.to_string();
    assert!(reason.starts_with("the chat `A` has reached the limit of $0.90 ($0.80 spent"), "{reason}");
}

#[tokio::test]
async fn after_a_message_the_limits_of_the_outermost_chat_count_from_0() {
    let server = Server { is_greedy: true, ..Server::default() };
    let calls = Allowance { calls: Some(2), ..Allowance::default() };
    for (limits, made) in [(calls, 2), (spend(45), 2)] {
        let before = server.requests();
        let chat = crowd("A", 1, &server).limits(limits).build().unwrap();
        let mut log = Log::in_memory();
        chat.run_in(&mut log, "go").await.unwrap();
        for messages in 1..4 {
            assert_eq!(server.requests() - before, messages * made);
            let reason = log.transcript().await.unwrap().closed().unwrap().0.to_string();
            assert!(reason.starts_with("the chat `A` has reached the "), "{reason}");
            let message = Message::new(Name::user(), "more");
            let none = Limits::default();
            assert_eq!(chat.ends_again_after_message(&log, &none, &message).await.unwrap(), None, "{reason}");
            log.continue_with(message).await.unwrap();
            // Another process counts in the same way.
            log = log_of(&log.events().await).await;
            chat.resume(&mut log).await.unwrap();
        }
        assert_eq!(server.requests() - before, 4 * made);
    }
    // What no call fits into is not tried again.
    let chat = crowd("A", 1, &server).limits(spend(MOST - 1)).build().unwrap();
    let mut log = Log::in_memory();
    chat.run_in(&mut log, "go").await.unwrap();
    let message = Message::new(Name::user(), "more");
    assert!(chat.ends_again_after_message(&log, &Limits::default(), &message).await.unwrap().is_some());
}
