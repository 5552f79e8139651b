//! W23 to W25 and W28: what people say, on a machine that does not run the conversation.

use std::time::Duration;

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};

use crate::place::{Place, of_type, until};

/// A person and a bot, in a chat within a chat.
const OFFICE: &str = r#"
name: office
task: Decide.
agents:
  - {name: Kim, human: true, description: The boss.}
  - {name: Bot, system: You are Bot.}
chat: {pattern: sequential, participants: [meeting], summary: last}
chats:
  - {name: meeting, participants: [Bot, Kim], stop: {max_turns: 4, says: {text: agreed, by: Kim}}}
script:
  - Bot: Shall we?
  - Bot: Then not.
  - Bot: As you wish.
"#;

fn is_waiting(place: &Place, id: &str) -> bool {
    place.run(&["waiting", "--json"], 0).out.contains(id)
}

/// W23, W24: an answer reaches a conversation that no process runs, once, and a worker continues it.
#[test]
fn an_answer_wakes_a_conversation_that_waits_and_counts_once() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    place.file("team.yaml", OFFICE);
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

/// W25: the default answer of a question counts when its time is up, though no process runs the conversation.
#[test]
fn a_question_whose_time_is_up_is_answered_by_its_default() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    let team = OFFICE.replace(
        "description: The boss.",
        "description: The boss., default_answer: {timeout: 3 s, text: agreed}",
    );
    place.file("team.yaml", &team);
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
}

const TALK: &str = "
name: talk
task: Talk.
agents: [{name: Ann, system: You are Ann.}, {name: Bob, system: You are Bob.}]
chat: {participants: [Ann, Bob], stop: {max_turns: 40}, loop_detection: off}
";

fn slow(latency: Duration) -> Server {
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
    let place = Place::new(&server.url()).with_model(&model);
    place.file("team.yaml", TALK);
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
    // At most the turn that had begun does not know it.
    assert!(said(&events[sent..]).iter().skip(1).all(|heard| *heard), "{:?}", said(&events[sent..]));
}
