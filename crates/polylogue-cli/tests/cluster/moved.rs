//! W46: conversations that are moved to another version of their team.

use polylogue_test::postgres::PostgresServer;

use crate::commands::TALK;
use crate::place::{Place, of_type, until};

#[test]
fn a_conversation_is_moved_to_another_version_of_its_team_and_what_cannot_work_is_refused() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    place.file("team.yaml", TALK);
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
    assert_eq!(place.events(&id), events);
}
