//! W23 to W28: what people say, on a machine that does not run the conversation.

use std::time::{Duration, UNIX_EPOCH};

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use polylogue_test::teams::OFFICE;
use rustix::process::Signal;
use serde_json::json;

use crate::commands::TALK as SCRIPTED;
use crate::live::Client;
use crate::place::{Place, WorkerProcess, expire, number, of_type, until};

fn is_waiting(place: &Place, id: &str) -> bool {
    place.run(&["waiting", "--json"], 0).out.contains(id)
}

/// W23, W24: an answer reaches a conversation that no process runs, once, and a worker continues it.
#[test]
fn an_answer_wakes_a_conversation_that_waits_and_counts_once() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(OFFICE);
    let id = place.detach(&["team.yaml"]);
    let _workers = [place.worker(&[]), place.worker(&[])];
    until("Kim is asked", || is_waiting(&place, &id));
    until("it is idle", || place.cluster().1.is_empty());
    // Two people at once: one answer counts.
    let answer = |text: &'static str| {
        let mut command = place.command(&["answer", &id, text]);
        std::thread::spawn(move || command.output().unwrap().status.code().unwrap())
    };
    let (one, other) = (answer("Why not?"), answer("Never."));
    let mut exits = [one.join().unwrap(), other.join().unwrap()];
    exits.sort_unstable();
    assert_eq!(exits[0], 0, "one of them counts");
    until("Kim is asked again", || {
        of_type(&place.events(&id), "input_required").len() == 2 && place.cluster().1.is_empty()
    });
    let events = place.events(&id);
    // The slower one is refused, or answered the next question.
    let answers = of_type(&events, "input_provided").len();
    assert_eq!(answers, 1, "{exits:?}: {events:?}");
    assert_eq!(exits[1], 2, "the other one is refused");
    place.run(&["answer", &id, "agreed"], 0);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 2);
}

/// A conversation that was handed over, and waits for a person since a process without workers has run it, waits for no worker; on one
/// machine as in a cluster.
#[test]
fn a_conversation_that_was_run_here_until_it_waits_for_a_person_is_not_ready() {
    let server = PostgresServer::start();
    for store in server.iter().map(PostgresServer::url).chain([String::from("runs.db")]) {
        let place = Place::new(&store).with_team(OFFICE);
        let id = place.detach(&["team.yaml"]);
        assert_eq!(place.cluster().1[0]["state"], "ready", "{store}");
        let ran = place.command(&["resume", &id]).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(is_waiting(&place, &id), "{store}: {said}");
        assert_eq!(place.cluster().1, Vec::<serde_json::Value>::new(), "{store}: {said}");
        // An answer has a worker continue it.
        place.run(&["answer", &id, "agreed"], 0);
        assert_eq!(place.cluster().1[0]["state"], "ready", "{store}");
        place.run(&["worker", "--only", &id], 0);
        assert!(place.cluster().1.is_empty(), "{store}");
    }
}

/// W23: answers from processes that run nothing to conversations that no process runs: each is taken once. The time from its storing to the
/// event that takes it is printed. `POLYLOGUE_ANSWERS` says how many, and `POLYLOGUE_WORKERS` how many workers there are.
#[test]
fn answers_to_idle_conversations_are_taken_once() {
    let (count, workers) = (number("POLYLOGUE_ANSWERS", 6), number("POLYLOGUE_WORKERS", 3));
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(OFFICE);
    let ids: Vec<String> = (0..count).map(|_| place.detach(&["team.yaml"])).collect();
    let _workers: Vec<WorkerProcess> = (0..workers).map(|_| place.worker(&[])).collect();
    until("all wait", || ids.iter().all(|id| is_waiting(&place, id)) && place.cluster().1.is_empty());
    for id in &ids {
        place.run(&["answer", id, "agreed"], 0);
    }
    until("all have ended", || place.all(count, |state| state.starts_with("done")));
    let mut times: Vec<i64> = ids.iter().map(|id| taken_after(&server, &place, id)).collect();
    times.sort_unstable();
    println!(
        "stored -> taken, {count} answers, {workers} workers: p50 {}, p99 {}, most {} ms",
        times[count / 2],
        times[count * 99 / 100],
        times[count - 1]
    );
}

/// How many milliseconds after the answer was stored it was taken.
fn taken_after(server: &PostgresServer, place: &Place, id: &str) -> i64 {
    let events = place.events(id);
    let answers = of_type(&events, "input_provided");
    assert_eq!(answers.len(), 1, "{events:?}");
    let sql = format!(
        "SELECT (extract(epoch FROM at) * 1000)::bigint FROM polylogue.inbox JOIN polylogue.logs ON log = logs.nr
         WHERE id = '{id}' AND inbox.nr = {}",
        answers[0]["inbox"]
    );
    answers[0]["time_ms"].as_i64().unwrap() - server.sql(&sql).parse::<i64>().unwrap()
}

/// A place for the office, whose boss agrees by default after `time`.
fn office_with_a_default_answer(server: &PostgresServer, time: &str) -> Place {
    let place = Place::new(&server.url());
    let default = format!("description: The boss., default_answer: {{timeout: {time}, text: agreed}}");
    place.file("team.yaml", &OFFICE.replace("description: The boss.", &default));
    place
}

/// W25: the default answer of a question counts when its time is up, though no process runs the conversation.
#[test]
fn a_question_whose_time_is_up_is_answered_by_its_default() {
    let Some(server) = PostgresServer::start() else { return };
    let place = office_with_a_default_answer(&server, "3 s");
    let id = place.detach(&["team.yaml"]);
    let _worker = place.worker(&[]);
    until("it waits for the time", || place.cluster().1.iter().any(|log| log["state"] == "timed"));
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 2);
    let events = place.events(&id);
    let answers = of_type(&events, "input_provided");
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(
        (&answers[0]["text"], &answers[0]["by"]),
        (&"agreed".into(), &"timeout".into()),
        "{answers:?}"
    );
    // An answer that comes late is refused, and nothing is stored.
    let late = place.run(&["answer", &id, "Never."], 2);
    assert!(late.err.contains("there is no open question"), "{}", late.err);
    assert_eq!(place.events(&id), events);
}

/// W25: answers that come when the time is about up. One answer counts, and who gave another one receives an error.
#[test]
fn of_an_answer_and_the_end_of_its_time_one_counts_and_the_person_learns_which() {
    const COUNT: usize = 6;
    let Some(server) = PostgresServer::start() else { return };
    let place = office_with_a_default_answer(&server, "4 s");
    let ids: Vec<String> = (0..COUNT).map(|_| place.detach(&["team.yaml"])).collect();
    let _workers = [place.worker(&[]), place.worker(&[])];
    until("all wait", || ids.iter().all(|id| of_type(&place.events(id), "input_required").len() == 1));
    let now = || u64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let answering = ids.iter().enumerate().map(|(nth, id)| {
        let asked = of_type(&place.events(id), "input_required")[0]["time_ms"].as_u64().unwrap();
        // Before it, and after it: a command takes some time to begin.
        let at = asked + 3700 + 200 * nth as u64;
        let mut command = place.command(&["answer", id, "agreed"]);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(at.saturating_sub(now())));
            command.output().unwrap().status.code().unwrap()
        })
    });
    let exits: Vec<i32> = answering.collect::<Vec<_>>().into_iter().map(|one| one.join().unwrap()).collect();
    until("all have ended", || place.all(COUNT, |state| state.starts_with("done")));
    for (id, exit) in ids.iter().zip(&exits) {
        let events = place.events(id);
        let answers = of_type(&events, "input_provided");
        let [answer] = answers.as_slice() else { panic!("{answers:?}") };
        assert_eq!(*exit, if answer["by"] == "timeout" { 2 } else { 0 }, "{exits:?}: {answer}");
    }
    println!("{exits:?}");
}

const TALK: &str = "
name: talk
task: Talk.
agents: [{name: Ann, system: You are Ann.}, {name: Bob, system: You are Bob.}]
chat: {participants: [Ann, Bob], stop: {max_turns: 40}, loop_detection: off}
";

/// A model that replies after this time.
pub(crate) fn slow(latency: Duration) -> Server {
    let book = Playbook::new(|received, nth| {
        let heard = received.messages().iter().any(|said| said.to_string().contains("umbrella"));
        Answer::text(if heard { format!("{nth}: I heard it.") } else { format!("{nth}: Go on.") })
    });
    Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), Behavior::from(book).latency(latency)).unwrap()
}

/// W28: a message into a conversation that a worker runs is seen from the next turn on.
#[test]
fn a_message_reaches_a_conversation_that_a_worker_runs() {
    let Some(server) = PostgresServer::start() else { return };
    let model = slow(Duration::from_millis(150));
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let _worker = place.worker(&[]);
    until("they talk", || of_type(&place.events(&id), "message").len() > 2);
    place.run(&["send", &id, "Take an umbrella."], 0);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
    let events = place.events(&id);
    let sent = events.iter().position(|event| event["type"] == "sent").unwrap();
    let said = |events: &[serde_json::Value]| {
        let said = of_type(events, "message");
        said.iter()
            .map(|said| said["parts"][0]["text"].as_str().unwrap().contains("I heard it"))
            .collect::<Vec<_>>()
    };
    assert!(!said(&events[..sent]).contains(&true));
    let after = said(&events[sent..]);
    // At most the turn that had begun does not know it.
    assert!(after.len() > 1 && after[1..].iter().all(|heard| *heard), "{after:?}");
}

/// W27 and W28, by a server that does not run the conversation.
#[test]
fn a_server_steers_a_conversation_that_a_worker_runs() {
    let Some(server) = PostgresServer::start() else { return };
    let model = slow(Duration::from_hours(1));
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    let (_front, client) = Client::of_server(&place, &[]);
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let worker = place.worker(&[]);
    until("the model is called", || model.count() == 1);
    let post = |what: &str, body: serde_json::Value| {
        let (status, said) = client.post(&format!("/api/v1/conversations/{id}/{what}"), &body);
        assert_eq!(status, 202, "{what}: {said}");
        said
    };
    let carries_out = |said: &serde_json::Value| {
        said["node"].as_str().is_some_and(|node| node.contains(&worker.id().to_string()))
    };
    let sent = post("messages", json!({"text": "Take an umbrella."}));
    assert!(carries_out(&sent), "{sent}");
    let paused = post("pause", json!({}));
    assert!(carries_out(&paused) && paused["paused"] == true, "{paused}");
    let stopped = post("stop", json!({"when": "now"}));
    assert_eq!(stopped["stopped"], true, "{stopped}");
    until("it is idle", || place.cluster().1.is_empty());
    let events = place.events(&id);
    let count = |kind| of_type(&events, kind).len();
    assert_eq!(["sent", "paused", "cancelled", "model_replied"].map(count), [1, 1, 1, 0], "{events:?}");
    assert_eq!(model.count(), 1, "neither the server nor the worker continues it");
}

/// A place at `store` with a run that was stopped by Ctrl-C, after `meanwhile`.
fn stopped_run(store: &str, model: &Server, meanwhile: impl FnOnce(&Place)) -> Place {
    let place = Place::new(store).with_model(model).with_team(TALK);
    let mut run = place.begin(&["run", "team.yaml", "--model", "openai:test"], "run.out");
    until("they talk", || model.count() > 1);
    meanwhile(&place);
    run.signal(Signal::INT);
    assert_eq!(run.end(), 6, "{store}: {}", run.log());
    place
}

/// Waits until a worker has run a conversation without a model, and so has looked at what else there is.
fn until_another_has_run(place: &Place) {
    place.file("other.yaml", SCRIPTED);
    let other = place.detach(&["other.yaml"]);
    until("another one has ended", || of_type(&place.events(&other), "closed").len() == 1);
}

/// A message that a run has taken hands nothing over: neither after Ctrl-C, nor when it has ended.
#[test]
fn a_run_that_has_taken_a_message_and_is_stopped_is_left_alone_by_workers() {
    let server = PostgresServer::start();
    for store in server.iter().map(PostgresServer::url).chain([String::from("runs.db")]) {
        let model = slow(Duration::from_millis(150));
        let place = stopped_run(&store, &model, |place| {
            place.run(&["send", "last", "Take an umbrella."], 0);
            let heard = || of_type(&place.events("last"), "message").last().unwrap()["parts"].to_string();
            until("it is heard", || heard().contains("I heard it"));
        });
        let nothing = Vec::<serde_json::Value>::new();
        assert_eq!(place.cluster().1, nothing, "{store}: nothing was handed over");
        let (calls, stopped) = (model.count(), place.run(&["runs", "--json"], 0).lines().remove(0));
        let _worker = place.worker(&[]);
        until_another_has_run(&place);
        until("nothing is run", || place.cluster().1.is_empty());
        assert_eq!(model.count(), calls, "{store}: a worker continues it");
        place.run(&["archive", stopped["id"].as_str().unwrap()], 0);
    }
}

/// What is neither a message nor an answer hands nothing over, also if it is refused.
#[test]
fn instructions_that_continue_nothing_leave_a_stopped_run_alone() {
    let server = PostgresServer::start();
    for store in server.iter().map(PostgresServer::url).chain([String::from("runs.db")]) {
        let model = slow(Duration::from_millis(150));
        let place = stopped_run(&store, &model, |_| {});
        let id = place.run(&["runs", "--json"], 0).lines()[0]["id"].as_str().unwrap().to_owned();
        let (calls, _worker) = (model.count(), place.worker(&[]));
        for instruction in [&["raise", &id, "--max-turns", "300"][..], &["next", &id, "Ann"]] {
            let given = place.command(instruction).output().unwrap();
            assert_eq!(place.cluster().1, Vec::<serde_json::Value>::new(), "{store}: {given:?}");
        }
        until_another_has_run(&place);
        assert_eq!(model.count(), calls, "{store}: a worker continues it");
        // A message does.
        place.run(&["send", &id, "Take an umbrella."], 0);
        until("a worker continues it", || model.count() > calls);
    }
}

/// Five people, in nested chats that run at the same time.
const BOARD: &str = "
name: board
task: Decide.
agents:
  - {name: Ann, human: true, description: A boss.}
  - {name: Ben, human: true, description: A boss.}
  - {name: Cid, human: true, description: A boss.}
  - {name: Dan, human: true, description: A boss.}
  - {name: Eve, human: true, description: A boss.}
chat: {pattern: parallel, participants: [left, right]}
chats:
  - {name: left, description: Three of them., pattern: parallel, participants: [Ann, Ben, Cid]}
  - {name: right, description: Two of them., pattern: parallel, participants: [Dan, Eve]}
";

/// W26: the questions are answered out of order, by other processes, and a worker is killed before each answer.
#[test]
fn five_questions_in_nested_parallel_chats_reach_their_askers() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(BOARD);
    let id = place.detach(&["team.yaml"]);
    let mut workers: Vec<WorkerProcess> = vec![place.worker(&[]), place.worker(&[])];
    let open = || {
        let rows = place.run(&["waiting", "--json"], 0).lines();
        rows.into_iter().map(|row| (row["who"].clone(), row["question"].to_string())).collect::<Vec<_>>()
    };
    until("all are asked", || open().len() == 5);
    for (nth, who) in ["Dan", "Ben", "Eve", "Ann", "Cid"].into_iter().enumerate() {
        expire(&server, workers.remove(0).kill());
        workers.push(place.worker(&[]));
        let question = open().into_iter().find(|(asker, _)| asker == who).unwrap().1;
        place.run(&["answer", &id, &question, &format!("{who} agrees.")], 0);
        until("it is taken", || of_type(&place.events(&id), "input_provided").len() == nth + 1);
    }
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 3);
    let events = place.events(&id);
    let mut said: Vec<(&str, &str)> = of_type(&events, "message")
        .iter()
        .filter_map(|said| Some((said["from"].as_str()?, said["parts"][0]["text"].as_str()?)))
        .filter(|(from, _)| ["Ann", "Ben", "Cid", "Dan", "Eve"].contains(from))
        .collect();
    said.sort_unstable();
    let wanted = ["Ann", "Ben", "Cid", "Dan", "Eve"].map(|who| (who, format!("{who} agrees.")));
    assert_eq!(said, wanted.iter().map(|(who, text)| (*who, text.as_str())).collect::<Vec<_>>());
}

/// W27: the reply of the model would come in an hour. The conversation is at rest within 11 seconds; the time is printed.
#[test]
fn cancel_now_aborts_the_model_call_of_a_conversation_that_another_process_runs() {
    let Some(server) = PostgresServer::start() else { return };
    let model = slow(Duration::from_hours(1));
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let _workers = [place.worker(&[]), place.worker(&[])];
    until("the model is called", || model.count() == 1);
    let begun = std::time::Instant::now();
    place.run(&["cancel", &id, "--now"], 0);
    let is_timed = |log: &serde_json::Value| log["state"] == "timed";
    until("it is idle", || {
        let (_, logs) = place.cluster();
        assert!(!logs.iter().any(is_timed), "it waits for nothing: {logs:?}");
        logs.is_empty()
    });
    println!("idle after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(11), "{:?}", begun.elapsed());
    let kinds = |events: &[serde_json::Value]| {
        ["cancelled", "model_replied", "failed"].map(|kind| of_type(events, kind).len())
    };
    let events = place.events(&id);
    assert_eq!(kinds(&events), [1, 0, 0], "{events:?}");
    assert_eq!(of_type(&events, "cancelled")[0]["now"], true);
    assert_eq!(model.count(), 1, "no worker continues it");
    place.run(&["resume", &id, "--detach"], 0);
    until("the model is called again", || model.count() == 2);
}
