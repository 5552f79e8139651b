//! W46: conversations that are moved to another version of their team.

use std::time::Duration;

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};

use crate::commands::TALK;
use crate::needs::needs;
use crate::place::{Place, of_type, until};

const NO_BOUND: &str = "the maximum computed before the run no longer applies";

#[test]
fn a_conversation_is_moved_to_another_version_of_its_team_and_what_cannot_work_is_refused() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    place.file("new.yaml", &TALK.replace("Hello!", "Good day!").replace("You are brief.", "You are polite."));
    place.file("other.yaml", &TALK.replace("Bob", "Carol"));
    let id = place.detach(&["team.yaml", "--max-turns", "1"]);
    for (team, exit, what) in [
        ("other.yaml", 0, "continues with"),
        ("team.yaml", 0, "continues with"),
        ("team.yaml", 0, "nothing is done"),
        ("gone.yaml", 2, "gone.yaml"),
        ("new.yaml", 0, "agent `Ann`: `system`"),
    ] {
        let moved = place.run(&["move", &id, "--team", team], exit);
        assert!(moved.err.contains(what), "{team}: {}", moved.err);
        let is_moved = exit == 0 && what != "nothing is done";
        assert_eq!(moved.err.contains(NO_BOUND), is_moved, "{team}: {}", moved.err);
    }
    // A worker continues it, because it was handed over before, with the team that it has now.
    let worker = place.worker(&[]);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
    let events = place.events(&id);
    let moves = of_type(&events, "team_changed");
    assert_eq!(moves.len(), 3, "{moves:?}");
    assert!(moves[2]["changes"].to_string().contains("You are polite."), "{}", moves[2]["changes"]);
    assert_eq!(of_type(&events, "message")[0]["parts"][0]["text"], "Good day!");
    drop(worker);
    // Its participants are in the log now.
    let refused = place.run(&["move", &id, "--team", "other.yaml"], 2);
    assert!(refused.err.contains("cannot continue with `talk`, which has no `Bob`"), "{}", refused.err);
    assert!(refused.err.contains("hint: keep `Bob`"), "{}", refused.err);
    assert!(!refused.err.contains(NO_BOUND), "{}", refused.err);
    assert_eq!(place.events(&id), events);
}

/// A worker releases what a person pauses, so that it can be moved, and continues it when it is handed over again.
#[test]
fn a_conversation_that_a_worker_runs_is_paused_moved_and_continued() {
    let Some(server) = PostgresServer::start() else { return };
    let book = Playbook::new(|received, _| {
        Answer::text(if received.body.to_string().contains("polite") { "Good day!" } else { "Hello!" })
    });
    let behavior = Behavior::from(book).latency(Duration::from_millis(300));
    let model = Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap();
    let place = Place::new(&server.url()).with_model(&model);
    let team = "
name: talk
task: Talk.
agents: [{name: Ann, system: You are brief.}, {name: Bob, system: You are briefer.}]
chat: {participants: [Ann, Bob], stop: {max_turns: 200}, loop_detection: off}
";
    place.file("team.yaml", team);
    place.file("new.yaml", &team.replace("brief.", "polite.").replace("200", "6"));
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let _worker = place.worker(&["--at-once", "1"]);
    let said = || of_type(&place.events(&id), "message").len();
    until("it runs", || said() > 1);
    let refused = place.run(&["move", &id, "--team", "new.yaml"], 1);
    assert!(refused.err.contains(&format!("`polylogue pause {id}`")), "{}", refused.err);
    place.run(&["pause", &id], 0);
    until("its worker has released it", || place.cluster().1.is_empty());
    // The only place of the worker is free.
    place.file("other.yaml", TALK);
    let other = place.detach(&["other.yaml"]);
    until("another one has run", || of_type(&place.events(&other), "closed").len() == 1);
    let before = place.events(&id);
    let paused = before.iter().position(|event| event["type"] == "paused").unwrap();
    assert!(of_type(&before[paused..], "turn_started").is_empty(), "{before:?}");
    place.run(&["move", &id, "--team", "new.yaml"], 0);
    place.run(&["resume", &id, "--detach"], 0);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
    let events = place.events(&id);
    assert_eq!(events[..before.len()], before);
    let after = &events[before.len()..];
    assert!(
        of_type(after, "message").iter().all(|message| message["parts"][0]["text"] == "Good day!"),
        "{after:?}"
    );
    assert_eq!((of_type(after, "team_changed").len(), of_type(after, "resumed").len()), (1, 1));
}

/// A conversation that is moved needs what its new team needs, whether it is ready or paused, besides what was said.
#[test]
fn a_conversation_that_is_moved_needs_what_its_new_team_needs() {
    let Some(server) = PostgresServer::start() else { return };
    let book = Playbook::new(|_, _| Answer::text("Hello!"));
    let behavior = Behavior::from(book).latency(Duration::from_millis(100));
    let model = Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap();
    let place = Place::new(&server.url()).with_model(&model).with_var("ANTHROPIC_API_KEY", "test");
    let team = |model: &str| {
        format!(
            "
name: talk
task: Talk.
agents: [{{name: Ann, system: a, model: \"{model}\"}}, {{name: Bob, system: b, model: \"{model}\"}}]
chat: {{participants: [Ann, Bob], stop: {{max_turns: 200}}, loop_detection: off}}
"
        )
    };
    place.file("openai.yaml", &team("openai:test"));
    place.file("anthropic.yaml", &team("anthropic:claude-sonnet-4-5"));
    let id = place.detach(&["openai.yaml"]);
    let mut worker = place.worker(&[]);
    until("they talk", || model.count() > 1);
    place.run(&["pause", &id], 0);
    until("its worker has released it", || place.cluster().1.is_empty());
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.end(), 0);
    place.run(&["move", &id, "--team", "anthropic.yaml"], 0);
    place.run(&["resume", &id, "--detach", "--needs", "gpu"], 0);
    assert_eq!(needs(&place, &id), "gpu key:anthropic");
    place.run(&["move", &id, "--team", "openai.yaml"], 0);
    assert_eq!(needs(&place, &id), "gpu key:openai");
    place.run(&["resume", &id, "--detach", "--needs", "browser"], 0);
    assert_eq!(needs(&place, &id), "browser key:openai");
}
