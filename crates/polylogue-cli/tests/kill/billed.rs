//! Crash loops under a limit on money: what the server billed over all processes is within the limit. `POLYLOGUE_KILLS` sets how often programs are
//! killed at least, in each test (default: 24).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use polylogue_core::Bound;
use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Received};
use serde_json::{Value, json};

use crate::place::{Kind, Place};
use crate::random::{Moment, Random};

/// The longest reply, in tokens, which is what every reply takes.
const LONGEST: u64 = 50;

/// Dollars for a million tokens, read and written.
const PRICES: (u64, u64) = (1_000, 3_000);

/// Three who speak at the same time, and then one who sums it up, each for himself.
fn team() -> String {
    let agents = ["Ann", "Bob", "Cid", "Dan"].map(|name| agent(name, "")).concat();
    with_prices(&format!(
        "agents:\n{agents}chats:\n  - {{name: crowd, participants: [Ann, Bob, Cid], pattern: parallel, stop: {{max_turns: 3}}}}\n\
         chat: {{participants: [crowd, Dan], pattern: round_robin, stop: {{max_turns: 60}}}}\n"
    ))
}

/// Two who speak in turn, one of whom starts two background tasks in each turn.
fn desk() -> String {
    let tools =
        ", agent_tools: [{who: Ann, tool: ann, background: true}, {who: Bob, tool: bob, background: true}]";
    let others = ["Ann", "Bob"].map(|name| agent(name, ", description: Helps.")).concat();
    with_prices(&format!(
        "agents:\n{others}{}{}chat: {{participants: [Cid, Dan], pattern: round_robin, stop: {{max_turns: 60}}}}\n",
        agent("Cid", tools),
        agent("Dan", "")
    ))
}

/// Two who speak in turn, one of whom works in the background meanwhile.
fn archive() -> String {
    with_prices(&format!(
        "agents:\n{}{}chat: {{participants: [Ann, Bob], pattern: round_robin, loop_detection: off, stop: {{max_turns: 90}}, background: {{participants: [Ann]}}}}\n",
        agent("Ann", ""),
        agent("Bob", "")
    ))
}

fn agent(name: &str, more: &str) -> String {
    format!("  - {{name: {name}, system: You are {name}., parameters: {{max_tokens: {LONGEST}}}{more}}}\n")
}

fn with_prices(team: &str) -> String {
    let (input, output) = PRICES;
    format!(
        "name: billed\ntask: Say something\nprices: {{\"openai:test\": {{input: {input}, output: {output}}}}}\n{team}"
    )
}

/// Bills every request that it gets, whether its reply is read or not, as much as a request of this size can take: a token for every
/// byte of the messages, what a provider adds to each of them and to the request, and the longest reply. Returns the sum in picodollars, too. Replies come after
/// `pause`.
fn billing(pause: Duration) -> (Behavior, Arc<AtomicU64>) {
    let billed = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&billed);
    let book = Playbook::new(move |received: &Received, nth| {
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().len() as u64;
        let added = |message: &Value| if message["role"] == "system" { 0 } else { Bound::MESSAGE_TOKENS };
        let each = |message: &Value| text(message) + added(message);
        let read = Bound::REQUEST_TOKENS + received.messages().iter().map(each).sum::<u64>();
        let last = received.messages().last().is_some_and(|last| last["role"] == "tool");
        let calls = received.body["tools"].is_array() && !last;
        assert_eq!(received.body["max_tokens"], LONGEST);
        sum.fetch_add(picodollars(read, LONGEST), Ordering::SeqCst);
        let pace = Quirk::Pace(Duration::from_millis(nth as u64 % 7));
        let answer = Answer::text(format!("words {nth}"));
        let task = || json!({"task": "go"});
        let answer = if calls { answer.call("ann", task()).call("bob", task()) } else { answer };
        answer.usage(read, LONGEST).with(pace)
    });
    (Behavior::from(book).latency(pause), billed)
}

const fn picodollars(read: u64, written: u64) -> u64 {
    (read * PRICES.0 + written * PRICES.1) * 1_000_000
}

/// The result of a crash loop.
#[derive(Debug)]
struct Loop {
    kills: usize,
    calls: usize,
    /// Of the limit, what was billed.
    share: f64,
}

/// A conversation, or a batch, that is to be killed repeatedly.
struct Victim<'a> {
    team: String,
    dollars: f64,
    /// How long the model takes to reply.
    pause: Duration,
    rows: Option<&'a str>,
}

impl Victim<'_> {
    /// Starts the program with `args`, which know how often it was started and whether the conversation has begun, and kills it at
    /// the moment that they say until it ends.
    fn kill(&self, mut args: impl FnMut(usize, bool) -> (Vec<String>, Moment)) -> Loop {
        let (model, billed) = billing(self.pause);
        let place = Place::of(Kind::Sqlite, &self.team, model);
        if let Some(rows) = self.rows {
            place.file("rows.jsonl", rows);
        }
        let (mut kills, mut is_begun) = (0, false);
        for start in 0.. {
            let (args, moment) = args(start, is_begun);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let mut process = place.begin(&args);
            let ended = process.kill(moment);
            let share = billed.load(Ordering::SeqCst) as f64 / (self.dollars * 1e12);
            assert!(share <= 1.0, "{share} times as much as is allowed was billed after {kills} kills");
            match ended {
                None => kills += 1,
                Some(status) => {
                    assert_eq!(status.code(), Some(4), "{}", process.errors());
                    return Loop { kills, calls: place.server.count(), share };
                }
            }
            drop(process);
            is_begun = is_begun || place.shown().is_some();
        }
        unreachable!("it is started until it ends")
    }
}

/// Has `one` killed until there were enough kills.
fn check(name: &str, mut one: impl FnMut(&mut Random) -> Loop) {
    let mut random = Random::of_environment();
    let most = std::env::var("POLYLOGUE_KILLS").map_or(24, |kills| kills.parse().unwrap());
    let (mut kills, mut calls) = (0, 0);
    while kills < most {
        let came = one(&mut random);
        println!("{name}: {came:?}");
        assert!(came.share > 0.1, "the limit was hardly used: {came:?}");
        kills += came.kills.max(1);
        calls += came.calls;
    }
    assert!(calls > most, "{calls} calls");
}

fn words(begin: &[&str], more: &[&str]) -> Vec<String> {
    begin.iter().chain(&["--model", "openai:test"]).chain(more).map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_run_that_is_killed_repeatedly_is_billed_no_more_than_its_limit() {
    check("run", |random| {
        kill_run(Victim { team: team(), dollars: 14.0, pause: Duration::ZERO, rows: None }, random)
    });
}

#[test]
fn a_run_with_background_tasks_that_is_killed_repeatedly_is_billed_no_more_than_its_limit() {
    check("background", |random| {
        kill_run(Victim { team: desk(), dollars: 30.0, pause: Duration::ZERO, rows: None }, random)
    });
}

#[test]
fn a_run_with_turns_in_the_background_that_is_killed_repeatedly_is_billed_no_more_than_its_limit() {
    check("background turns", |random| {
        kill_run(Victim { team: archive(), dollars: 14.0, pause: Duration::ZERO, rows: None }, random)
    });
}

fn kill_run(run: Victim<'_>, random: &mut Random) -> Loop {
    let limit = format!("--max-cost={}", run.dollars);
    run.kill(|_, is_begun| {
        // The limit is kept with the conversation.
        let args = match is_begun {
            true => words(&["resume", "last"], &[]),
            false => words(&["run", "team.yaml"], &[&limit]),
        };
        (args, Moment::draw(random))
    })
}

const BATCH: [&str; 6] = ["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl"];

fn rows() -> String {
    (0..12).map(|row| format!("{{\"task\": \"Task {row}\"}}\n")).collect()
}

#[test]
fn a_batch_that_is_killed_repeatedly_is_billed_no_more_than_its_budget() {
    check("batch", |random| {
        let batch = Victim { team: team(), dollars: 24.0, pause: Duration::ZERO, rows: Some(&rows()) };
        let limit = format!("--budget={}", batch.dollars);
        batch.kill(|_, _| {
            // Fewer or more rows at once than before make no difference.
            let at_once = ["--at-once=1", "--at-once=3", "--at-once=8"][random.below(3) as usize];
            (words(&BATCH, &[&limit, at_once]), Moment::draw(random))
        })
    });
}

/// No call is ever answered: all that counts was in flight at a death, first that of two rows at once, then that of one.
#[test]
fn calls_of_other_rows_in_flight_at_a_death_count_in_the_budget_of_a_batch() {
    const DOLLARS: u64 = 14;
    let (pause, rows) = (Duration::from_secs(600), rows());
    let batch = Victim { team: team(), dollars: DOLLARS as f64, pause, rows: Some(&rows) };
    let limit = format!("--budget={}", batch.dollars);
    // Each row has three calls in flight. A process is killed when all of them came to the server, which bills nothing else: as long as three fit
    // into what is left. At the end it is killed after one of them, and the others may have been reserved and not sent.
    let texts = "You are Ann.Task 0".len() as u64;
    let call = picodollars(Bound::REQUEST_TOKENS + Bound::MESSAGE_TOKENS + texts, LONGEST);
    let calls = usize::try_from(DOLLARS * 1_000_000_000_000 / call).unwrap();
    let whole = (calls - 6) / 3 - 1;
    let came = batch.kill(|start, _| {
        let (at_once, calls) = match start {
            0 => ("--at-once=2", 6),
            _ if start <= whole => ("--at-once=1", 3),
            _ => ("--at-once=1", 1),
        };
        (words(&BATCH, &[&limit, at_once]), Moment::Request(calls, Duration::from_millis(20)))
    });
    println!("{came:?}");
    assert!(came.kills >= 12 && came.share > 0.8, "{came:?}");
}
