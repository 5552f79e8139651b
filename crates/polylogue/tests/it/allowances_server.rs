//! Limits on money against a server on the loopback interface that charges the most it may: a token for each byte of a
//! request, what a provider adds to it, and the longest reply. Processes die while requests are in flight.
//! `POLYLOGUE_SEEDS` sets how many seeds are run (default: 3), `POLYLOGUE_SEED` the first of them (default: 1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Limits, Log, Name, Status, Step, Transcript, round_robin};
use polylogue_core::{Allowance, Bound, Money, Params, Price, RunResult, StopReason, TurnRequest};
use polylogue_models::{Api, Config, Endpoint, Retries};
use polylogue_test::server::{Answer, Behavior, Playbook, Received, Server};

use crate::common::{log_of, run_or_resume, until_dead};

const AGENTS: usize = 50;
const STEPS: u64 = 3;
/// The longest reply, in tokens.
const REPLY: u64 = 20;

/// A dollar for a million input tokens, and for as many output tokens.
fn price() -> Price {
    serde_json::from_str(r#"{"input": 1.0, "output": 1.0}"#).unwrap()
}

fn micros(dollars: u64) -> Money {
    Money { picodollars: dollars * 1_000_000 }
}

/// The most input tokens of a request.
fn input(request: &Received) -> u64 {
    let text = |message: &serde_json::Value| message["content"].as_str().map_or(0, str::len) as u64;
    let added =
        |message: &serde_json::Value| if message["role"] == "system" { 0 } else { Bound::MESSAGE_TOKENS };
    let each = |message| text(message) + added(message);
    Bound::REQUEST_TOKENS + request.messages().iter().map(each).sum::<u64>()
}

/// A server, and what it has charged, in millionths of a dollar: in all, and to the first agent.
async fn greedy() -> (Server, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (all, first) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let charged = (Arc::clone(&all), Arc::clone(&first));
    let book = Playbook::new(move |request, _| {
        let input = input(request);
        charged.0.fetch_add(input + REPLY, Ordering::SeqCst);
        if request.system().is_some_and(|system| system == "You are A0.") {
            charged.1.fetch_add(input + REPLY, Ordering::SeqCst);
        }
        Answer::text("word").usage(input, REPLY)
    });
    (Server::start(Behavior::from(book)).await, all, first)
}

fn crowd(server: &Server) -> Chat {
    let config = Config::of(Api::ChatCompletions, &server.base_url());
    let model = Endpoint::new(config).unwrap().model("test").with_price(Some(price()));
    let model = AnyModel::new(model);
    let params = Params { max_tokens: u32::try_from(REPLY).ok(), ..Params::default() };
    let mut chat = Chat::builder("crowd").max_turns(1000);
    let mut turns = Vec::new();
    for number in 0..AGENTS {
        let agent = Assistant::new(format!("A{number}"), &model).unwrap().params(params.clone());
        turns.push(TurnRequest::to_all(Name::new(format!("A{number}")).unwrap()));
        chat = chat.participant(agent.system(format!("You are A{number}.")));
    }
    let steps = move |chat: &Transcript| match chat.turns() {
        begun if begun < STEPS * AGENTS as u64 => Step::Parallel(turns.clone()),
        _ => Step::close(StopReason::Finished, chat),
    };
    chat.policy(steps).build().unwrap()
}

/// Runs the crowd in one process after another. Each dies when the server has received some more requests.
async fn live(server: &Server, seed: u64, (run, first): (Money, Money)) -> StopReason {
    let chat = crowd(server);
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut events = Vec::new();
    for _ in 0..60 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let last = server.count() + 1 + (random >> 33) as usize % 120;
        let limits = Limits { cost: Some(run), ..Limits::default() };
        let own = Allowance { cost: Some(first), ..Allowance::default() };
        let mut log = log_of(&events).await.limits(limits).agent_limits([(Name::new("A0").unwrap(), own)]);
        let ended = until_dead(run_or_resume(&chat, &mut log, "go"), || server.count() >= last).await;
        assert_eq!(log.reserved(), Money::default(), "seed {seed}: reservations return to zero");
        // What was not written is lost with the process.
        events = log.events().await;
        if let Some(RunResult { status: Status::Closed { reason, .. }, .. }) = ended.map(Result::unwrap) {
            return reason;
        }
    }
    panic!("seed {seed}: it does not end");
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[tokio::test]
async fn a_server_that_charges_the_most_it_may_is_paid_no_more_than_the_limit() {
    let first_seed = variable("POLYLOGUE_SEED", 1);
    for seed in first_seed..first_seed + variable("POLYLOGUE_SEEDS", 3) {
        let (server, all, first) = greedy().await;
        // 50 agents take about 100 millionths of a dollar each in the first step.
        let run = 3_000 + seed.wrapping_mul(7_919) % 60_000;
        let own = 150 + seed.wrapping_mul(104_729) % 6_000;
        let reason = live(&server, seed, (micros(run), micros(own))).await;
        let (all, first) = (all.load(Ordering::SeqCst), first.load(Ordering::SeqCst));
        assert!(all <= run && first <= own, "seed {seed}: {all} of {run}, A0 {first} of {own}; {reason}");
        assert_eq!(server.violations(), [""; 0], "seed {seed}");
        println!("seed {seed}: {all} of {run} millionths of a dollar, A0 {first} of {own}: {reason}");
    }
}

/// A server whose streams are these events, each time.
async fn streaming(events: &[&str]) -> Server {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: ";
    Server::start(Behavior::raw(format!("{head}{}\r\n\r\n{body}", body.len()))).await
}

/// Its error is that of a refusal, but a provider may bill the pieces before it. The limit is enough for one call.
#[tokio::test]
async fn a_reply_that_ends_with_an_error_counts_at_its_reservation() {
    let piece = r#"{"choices":[{"index":0,"delta":{"content":"one "}}]}"#;
    let error = r#"{"error":{"code":503,"message":"overloaded"}}"#;
    for (events, requests) in [(&[error][..], 3), (&[piece, error], 1)] {
        let server = streaming(events).await;
        let retries = Retries { attempts: 3, first_wait: Duration::from_millis(1), ..Retries::default() };
        let config = Config { retries, ..Config::of(Api::ChatCompletions, &server.base_url()) };
        let model = Endpoint::new(config).unwrap().model("test").with_price(Some(price()));
        let params = Params { max_tokens: u32::try_from(REPLY).ok(), ..Params::default() };
        let agent = Assistant::new("A", AnyModel::new(model)).unwrap().params(params);
        let policy = with_termination(round_robin(), max_turns(1));
        let chat = Chat::builder("one").participant(agent).policy(policy).build().unwrap();
        let mut log = Log::in_memory().limits(Limits { cost: Some(micros(300)), ..Limits::default() });
        let run = chat.run_in(&mut log, "go").await;
        assert_eq!(server.count(), requests, "{run:?}");
        let is_limit =
            |status: &Status| matches!(status, Status::Closed { reason: StopReason::Cost { .. }, .. });
        assert_eq!(run.is_ok_and(|run| is_limit(&run.status)), requests == 1);
        assert!(log.usage().await.counted_cost() <= micros(300));
    }
}
