//! W23: what a person answers is taken once, whatever state a conversation is in, from a process that does not run it.

use std::time::Duration;

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use rustix::process::Signal;

use crate::place::{Place, expire, of_type, until};

/// Kim is asked while the model of Bot replies.
const BOARD: &str = "
name: board
task: Decide.
agents:
  - {name: Kim, human: true, description: The boss.}
  - {name: Bot, system: You are Bot.}
chat: {pattern: parallel, participants: [Kim, Bot]}
";

/// A model that takes `latency` for each reply.
fn model(latency: Duration) -> Server {
    let behavior = Behavior::from(Playbook::new(|_, _| Answer::text("I agree."))).latency(latency);
    Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap()
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
        let is_slow = ["held", "lost"].contains(&wanted);
        let model = model(Duration::from_secs(if is_slow { 10 } else { 0 }));
        let place = Place::new(&server.url()).with_model(&model);
        let limit = if wanted == "timed" { ", default_answer: {timeout: 600 s, text: No.}" } else { "" };
        place.file("team.yaml", &BOARD.replace("The boss.", &format!("The boss.{limit}")));
        let id = place.detach(&["team.yaml", "--model", "openai:test"]);
        let mut worker = place.worker(&[]);
        until("Kim is asked", || of_type(&place.events(&id), "input_required").len() == 1);
        until("Bot is asked, too", || model.most_at_once() == 1);
        if !is_slow {
            let rest = if wanted == "timed" { "timed" } else { "idle" };
            until("its worker has released it", || state(&place, &id) == rest);
        }
        let worker = match wanted {
            "ready" => {
                worker.signal(Signal::TERM);
                assert_eq!(worker.end(), 0, "{}", worker.log());
                let _ = server.sql(&format!("UPDATE polylogue.logs SET due = now() WHERE id = '{id}'"));
                None
            }
            "lost" => {
                expire(&server, worker.kill());
                None
            }
            _ => Some(worker),
        };
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
