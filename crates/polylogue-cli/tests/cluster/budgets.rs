//! W30, W31: one budget for all workers, which are killed, and counting it again.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use polylogue_core::{CountedUsage, Event, Summary};
use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::Value;

use crate::place::{Place, WorkerProcess, expire, until};

const MOST: u64 = 400_000;
const REPLY: u64 = 1000;

const TALK: &str = "
name: talk
task: Talk.
agents: [{name: Ann, system: You are Ann., parameters: {max_tokens: 1000}}, {name: Bob, system: You are Bob., parameters: {max_tokens: 1000}}]
chat: {participants: [Ann, Bob], stop: {max_turns: 400}, loop_detection: off}
limits: {calls: 100000}
";

/// A model that uses about as many tokens as a call can, and how many these were.
fn greedy() -> (Server, Arc<AtomicU64>) {
    let used = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&used);
    let book = Playbook::new(move |received, _| {
        let texts = received.messages().iter().map(|message| message["content"].to_string().len() as u64 - 2);
        let input = texts.sum::<u64>() + 100;
        counted.fetch_add(input + REPLY, Ordering::Relaxed);
        Answer::text("Go on.").usage(input, REPLY)
    });
    let behavior = Behavior::from(book).latency(Duration::from_millis(150));
    (Server::bind((Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap(), used)
}

fn budget(place: &Place) -> Value {
    let rows = place.run(&["cluster", "--json"], 0).lines();
    rows.into_iter().find(|row| row["budget"] == "team").unwrap()
}

/// What the logs say.
fn of_logs(place: &Place, ids: &[String]) -> CountedUsage {
    let used = ids.iter().map(|id| {
        let events =
            place.events(id).into_iter().map(|event| serde_json::from_value::<Event>(event).unwrap());
        Summary::of(&events.collect::<Vec<_>>(), true).usage.counted()
    });
    used.fold(CountedUsage::default(), |sum, used| sum + used)
}

/// Kills a worker, and ends its leases: those of conversations, and of what it had drawn.
fn kill(server: &PostgresServer, worker: WorkerProcess) {
    expire(server, worker.kill());
    let _ = server.sql(
        "UPDATE polylogue.budgets SET pieces = (SELECT jsonb_object_agg(key, value || '{\"until\": 0}') FROM jsonb_each(pieces)) WHERE pieces <> '{}'",
    );
}

#[test]
fn workers_that_are_killed_never_pass_a_shared_budget_and_use_nearly_all_of_it() {
    let Some(server) = PostgresServer::start() else { return };
    let (model, used) = greedy();
    let place = Place::new(&server.url()).with_model(&model);
    place.file("team.yaml", TALK);
    let most = format!("team={MOST}");
    let run = ["team.yaml", "--model", "openai:test", "--budget-tokens", &most];
    let ids: Vec<String> = (0..25).map(|_| place.detach(&run)).collect();
    let worker = || place.worker(&["--at-once", "7"]);
    let mut workers: Vec<WorkerProcess> = (0..4).map(|_| worker()).collect();
    for _ in 0..4 {
        let before = used.load(Ordering::Relaxed);
        until("they talk", || used.load(Ordering::Relaxed) > before + MOST / 12);
        kill(&server, workers.remove(0));
        workers.push(worker());
    }
    until("all have reached it", || place.cluster().1.is_empty());
    until("nothing is drawn", || budget(&place)["drawn"]["tokens"] == 0);
    let sent = used.load(Ordering::Relaxed);
    assert!(sent <= MOST, "{sent} of {MOST} tokens");
    let (spent, logged) = (budget(&place)["used"]["tokens"].as_u64().unwrap(), of_logs(&place, &ids));
    println!("{sent} tokens were used, {spent} are counted");
    assert!(
        (MOST * 99 / 100..=MOST).contains(&spent),
        "{spent} of {MOST}: each lost call counts as the most it may use"
    );
    assert_eq!(spent, logged.tokens, "the budget has what the logs have");
    let state = place.run(&["runs", "--json"], 0).out;
    assert!(state.contains("shared budget `team`"), "{state}");
    drop(workers);
    // W31: what was changed, as by a restored backup, is counted again.
    let _ = server.sql("UPDATE polylogue.budgets SET tokens = 7, calls = 0; UPDATE polylogue.budget_logs SET tokens = 3 WHERE tokens > 5000");
    let recount = place.run(&["cluster", "--recount", "team", "--json"], 0).lines().remove(0);
    assert_eq!(
        (&recount["counted"], &recount["uncertain"]),
        (&25.into(), &Value::Array(Vec::new())),
        "{recount}"
    );
    assert_eq!(recount["after"]["tokens"], logged.tokens);
    assert_eq!(recount["after"]["calls"], logged.calls);
    // More is allowed, and the conversation that continues uses it.
    place.run(&["resume", &ids[0], "--detach", "--budget-tokens", &format!("team={}", MOST + 20_000)], 0);
    let _worker = worker();
    until("more is used", || budget(&place)["used"]["tokens"].as_u64().unwrap() > MOST);
}

#[test]
fn a_shared_budget_that_cannot_be_is_an_error_with_a_hint() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    place.file("team.yaml", &TALK.replace("name: talk", "name: talk\nscript: [{Ann: Hello!}, {Bob: Hi.}]"));
    for (args, what) in [
        (&["run", "team.yaml", "--budget", "nosuch"][..], "there is no shared budget `nosuch`"),
        (&["cluster", "--recount", "nosuch"], "there is no shared budget `nosuch`"),
        (&["run", "team.yaml", "--budget", "a b=3"], "the name of a budget is a letter"),
        (&["run", "team.yaml", "--budget-tokens", "team=many"], "whole number"),
        (&["run", "team.yaml", "--budget", "team=3", "--store", "x.db"], "have no shared budgets"),
    ] {
        let refused = place.run(args, 2);
        assert!(refused.err.contains(what), "{args:?}: {}", refused.err);
    }
    // One that a process uses alone is drawn, counted and given back in the same way.
    place.run(&["run", "team.yaml", "--budget-calls", "team=1"], 3);
    let found = budget(&place);
    assert_eq!((&found["used"]["calls"], &found["drawn"]["calls"]), (&1.into(), &0.into()), "{found}");
    assert_eq!(found["processes"], 0, "{found}");
    let shown = place.run(&["cluster"], 0).out;
    assert!(shown.contains("budget  team") && shown.contains("1 call of 1"), "{shown}");
}
