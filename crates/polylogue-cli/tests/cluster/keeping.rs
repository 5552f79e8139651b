//! W47: conversations that are archived and removed by commands.

use polylogue_test::postgres::PostgresServer;

use crate::commands::TALK;
use crate::place::{Place, of_type};
use polylogue_test::teams::OFFICE;

#[test]
fn an_archived_conversation_is_shown_verified_forked_continued_and_removed() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    place.run(&["run", "team.yaml"], 0);
    let open = place.detach(&["team.yaml"]);
    let listed = place.run(&["runs", "--json", "--state", "done"], 0).lines();
    let id = listed[0]["id"].as_str().unwrap();
    let before = place.events(id);
    // One that has not ended is left out.
    assert_eq!(place.run(&["archive", "--older-than", "0s"], 0).out, format!("archived {id}\n"));
    assert_eq!(place.run(&["archive", "--older-than", "30d"], 0).out, "");
    // Nothing is packed again, such as each night.
    assert_eq!(place.run(&["archive", "--older-than", "0s"], 0).out, "");
    let listed = place.run(&["runs", "--json"], 0).lines();
    let archived: Vec<bool> = listed.iter().map(|row| row["archived"] == true).collect();
    assert_eq!(archived, [false, true], "{listed:?}");
    let refused = place.run(&["archive", &open], 1);
    let (why, hint) = (format!("`{open}` waits for a worker"), format!("`polylogue cancel {open}`"));
    assert!(refused.err.contains(&why) && refused.err.contains(&hint), "{}", refused.err);
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
}

/// One that a process has open is left out, and the others are archived and removed.
#[test]
fn old_conversations_are_archived_and_removed_but_for_those_in_use() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    for _ in 0..3 {
        place.run(&["run", "team.yaml"], 0);
    }
    // Neither the first nor the last of them.
    let ids = place.run(&["runs", "--json"], 0).lines();
    let used = ids[1]["id"].as_str().unwrap();
    let _ = server.sql(&format!(
        "UPDATE polylogue.logs SET holder = 'another', lease = now() + interval '1 hour' WHERE id = '{used}'"
    ));
    for (command, done) in [("archive", "archived "), ("rm", "removed ")] {
        let ran = place.run(&[command, "--older-than", "0s"], 0);
        assert_eq!(ran.out.matches(done).count(), 2, "{}", ran.out);
        assert!(ran.err.contains(&format!("`{used}` is left out: it is in use by ")), "{}", ran.err);
        // By its id, it is an error.
        place.run(&[command, used], 1);
    }
    assert_eq!(place.run(&["runs", "--json"], 0).lines().len(), 1);
}

/// By their age, one that is damaged keeps no other from being archived, and one that another machine removes at the same time is not missed.
#[test]
fn old_conversations_are_archived_and_removed_though_one_is_damaged_or_gone() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    place.file("team.yaml", TALK);
    for _ in 0..3 {
        place.run(&["run", "team.yaml"], 0);
    }
    let ids = place.run(&["runs", "--json"], 0).lines();
    let [newest, damaged, oldest] = [0, 1, 2].map(|row| ids[row]["id"].as_str().unwrap());
    let _ = server.sql(&format!(
        "UPDATE polylogue.events SET json = json || ' ' WHERE seq = 1 AND log = (SELECT nr FROM polylogue.logs WHERE id = '{damaged}')"
    ));
    let ran = place.run(&["archive", "--older-than", "0s"], 0);
    assert_eq!(ran.out, format!("archived {newest}\narchived {oldest}\n"));
    assert!(ran.err.contains(&format!("`{damaged}` is left out: it is damaged (")), "{}", ran.err);
    place.run(&["archive", damaged], 1);
    // Another machine has removed the second one when the first one is gone.
    let _ = server.sql(&format!(
        "CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            DELETE FROM polylogue.logs WHERE id = '{damaged}';
            RETURN NULL;
        END $$;
        CREATE TRIGGER other AFTER DELETE ON polylogue.logs FOR EACH ROW EXECUTE FUNCTION other()"
    ));
    let ran = place.run(&["rm", "--older-than", "0s"], 0);
    assert_eq!(ran.out, format!("removed {newest}\nremoved {oldest}\n"));
    assert!(!ran.err.contains("left out"), "{}", ran.err);
}

#[test]
fn a_conversation_in_a_file_is_archived_unpacked_and_removed_and_one_in_a_folder_is_not_archived() {
    let place = Place::new("runs.db").with_team(TALK);
    place.run(&["run", "team.yaml"], 0);
    let id = place.run(&["runs", "--json"], 0).lines()[0]["id"].as_str().unwrap().to_owned();
    let before = place.events(&id);
    assert_eq!(place.run(&["archive", "--older-than", "0s"], 0).out, format!("archived {id}\n"));
    assert_eq!(place.run(&["archive", "--older-than", "0s"], 0).out, "", "nothing is packed again");
    assert_eq!(place.events(&id), before);
    place.run(&["verify", &id], 0);
    assert_eq!(place.run(&["archive", &id, "--unpack"], 0).out, format!("unpacked {id}\n"));
    assert_eq!(place.run(&["archive", "last"], 0).out, format!("archived {id}\n"));
    let _ = place.command(&["resume", &id, "And now?"]).output().unwrap();
    assert_eq!(place.events(&id)[..before.len()], before, "a message continues it");
    assert_eq!(place.run(&["rm", "--older-than", "30d"], 0).out, "");
    place.run(&["archive", "--older-than", "3d", "--unpack"], 2);
    place.run(&["rm", &id], 0);
    assert_eq!(place.run(&["runs", "--json"], 0).out, "");
    let folder = Place::new("runs/").with_team(TALK);
    folder.run(&["run", "team.yaml"], 0);
    let refused = folder.run(&["archive", "last"], 2);
    let why = "cannot be archived";
    assert!(refused.err.contains(why) && refused.err.contains("hint: "), "{}", refused.err);
}

/// `--older-than` means what neither runs nor waits, also what has failed or was cancelled; `--all` also what waits.
#[test]
fn old_conversations_that_wait_are_kept_unless_all_are_meant() {
    let server = PostgresServer::start();
    for store in server.iter().map(PostgresServer::url).chain([String::from("runs.db")]) {
        let place = Place::new(&store).with_team(TALK);
        place.file("fails.yaml", &TALK.replace(", {Bob: Hi.}", ""));
        place.file("office.yaml", OFFICE);
        let newest = || place.run(&["runs", "--json"], 0).lines()[0]["id"].as_str().unwrap().to_owned();
        let run = |file: &str, exit: i32| {
            place.run(&["run", file], exit);
            newest()
        };
        let (done, failed) = (run("team.yaml", 0), run("fails.yaml", 1));
        let (waiting, paused) = (run("office.yaml", 5), run("office.yaml", 5));
        place.run(&["pause", &paused], 0);
        let (queued, cancelled) = (place.detach(&["team.yaml"]), place.detach(&["team.yaml"]));
        place.run(&["cancel", &cancelled], 0);
        assert_eq!(place.run(&["rm", "--older-than", "30d", "--all"], 0).out, "", "none is so old");
        let named = |args: &[&str], word: &str| {
            let ran = place.run(args, 0);
            let mut ids: Vec<String> =
                ran.out.lines().map(|line| line.strip_prefix(word).unwrap().trim().to_owned()).collect();
            ids.sort_unstable();
            ids
        };
        let sorted = |ids: &[&String]| {
            let mut ids: Vec<String> = ids.iter().map(|id| (*id).clone()).collect();
            ids.sort_unstable();
            ids
        };
        let resting = sorted(&[&done, &failed, &cancelled]);
        assert_eq!(named(&["archive", "--older-than", "0s"], "archived"), resting, "{store}");
        assert_eq!(named(&["rm", "--older-than", "0s"], "removed"), resting, "{store}");
        let noted = place.run(&["archive", "--older-than", "0s", "--all"], 0).err;
        let left_out = format!("`{queued}` is left out: it waits for a worker");
        assert!(noted.contains(&left_out), "{store}: {noted}");
        let all = sorted(&[&waiting, &paused, &queued]);
        assert_eq!(named(&["rm", "--older-than", "0s", "--all"], "removed"), all, "{store}");
        place.run(&["rm", &queued, "--all"], 2);
    }
}
