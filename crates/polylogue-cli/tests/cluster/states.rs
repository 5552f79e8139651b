//! W23: what a person answers is taken once, whatever state a conversation is in, from a process that does not run it.

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use rustix::process::Signal;

use crate::place::{Place, of_type, until};

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
