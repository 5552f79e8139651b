//! W47: conversations that are archived and removed by commands.

use polylogue_test::postgres::PostgresServer;

use crate::commands::TALK;
use crate::place::{Place, of_type};

#[test]
fn an_archived_conversation_is_shown_verified_forked_continued_and_removed() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    place.file("team.yaml", TALK);
    place.run(&["run", "team.yaml"], 0);
    let open = place.detach(&["team.yaml"]);
    let listed = place.run(&["runs", "--json", "--state", "done"], 0).lines();
    let id = listed[0]["id"].as_str().unwrap();
    let before = place.events(id);
    // One that has not ended is left out.
    assert_eq!(place.run(&["archive", "--older-than", "0s"], 0).out, format!("archived {id}\n"));
    assert_eq!(place.run(&["archive", "--older-than", "30d"], 0).out, "");
    let refused = place.run(&["archive", &open], 1);
    assert!(refused.err.contains("the queue of workers"), "{}", refused.err);
    assert_eq!(place.events(id), before);
    place.run(&["verify", id], 0);
    let fork = place.run(&["fork", id], 0).out.trim().to_owned();
    assert_eq!(of_type(&place.events(&fork), "message").len(), 2);
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.archives"), "1", "reading unpacks nothing");
    // Its script has nothing more to say.
    let _ = place.command(&["resume", id, "And now?"]).output().unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.archives"), "0", "a message does");
    assert_eq!(place.events(id)[..before.len()], before);
    place.run(&["rm", "--older-than", "0s"], 0);
    let left = place.run(&["runs", "--json"], 0).out;
    assert!(left.contains(&open) && !left.contains(&fork), "{left}");
    for args in
        [&["rm"][..], &["archive", "last", "--older-than", "3d"], &["archive", "--older-than", "soon"]]
    {
        place.run(args, 2);
    }
    let file = Place::new("runs.db");
    file.file("team.yaml", TALK);
    file.run(&["run", "team.yaml"], 0);
    let refused = file.run(&["archive", "last"], 2);
    assert!(
        refused.err.contains("cannot be archived") && refused.err.contains("hint: Postgres can"),
        "{}",
        refused.err
    );
}
