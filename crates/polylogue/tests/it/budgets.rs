//! Budgets that the conversations of a batch share: calls, tokens, money and time. No batch takes more than it may, whatever
//! happens at the same time, and whatever its processes die of.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue::runs::batch::{Batch, BatchResult, BatchStart};
use polylogue::{Act, Agent, AnyModel, Assistant, Chat, Name, Status, Step, Tool, Transcript, Turn};
use polylogue_core::{
    Allowance, AnyStore, AnyTool, Body, Budget, CountedUsage, DeltaSink, Log, LogId, Meta, Model, ModelCall,
    ModelError, Money, Reply, Request, RunBound, RunOutcome, StopReason, Store as _, Timestamp, ToolCall,
    ToolCx, ToolError, ToolResult, ToolSpec, TurnRequest, Usage,
};
use polylogue_store::Memory;

use crate::common::cents::cents;
use crate::common::{Random, received, until_dead};

/// The longest reply, in tokens. A token costs a cent, and a request is counted as [`INPUT`] tokens at least.
const MOST: u64 = 20;
const INPUT: u64 = 5;
/// What a call of a tool costs, in cents.
const FEE: u64 = 7;

/// A server that charges the most it may for every request that it receives, and breaks some replies.
#[derive(Clone, Default)]
struct Server {
    random: Random,
    /// Calls, and tokens of replies.
    charged: Arc<Mutex<(u64, u64)>>,
    is_broken: bool,
    /// Whether some agents pay tools, and what these have charged, in cents.
    is_paying: bool,
    tools: Arc<AtomicU64>,
    /// The time that each call takes, by [`clock`](Self::clock).
    call_ms: u64,
    clock: Arc<AtomicU64>,
}

impl Server {
    fn seeded(seed: u64) -> Self {
        let random = Random::seeded(seed);
        let (is_broken, is_paying) = (seed.is_multiple_of(2), seed.is_multiple_of(5));
        Self { random, is_broken, is_paying, ..Self::default() }
    }

    fn calls(&self) -> u64 {
        self.charged.lock().unwrap().0
    }

    /// The tokens of replies, each of which costs a cent.
    fn replies(&self) -> u64 {
        self.charged.lock().unwrap().1
    }

    /// What the model and the tools have charged.
    fn cents(&self) -> u64 {
        self.replies() + self.tools.load(Ordering::SeqCst)
    }

    fn charge(&self) {
        let mut charged = self.charged.lock().unwrap();
        *charged = (charged.0 + 1, charged.1 + MOST);
        self.clock.fetch_add(self.call_ms, Ordering::SeqCst);
    }
}

impl Model for Server {
    fn name(&self) -> &str {
        "test:server"
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        received(request, (&self.random, self.is_broken), || self.charge()).await?;
        let usage = Usage { input: Some(INPUT), output: Some(MOST), ..Usage::default() };
        Ok(Reply { usage, ..Reply::new("word") })
    }
    /// Input costs nothing.
    fn cost(&self, usage: &Usage) -> Option<Money> {
        Some(cents(usage.output?))
    }
    fn max_output(&self, _: &polylogue_core::Params) -> Option<u64> {
        Some(MOST)
    }
}

/// A tool that charges the most it declares.
struct Paid(ToolSpec, Server);

impl Tool for Paid {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    async fn call(&self, _: serde_json::Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        self.1.tools.fetch_add(FEE, Ordering::SeqCst);
        for _ in 0..self.1.random.roll(3) {
            tokio::task::yield_now().await;
        }
        match self.1.random.roll(3) {
            0 => Err("it failed".into()),
            1 => Ok(ToolResult::done("a hit")),
            _ => Ok(ToolResult::done("a hit").with_cost(cents(FEE))),
        }
    }
}

/// Asks its model, and pays two tools at the same time.
struct Buyer(Name, Server);

impl Agent for Buyer {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        let parts = turn.ask_model(ModelCall::of(&AnyModel::new(self.1.clone()))).await?.parts;
        let spec = ToolSpec::new("search", "Searches.", serde_json::json!({"type": "object"}));
        let tool = AnyTool::new(Paid(spec.max_cost(cents(FEE)), self.1.clone()));
        let call =
            |nth| ToolCall { id: format!("c{nth}"), tool: "search".into(), args: serde_json::json!({}) };
        turn.call_tools(&[tool], &[call(1), call(2)]).await?;
        Ok(Act::Say(parts))
    }
}

/// Five agents, who speak at the same time in each of two steps. Some of them pay tools.
fn start(server: &Server) -> impl Fn(&String) -> polylogue::Result<BatchStart> {
    let server = server.clone();
    move |row| {
        let mut chat = Chat::builder("crowd").max_turns(20);
        let mut turns = Vec::new();
        for number in 0..5 {
            let name = format!("A{number}");
            turns.push(TurnRequest::to_all(Name::new(name.as_str())?));
            chat = match server.is_paying && number % 2 == 0 {
                true => chat.participant(Buyer(Name::new(name.as_str())?, server.clone())),
                false => chat.participant(Assistant::new(name, AnyModel::new(server.clone()))?),
            };
        }
        let steps = move |chat: &Transcript| match chat.turns() {
            0..10 => Step::Parallel(turns.clone()),
            _ => Step::close(StopReason::Finished, chat),
        };
        let (id, meta, chat) = (LogId::new(row)?, Meta::default(), chat.policy(steps).build()?);
        Ok(BatchStart { id, meta, chat, task: row.clone(), bound: RunBound::default() })
    }
}

fn rows() -> impl Iterator<Item = String> {
    (0..10).map(|row| format!("row-{row}"))
}

/// Runs the batch in this process, until the server has received `last` requests, of which the process dies. Returns how rows
/// ended, if it did not die.
async fn live(
    store: &AnyStore,
    server: &Server,
    budget: &Budget,
    last: u64,
) -> Option<Vec<(String, StopReason)>> {
    let batch = Batch::new(store.clone()).concurrency(10).budget(budget.clone());
    let mut ended = Vec::new();
    let run = async {
        let batch = batch.charge(rows(), |row| Ok(LogId::new(row)?), start(server)).await.unwrap();
        let each = |row: BatchResult<String>| match row.status {
            Ok(Status::Closed { reason, .. }) => ended.push((row.item, reason)),
            status => panic!("{status:?}"),
        };
        batch.run(rows(), start(server), each).await.unwrap();
    };
    let is_over = until_dead(run, || server.calls() >= last).await.is_some();
    is_over.then_some(ended)
}

/// One limit of a batch, by seed: calls, tokens or money.
fn limit(seed: u64, server: &Server) -> Allowance {
    let none = Allowance::default();
    match seed % 3 {
        0 => Allowance { calls: Some(1 + server.random.roll(120)), ..none },
        // A request is reserved at more than a token for each byte.
        1 => Allowance { tokens: Some(200 + server.random.roll(25_000)), ..none },
        _ => Allowance { cost: Some(cents(1 + server.random.roll(3_000))), ..none },
    }
}

#[tokio::test]
async fn fifty_agents_in_ten_conversations_take_no_more_than_their_batch_may() {
    let mut reached = BTreeSet::new();
    for seed in 1..=200 {
        let server = Server::seeded(seed);
        let (store, most) = (AnyStore::new(Memory::new()), limit(seed, &server));
        let mut ended = None;
        for _ in 0..60 {
            let budget = Budget::new("batch", most);
            ended = live(&store, &server, &budget, server.calls() + 1 + server.random.roll(40)).await;
            assert_eq!(budget.reserved(), Money::default(), "seed {seed}: reservations return to zero");
            if let Some(ended) = &ended {
                let used = budget.used();
                let all = CountedUsage {
                    calls: server.calls(),
                    tokens: server.replies() + INPUT * server.calls(),
                    cost: cents(server.cents()),
                };
                // Calls that were lost count at more than they took.
                assert!(used.calls >= all.calls && used.tokens >= all.tokens && used.cost >= all.cost);
                let is_done = ended.len() == 10 && ended.iter().all(|(_, why)| !why.is_shared());
                assert!(is_done || budget.reached().is_some(), "seed {seed}: {ended:?}");
                reached.extend(budget.reached().map(|why| words(&why)));
                break;
            }
        }
        let ended = ended.unwrap_or_else(|| panic!("seed {seed}: it does not end"));
        assert!(is_within(most, &[&server]), "seed {seed}: {most:?}: {ended:?}");
    }
    let expected = [
        "the batch has reached the limit",
        "the batch has reached the limit of N model calls",
        "the batch has reached the limit of N tokens",
    ];
    assert_eq!(reached.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

/// Whether the requests that `servers` received together took no more than `most`.
fn is_within(most: Allowance, servers: &[&Server]) -> bool {
    let sum = |of: fn(&Server) -> u64| servers.iter().map(|server| of(server)).sum::<u64>();
    let (calls, spent, replies) = (sum(Server::calls), sum(Server::cents), sum(Server::replies));
    most.calls.is_none_or(|limit| calls <= limit)
        && most.tokens.is_none_or(|limit| replies + INPUT * calls <= limit)
        && most.cost.is_none_or(|limit| cents(spent) <= limit)
}

#[tokio::test]
async fn every_budget_that_a_conversation_has_is_charged_and_none_is_passed() {
    let mut reached = BTreeSet::new();
    for seed in 1..=100 {
        let servers = [Server::seeded(seed), Server::seeded(seed + 1_000)];
        let process = Budget::new("process", limit(seed / 3, &servers[0]));
        let tokens = ["first token", "second token"].map(|name| Budget::new(name, limit(seed, &servers[1])));
        let runs = rows().enumerate().map(|(nth, row)| {
            let (of, started) = (nth % 2, start(&servers[nth % 2])(&row).unwrap());
            let log = Log::in_memory().budget(tokens[of].clone()).budget(process.clone());
            let mut log = log.budget(process.clone());
            async move { (of, started.chat.run_in(&mut log, &row).await.unwrap().status) }
        });
        for (of, status) in futures_util::future::join_all(runs).await {
            let Status::Closed { reason, .. } = status else { panic!("{status:?}") };
            let by = [&process, &tokens[of]].into_iter().find(|budget| budget.still_refuses(&reason));
            assert!(reason == StopReason::Finished || by.is_some(), "seed {seed}: {reason}");
            reached.extend(by.map(|_| words(&reason).trim_end_matches('s').to_owned()));
        }
        let all = [&servers[0], &servers[1]];
        for (budget, servers) in [(&process, &all[..]), (&tokens[0], &all[..1]), (&tokens[1], &all[1..])] {
            assert!(is_within(budget.limits(), servers), "seed {seed}: {budget:?}");
            assert_eq!(budget.reserved(), Money::default(), "seed {seed}: reservations return to zero");
        }
    }
    assert_eq!(reached.len(), 9, "each limit of each budget ends conversations: {reached:?}");
}

/// The kind of a limit in words, without numbers.
fn words(why: &StopReason) -> String {
    let text = why.to_string();
    let text = text.split(" (").next().unwrap_or_default();
    let text = text.split(" of $").next().unwrap_or_default();
    text.split(' ')
        .map(|word| if word.parse::<u64>().is_ok() { "N" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

#[tokio::test]
async fn a_conversation_says_which_limit_of_the_batch_ended_it_and_continues_under_a_larger_one() {
    let (store, server) = (AnyStore::new(Memory::new()), Server::seeded(1));
    let budget = |calls| Budget::new("batch", Allowance { calls: Some(calls), ..Allowance::default() });
    let first = live(&store, &server, &budget(13), u64::MAX).await.unwrap();
    assert_eq!(server.calls(), 13);
    assert!(!first.is_empty());
    for (row, why) in first.iter().filter(|(_, why)| *why != StopReason::Finished) {
        assert_eq!(
            (why.to_string().as_str(), why.outcome()),
            ("the batch has reached the limit of 13 model calls", RunOutcome::Limit)
        );
        let log = Log::open(store.clone(), LogId::new(row).unwrap()).await.unwrap();
        assert_eq!(log.transcript().await.unwrap().closed().unwrap().0, why, "it is in the log");
    }
    // Under the same budget nothing is sent, and logs stay as they are.
    let events = async || {
        let row = first.iter().find(|(_, why)| why.is_shared()).unwrap();
        store.read(&LogId::new(&row.0).unwrap(), 0).await.unwrap()
    };
    let before = events().await.len();
    let again = live(&store, &server, &budget(13), u64::MAX).await.unwrap();
    assert!(again.iter().all(|(_, why)| why.is_shared() || *why == StopReason::Finished), "{again:?}");
    assert_eq!((server.calls(), events().await.len()), (13, before));
    // Under a larger one, every row ends, and no finished call is repeated.
    let last = live(&store, &server, &budget(100), u64::MAX).await.unwrap();
    assert_eq!(last.iter().filter(|(_, why)| *why == StopReason::Finished).count(), 10);
    assert_eq!(server.calls(), 100);
    assert!(events().await.iter().any(|event| matches!(event.body, Body::Reopened { message: None, .. })));
}

#[tokio::test]
async fn the_time_of_a_batch_counts_over_its_processes() {
    let server = Server { call_ms: 100, ..Server::default() };
    let store = AnyStore::new(Memory::new());
    let process = |limit: Allowance| {
        let (clock, began) = (Arc::clone(&server.clock), server.clock.load(Ordering::SeqCst));
        Budget::timed("batch", limit, move || Duration::from_millis(clock.load(Ordering::SeqCst) - began))
    };
    // In earlier processes, two conversations took half a second each, of which four tenths were the same.
    for (row, from) in [("row-0", 1_000), ("row-1", 1_100)] {
        let other = Server { call_ms: 100, clock: Arc::new(AtomicU64::new(from)), ..Server::seeded(1) };
        let clock = Arc::clone(&other.clock);
        let log = Log::create(store.clone(), row).await.unwrap();
        let mut log = log.clock(move || Timestamp(clock.load(Ordering::SeqCst)));
        let start = start(&other)(&row.to_owned()).unwrap();
        let ended = until_dead(start.chat.run_in(&mut log, row), || other.calls() >= 6).await;
        assert!(ended.is_none(), "it ends");
        log.release().await.unwrap();
    }
    let counted = process(Allowance::default());
    let mut spans = Vec::new();
    for row in ["row-0", "row-1"] {
        let events = store.read(&LogId::new(row).unwrap(), 0).await.unwrap();
        spans.push((events[0].time.0, events[events.len() - 1].time.0));
        counted.count_events(&events);
    }
    // Each took less than a second, both together as long as from the first event to the last.
    let [(began, first), (second, ended)] = spans[..] else { panic!("two") };
    assert!(began < second && second < first && first < ended, "they overlap: {spans:?}");
    let earlier = counted.used_ms();
    assert_eq!(earlier, ended - began);
    let most = Allowance { time_ms: Some(earlier + 400), ..Allowance::default() };
    let ended = live(&store, &server, &process(most), u64::MAX).await.unwrap();
    let why = format!("the batch has reached the limit of {} ms of running time", earlier + 400);
    assert!(
        !ended.is_empty() && ended.iter().all(|(_, reason)| reason.to_string() == why),
        "{why}: {ended:?}"
    );
    assert_eq!(server.calls(), 4, "each takes a tenth of a second");
}
