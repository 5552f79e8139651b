//! States of conversations. W23: what a person answers is taken once, whatever state a conversation is in, from a process that does not run it.

use std::time::Duration;

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use rustix::process::Signal;

use crate::answers::slow;
use crate::commands::TALK;
use crate::live::Client;
use crate::place::{Place, expire, of_type, until};

/// Kim is asked, and Bot speaks at the same time.
const BOARD: &str = "
name: board
task: Decide.
agents:
  - {name: Kim, human: true, description: The boss.}
  - {name: Bot, system: You are Bot.}
chat: {pattern: parallel, participants: [Kim, Bot]}
";

/// A process that has claimed a conversation, appends nothing, and is gone. Its lease ends `after` an interval of Postgres.
fn claim_by_another(server: &PostgresServer, id: &str, after: &str) {
    let end = format!("now() + interval '{after}'");
    let _ = server.sql(&format!(
        "UPDATE polylogue.logs SET holder = 'another', lease = {end}, lease_nr = 0, due = greatest(now(), {end})
         WHERE id = '{id}'"
    ));
}

/// What `cluster` says of a conversation. It says nothing of one that is idle.
fn state(place: &Place, id: &str) -> String {
    let (_, logs) = place.cluster();
    let log = logs.iter().find(|log| log["id"] == id);
    log.map_or_else(|| "idle".to_owned(), |log| log["state"].as_str().unwrap().to_owned())
}

#[test]
fn an_answer_is_taken_once_whatever_the_state_of_its_conversation() {
    let Some(server) = PostgresServer::start() else { return };
    for wanted in ["idle", "timed", "ready", "held", "lost"] {
        let replies = Behavior::from(Playbook::new(|_, _| Answer::text("I agree.")));
        let model = Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), replies).unwrap();
        let place = Place::new(&server.url()).with_model(&model);
        let limit = if wanted == "timed" { ", default_answer: {timeout: 600 s, text: No.}" } else { "" };
        place.file("team.yaml", &BOARD.replace("The boss.", &format!("The boss.{limit}")));
        let id = place.detach(&["team.yaml", "--model", "openai:test"]);
        let mut worker = place.worker(&[]);
        until("Kim is asked", || of_type(&place.events(&id), "input_required").len() == 1);
        let rest = if wanted == "timed" { "timed" } else { "idle" };
        until("its worker has released it", || state(&place, &id) == rest);
        // What waits for a worker is looked at before one is there.
        let worker = if ["ready", "lost"].contains(&wanted) {
            worker.signal(Signal::TERM);
            assert_eq!(worker.end(), 0, "{}", worker.log());
            None
        } else {
            Some(worker)
        };
        match wanted {
            "ready" => drop(server.sql(&format!("UPDATE polylogue.logs SET due = now() WHERE id = '{id}'"))),
            "held" => claim_by_another(&server, &id, "5 seconds"),
            "lost" => claim_by_another(&server, &id, "-2 minutes"),
            _ => {}
        }
        assert_eq!(state(&place, &id), wanted);
        // From another machine, which has neither the team nor the model.
        Place::new(&server.url()).run(&["answer", &id, "Yes."], 0);
        let worker = worker.unwrap_or_else(|| place.worker(&[]));
        until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
        until("nothing waits", || place.cluster().1.is_empty());
        let events = place.events(&id);
        let answers = of_type(&events, "input_provided");
        let [answer] = answers.as_slice() else { panic!("{wanted}: {answers:?}\n{}", worker.log()) };
        assert_eq!(answer["text"], "Yes.", "{wanted}: {answer}");
        let spoken =
            |who: &str| of_type(&events, "message").iter().filter(|said| said["from"] == who).count();
        assert_eq!((spoken("Kim"), spoken("Bot")), (1, 1), "{wanted}: {events:?}");
    }
}

/// The state of the newest conversation, as `runs` and the server have it: the words for programs, and those for people.
fn listed(place: &Place, client: &Client) -> [String; 3] {
    let listed = place.run(&["runs", "--json", "--limit", "1"], 0).lines().remove(0);
    let id = listed["id"].as_str().unwrap();
    let served = client.document(&format!("/api/v1/conversations/{id}"));
    // Also where its events do not say it yet.
    assert_eq!((&listed["task"], &served["task"]), (&"Say hello.".into(), &"Say hello.".into()), "{served}");
    let present = if served["state"] == "halted" { &served["halted"] } else { &served["state"] };
    [&listed["state"], present, &listed["status"]].map(|word| word.as_str().unwrap_or_default().to_owned())
}

#[test]
fn lists_say_which_conversations_run_and_why_others_do_not() {
    let Some(server) = PostgresServer::start() else { return };
    let model = slow(Duration::from_hours(1));
    let place = Place::new(&server.url()).with_model(&model).with_team(TALK);
    let (_front, client) = Client::of_server(&place, &[]);
    let is = |word: &str, text: &str| assert_eq!(listed(&place, &client), [word, word, text]);
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    is("queued", "waiting for a worker");
    let worker = place.worker(&[]);
    until("the model is called", || model.count() == 1);
    is("running", "running");
    place.run(&["cancel", &id, "--now"], 0);
    until("it is idle", || place.cluster().1.is_empty());
    is("cancelled", "cancelled");
    place.run(&["resume", &id, "--detach"], 0);
    until("the model is called again", || model.count() == 2);
    is("running", "running");
    expire(&server, worker.kill());
    is("queued", "waiting for a worker");
    // No worker continues this one.
    let run = place.begin(&["run", "team.yaml", "--model", "openai:test"], "run.out");
    until("the model is called once more", || model.count() == 3);
    is("running", "running");
    expire(&server, run.kill());
    is("interrupted", "interrupted");
    // One that no worker will begin.
    let other = place.detach(&["team.yaml"]);
    place.run(&["cancel", &other], 0);
    is("new", "not begun");
}
