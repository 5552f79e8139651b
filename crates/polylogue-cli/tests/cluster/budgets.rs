//! W30, W31: one budget for all workers, which are killed, and counting it again.

use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use polylogue_core::{CountedUsage, Event, Summary};
use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, PieceGate, Playbook, Server};
use serde_json::{Value, json};

use crate::commands::TALK as SCRIPTED;
use crate::live::Client;
use crate::place::{Place, WorkerProcess, expire, number, of_type, until};

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
        let limits =
            ["max_completion_tokens", "max_tokens"].iter().filter_map(|name| received.body[name].as_u64());
        let reply = limits.min().map_or(REPLY, |most| most.min(REPLY));
        counted.fetch_add(input + reply, Ordering::Relaxed);
        Answer::text("Go on.").usage(input, reply)
    });
    let behavior = Behavior::from(book).latency(Duration::from_millis(150));
    (Server::bind((Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap(), used)
}

/// The budgets that `cluster` shows.
fn budgets(place: &Place) -> Vec<Value> {
    let rows = place.run(&["cluster", "--json"], 0).lines();
    rows.into_iter().filter(|row| row.get("budget").is_some()).collect()
}

fn budget(place: &Place) -> Value {
    budgets(place).into_iter().find(|row| row["budget"] == "team").unwrap()
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
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    let most = format!("team={MOST}");
    let run = ["team.yaml", "--model", "openai:test", "--budget-tokens", &most];
    let ids: Vec<String> = (0..25).map(|_| place.detach(&run)).collect();
    let count = number("POLYLOGUE_WORKERS", 4);
    // Each has a few.
    let places = ids.len().div_ceil(count).to_string();
    let worker = || place.worker(&["--at-once", &places]);
    let mut workers: Vec<WorkerProcess> = (0..count).map(|_| worker()).collect();
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
    // Of calls that were in flight when a worker was killed, no more than it had drawn.
    assert!((sent..=logged.tokens).contains(&spent), "{sent} of {spent} of {} tokens", logged.tokens);
    let (calls, most) = (budget(&place)["used"]["calls"].as_u64().unwrap(), logged.calls);
    assert!(calls <= most, "{calls} of {most} calls");
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
    assert_eq!((&recount["after"]["tokens"], &recount["after"]["calls"]), (&spent.into(), &calls.into()));
    // More is allowed, and the conversation that continues uses it.
    place.run(&["resume", &ids[0], "--detach", "--budget-tokens", &format!("team={}", MOST + 20_000)], 0);
    let _worker = worker();
    until("more is used", || budget(&place)["used"]["tokens"].as_u64().unwrap() > MOST);
}

/// Two calls of four fit into the budget. The others waited for these, so that they were not in flight.
#[test]
fn calls_that_a_killed_worker_may_have_sent_count_no_more_than_it_had_drawn() {
    const MOST: u64 = 3_300;
    let Some(server) = PostgresServer::start() else { return };
    let stuck =
        Behavior::from(Playbook::new(|_, _| Answer::text("Go on."))).latency(Duration::from_secs(600));
    let stuck = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), stuck).unwrap();
    let place = Place::new(&server.url()).with_model(&stuck).with_team(TALK);
    let most = format!("team={MOST}");
    let run = ["team.yaml", "--model", "openai:test", "--budget-tokens", &most];
    let ids: Vec<String> = (0..4).map(|_| place.detach(&run)).collect();
    let worker = place.worker(&[]);
    let has_begun = |id: &String| !of_type(&place.events(id), "turn_started").is_empty();
    until("all of them have begun", || ids.iter().all(has_begun));
    until("two calls are in flight", || stuck.count() == 2);
    kill(&server, worker);
    let drawn = budget(&place)["drawn"]["tokens"].as_u64().unwrap();
    assert!((2 * REPLY..=MOST).contains(&drawn), "{drawn}");
    let (quick, used) = greedy();
    let place = place.with_model(&quick);
    let _worker = place.worker(&[]);
    until("all have reached it", || place.all(4, |state| state.contains("the shared budget `team`")));
    until("nothing is drawn", || budget(&place)["drawn"]["tokens"] == 0);
    let (spent, sent) = (budget(&place)["used"]["tokens"].as_u64().unwrap(), used.load(Ordering::Relaxed));
    assert!((drawn + sent..=MOST).contains(&spent), "{drawn} lost, {sent} sent: {spent} of {MOST}");
    assert!(sent > 0, "what was not reserved is left for others");
}

#[test]
fn a_shared_budget_that_cannot_be_is_an_error_with_a_hint() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url())
        .with_team(&TALK.replace("name: talk", "name: talk\nscript: [{Ann: Hello!}, {Bob: Hi.}]"));
    for (args, what) in [
        (&["run", "team.yaml", "--budget", "nosuch"][..], "there is no shared budget `nosuch`"),
        (&["cluster", "--recount", "nosuch"], "there is no shared budget `nosuch`"),
        (&["cluster", "--remove-budget", "nosuch"], "there is no shared budget `nosuch`"),
        (&["cluster", "--remove-budget", "@token:1:2"], "the name of a budget is a letter"),
        (&["run", "team.yaml", "--budget", "a b=3"], "the name of a budget is a letter"),
        (&["run", "team.yaml", "--budget-tokens", "team=many"], "whole number"),
        (&["run", "team.yaml", "--budget", "team=3", "--store", "x.db"], "have no shared budgets"),
    ] {
        let refused = place.run(args, 2);
        assert!(refused.err.contains(what), "{args:?}: {}", refused.err);
    }
    // One that a process uses alone is drawn, counted and returned in the same way.
    place.run(&["run", "team.yaml", "--budget-calls", "team=1"], 3);
    let found = budget(&place);
    assert_eq!((&found["used"]["calls"], &found["drawn"]["calls"]), (&1.into(), &0.into()), "{found}");
    assert_eq!(found["processes"], 0, "{found}");
    let shown = place.run(&["cluster"], 0).out;
    assert!(shown.contains("budget  team") && shown.contains("1 call of 1"), "{shown}");
    let recounted = place.run(&["cluster", "--recount", "team"], 0).out;
    assert!(recounted.contains(" tokens, 1 call; before $"), "{recounted}");
}

/// Also for what was handed over.
#[test]
fn the_budgets_of_a_server_pay_for_what_it_runs_as_a_worker() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(SCRIPTED);
    for (number, limit) in [(1, "team=1"), (2, "1")] {
        place.detach(&["team.yaml"]);
        let serve = ["serve", "team.yaml", "--listen", "127.0.0.1:0", "--worker", "--budget-calls", limit];
        let _served = place.begin(&serve, "served");
        until("all have reached it", || place.all(number, |state| state.contains("has reached the limit")));
        // Before the server is killed.
        until("nothing is drawn", || budget(&place)["drawn"]["calls"] == 0);
    }
    let found = budget(&place);
    assert_eq!((&found["used"]["calls"], &found["conversations"]), (&1.into(), &1.into()), "{found}");
}

/// Many processes share the connections that a server of Postgres has, of which each is a process of it.
#[test]
fn a_worker_with_limits_and_budgets_has_eight_connections_at_most() {
    let Some(server) = PostgresServer::start() else { return };
    let (model, _) = greedy();
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    for _ in 0..20 {
        place.detach(&["team.yaml", "--model", "openai:test", "--budget-tokens", "team=100000000"]);
    }
    let worker = place.worker(&[]);
    until("all of them talk", || model.count() > 100);
    let count = server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'polylogue'");
    assert!((4..=8).contains(&count.parse::<u32>().unwrap()), "{count}: {}", worker.log());
}

/// The budget of a process alone is no limit of conversations that other workers can run.
#[test]
fn a_worker_that_has_used_its_own_budget_leaves_conversations_to_others() {
    let place = Place::new("runs.db").with_team(SCRIPTED);
    let ids = [place.detach(&["team.yaml"]), place.detach(&["team.yaml"])];
    // As much as one of them takes.
    let worker = place.worker(&["--budget-calls", "2", "--at-once", "1"]);
    until("it has left one to others", || worker.log().contains("is left to other workers"));
    let begun = ids.iter().filter(|id| !place.events(id).is_empty()).count();
    assert_eq!(begun, 1, "{}", worker.log());
    let shown = place.run(&["cluster"], 0).out;
    assert!(shown.contains("a worker has used its own budget: "), "{shown}");
    let _other = place.worker(&[]);
    until("another one has run it", || place.all(2, |state| state.starts_with("done")));
}

/// Nor is it a limit of models of unknown price, which workers without a budget can call.
#[test]
fn a_worker_with_a_budget_on_cost_leaves_models_of_unknown_price_to_others() {
    let (model, _) = greedy();
    let place =
        Place::new("runs.db").with_model(&model).with_team(&TALK.replace("max_turns: 400", "max_turns: 2"));
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let worker = place.worker(&["--budget", "1"]);
    until("it has left it to others", || worker.log().contains("is left to other workers"));
    assert_eq!((model.count(), place.events(&id).len()), (0, 0), "{}", worker.log());
    let shown = place.run(&["cluster"], 0).out;
    assert!(shown.contains("its price is unknown"), "{shown}");
    let _other = place.worker(&[]);
    until("another one has run it", || place.all(1, |state| state.starts_with("done")));
}

/// The same for the model of its embeddings, which is called by tools.
#[test]
fn a_worker_with_a_budget_on_cost_leaves_embeddings_of_unknown_price_to_others() {
    let (model, _) = greedy();
    let place = Place::new("runs.db").with_model(&model);
    let keys = "prices: {'openai:test': free}\nmemory: {embed: 'openai:vectors'}";
    let remembers = TALK.replace("name: Ann, ", "name: Ann, memory: true, ");
    place.file("team.yaml", &(remembers.replace("max_turns: 400", "max_turns: 2") + keys));
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let worker = place.worker(&["--budget", "1"]);
    until("it has left it to others", || worker.log().contains("is left to other workers"));
    assert_eq!((model.count(), place.events(&id).len()), (0, 0), "{}", worker.log());
    let shown = place.run(&["cluster"], 0).out;
    assert!(shown.contains("openai:vectors") && shown.contains("its price is unknown"), "{shown}");
}

/// Neither the command that continues or begins a conversation nor its worker names the limit on cost of the budget that pays for it.
#[test]
fn a_shared_budget_on_cost_pays_for_no_model_of_unknown_price() {
    const UNKNOWN: &str = "its price is unknown";
    let Some(server) = PostgresServer::start() else { return };
    let (model, _) = greedy();
    let place = Place::new(&server.url())
        .with_model(&model)
        .with_team(&TALK.replace("max_turns: 400", "max_turns: 2"));
    place.file("scripted.yaml", SCRIPTED);
    place.file("rows.csv", "id,task\na,Talk of apples.\n");
    let team = ["team.yaml", "--model", "openai:test", "--budget-calls", "team=100"];
    let id = place.detach(&team);
    // It gets its limit on cost from another conversation.
    place.detach(&["scripted.yaml", "--budget", "team=1"]);
    let resumed = place.run(&["resume", &id], 2).err;
    let begun = place.run(&[&["run"], &team[..]].concat(), 2).err;
    assert!(resumed.contains(UNKNOWN) && begun.contains(UNKNOWN), "{resumed}\n{begun}");
    let rows = ["--over", "rows.csv", "--output", "rows.jsonl"];
    let batch = place.command(&[&["batch"], &team[..], &rows].concat()).output().unwrap();
    let record = std::fs::read_to_string(place.path("rows.jsonl")).unwrap();
    assert!(!batch.status.success() && record.contains(UNKNOWN), "{record}");
    let worker = place.worker(&[]);
    until("it has left it to others", || worker.log().contains("is left to other workers"));
    let shown = place.run(&["cluster"], 0).out;
    assert!(shown.contains(UNKNOWN), "{shown}");
    assert_eq!((model.count(), place.events(&id).len()), (0, 0), "{}", worker.log());
}

/// One that a process has drawn from stays; the conversations of one that was removed continue without it.
#[test]
fn a_shared_budget_is_removed_unless_a_process_has_drawn_from_it() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(SCRIPTED);
    place.run(&["run", "team.yaml", "--budget-calls", "team=1"], 3);
    let drawn = |until: &str| {
        let piece = format!("jsonb_build_object('another', jsonb_build_object('until', {until}))");
        let _ = server.sql(&format!("UPDATE polylogue.budgets SET pieces = {piece}"));
    };
    drawn("extract(epoch FROM now()) + 3600");
    let refused = place.run(&["cluster", "--remove-budget", "team"], 1).err;
    assert!(refused.contains("processes have drawn") && refused.contains("hint: "), "{refused}");
    assert_eq!(budgets(&place)[0]["processes"], 1);
    // The lease of a process that was killed has expired, or of one that has had no conversation of it since.
    drawn("0");
    assert_eq!(budgets(&place)[0]["processes"], 0);
    place.run(&["cluster", "--remove-budget", "team"], 0);
    assert!(budgets(&place).is_empty());
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.budget_logs"), "0");
    place.run(&["resume", "last"], 0);
}

/// A conversation that a person has paused is paid by the budget with which it is handed over again, and by no more.
#[test]
fn a_paused_conversation_is_handed_over_with_a_budget() {
    let Some(server) = PostgresServer::start() else { return };
    let (model, _) = greedy();
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let _worker = place.worker(&[]);
    until("they talk", || model.count() > 1);
    place.run(&["pause", &id], 0);
    until("its worker has released it", || place.cluster().1.is_empty());
    let before = model.count();
    place.run(&["resume", &id, "--detach", "--budget-calls", "research=3"], 0);
    until("it has reached it", || place.all(1, |state| state.contains("the shared budget `research`")));
    until("nothing is drawn", || budgets(&place).iter().all(|row| row["drawn"]["calls"] == 0));
    assert_eq!(model.count(), before + 3);
    let found = budgets(&place);
    assert_eq!(
        (&found[0]["budget"], &found[0]["used"]["calls"]),
        (&"research".into(), &3.into()),
        "{found:?}"
    );
    // What is said then is true of a budget that processes share, and continues it.
    let refused = place.run(&["resume", &id, "--detach"], 3);
    let said =
        (refused.err.contains("--budget-calls research=6"), refused.err.contains("neither a higher limit"));
    assert_eq!(said, (true, false), "{}", refused.err);
    // The worker that has used it, and has had nothing to report since, pays by the higher limit.
    place.run(&["resume", &id, "--detach", "--budget-calls", "research=5"], 0);
    until("it has used the rest", || model.count() == before + 5);
    until("it has reached it again", || place.all(1, |state| state.contains("the limit of 5 model calls")));
    // One of the process that hands it over alone would have no effect.
    for budget in [["--budget-calls", "3"], ["--budget-time", "1h"]] {
        let refused = place.run(&[&["resume", &id, "--detach"], &budget[..]].concat(), 2);
        assert!(
            refused.err.contains("a budget without a name has no effect with `--detach`"),
            "{}",
            refused.err
        );
    }
}

/// Its worker has nothing to report meanwhile, and would read the budget again seconds later.
#[test]
fn a_budget_that_is_raised_while_a_call_is_in_flight_counts_for_the_next_one() {
    let Some(server) = PostgresServer::start() else { return };
    let gate = PieceGate::new();
    let held = gate.clone();
    let book = Playbook::new(move |_, nth| {
        let answer = Answer::text("Go on.");
        if nth == 1 { answer.gated(&held) } else { answer }
    });
    let model = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), Behavior::from(book)).unwrap();
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    place.detach(&["team.yaml", "--model", "openai:test", "--budget-calls", "team=2"]);
    let worker = place.worker(&[]);
    until("the last call that it allows is in flight", || model.count() == 2);
    // As a command with `--budget-calls team=4` does.
    let raised = server.sql("UPDATE polylogue.budgets SET max_calls = 4 RETURNING name");
    assert!(raised.contains("team"), "{raised}");
    gate.lift();
    until("it has reached the limit", || place.all(1, |state| state.contains("the shared budget `team`")));
    assert!(place.all(1, |state| state.contains("the limit of 4 model calls")), "{}", worker.log());
    assert_eq!(model.count(), 4);
}

/// Two batches on one budget never pass it together, and continue under a larger one.
#[test]
fn batches_are_paid_by_a_budget_that_they_share() {
    const MOST: u64 = 60_000;
    let Some(server) = PostgresServer::start() else { return };
    let (model, used) = greedy();
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    place.file("one.csv", "id,task\na,Talk of apples.\nb,Talk of bees.\nc,Talk of cats.\n");
    place.file("two.csv", "id,task\nd,Talk of dogs.\ne,Talk of eels.\n");
    let batch = |name: &str, most: u64| {
        let (rows, output, budget) = (format!("{name}.csv"), format!("{name}.jsonl"), format!("team={most}"));
        let mut batch = place.command(&["batch", "team.yaml", "--model", "openai:test"]);
        batch.args(["--over", &rows, "--output", &output, "--budget-tokens", &budget]);
        batch
    };
    let together = ["one", "two"]
        .map(|name| batch(name, MOST).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    for process in together {
        let output = process.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("the shared budget `team` has reached the limit of 60000 tokens"), "{said}");
    }
    let (sent, found) = (used.load(Ordering::Relaxed), budget(&place));
    let spent = found["used"]["tokens"].as_u64().unwrap();
    println!("{sent} tokens were used, {spent} of {MOST} are counted");
    assert!(sent <= MOST && (MOST * 9 / 10..=MOST).contains(&spent), "{sent} used, {found}");
    assert_eq!((&found["drawn"]["tokens"], &found["processes"]), (&0.into(), &0.into()), "{found}");
    assert_eq!(found["conversations"], 5, "{found}");
    // Run again under the same limit, they find it reached and make no call; under a higher one, they continue.
    let again = batch("two", MOST).output().unwrap();
    assert_eq!((again.status.code(), used.load(Ordering::Relaxed)), (Some(4), sent));
    let more = batch("one", MOST + 20_000).output().unwrap();
    assert_eq!(more.status.code(), Some(4), "{}", String::from_utf8_lossy(&more.stderr));
    let more = budget(&place)["used"]["tokens"].as_u64().unwrap();
    assert!((MOST + 1..=MOST + 20_000).contains(&more), "{more}");
}

/// What is counted of the days of the only token with a budget, of which there are two if it is midnight: the names, and the tokens.
fn of_days(place: &Place) -> (Vec<String>, u64) {
    let days = budgets(place).into_iter().map(|row| {
        let name = row["budget"].as_str().unwrap().to_owned();
        assert!(name.starts_with("@token:"), "{row}");
        (name, row["used"]["tokens"].as_u64().unwrap())
    });
    let (names, used): (Vec<String>, Vec<u64>) = days.unzip();
    (names, used.iter().sum())
}

/// Servers with one database never pass the budget of a token together, though one of them is killed, and another token that continues a
/// conversation pays for itself.
#[test]
fn servers_share_the_budget_of_a_token_for_a_day() {
    const MOST: u64 = 100_000;
    const PATH: &str = "/api/v1/conversations";
    let Some(server) = PostgresServer::start() else { return };
    let (model, used) = greedy();
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    let token = |args: &[&str]| place.run(&[&["token", "new"], args].concat(), 0).out.trim().to_owned();
    let bounded = token(&["bounded", "--tokens-per-day", &MOST.to_string()]);
    let free = token(&["free"]);
    let serve = |output: &str| {
        let serve = ["serve", "team.yaml", "--model", "openai:test", "--listen", "127.0.0.1:0"];
        (place.begin(&serve, output), Client::of(&place, bounded.clone(), output))
    };
    let ((killed, first), (_second, other)) = (serve("one"), serve("two"));
    let mut ids = Vec::new();
    for client in [&first, &other, &first, &other, &first, &other] {
        let (status, begun) = client.post(PATH, &json!({"team": "team"}));
        assert_eq!(status, 201, "{begun}");
        ids.push(begun["id"].as_str().unwrap().to_owned());
    }
    until("they talk", || used.load(Ordering::Relaxed) > MOST / 4);
    kill(&server, killed);
    let (_third, _) = serve("three");
    until("all have ended", || place.all(6, |state| state.contains("the token has reached the limit")));
    until("nothing is drawn", || budgets(&place).iter().all(|row| row["drawn"]["tokens"] == 0));
    let sent = used.load(Ordering::Relaxed);
    let (names, spent) = of_days(&place);
    println!("{sent} tokens were used, {spent} of {MOST} are counted for {names:?}");
    let (days, logged) = (names.len() as u64, of_logs(&place, &ids).tokens);
    assert!(sent <= MOST * days && spent <= MOST * days && spent >= MOST * 9 / 10, "{sent}, {spent}");
    assert!((sent..=logged).contains(&spent), "{sent} of {spent} of {logged}");
    let (status, refused) = other.post(PATH, &json!({"team": "team"}));
    assert!(days > 1 || status == 429 && refused["type"] == "/problems/budget-spent", "{refused}");
    // A token without a budget continues one of them, until it is stopped.
    let free = Client::of(&place, free, "two");
    let one = format!("{PATH}/{}", ids[0]);
    assert_eq!(free.post(&format!("{one}/resume"), &json!({})).0, 202);
    until("it continues", || used.load(Ordering::Relaxed) > sent);
    assert_eq!(free.post(&format!("{one}/stop"), &json!({"when": "now"})).0, 202);
    until("it has stopped", || place.all(6, |state| state != "running"));
    until("it is counted", || of_logs(&place, &ids).tokens > logged);
    assert_eq!(of_days(&place).1, spent, "it is not spent of the budget");
    // What was changed, as by a restored backup, is counted again.
    let _ =
        server.sql("UPDATE polylogue.budgets SET tokens = 7; UPDATE polylogue.budget_logs SET tokens = 3");
    for name in &names {
        let recount = place.run(&["cluster", "--recount", name, "--json"], 0).lines().remove(0);
        assert_eq!((&recount["running"], &recount["uncertain"]), (&0.into(), &json!([])), "{recount}");
    }
    assert_eq!(of_days(&place).1, spent, "what another token has used is not counted");
}
