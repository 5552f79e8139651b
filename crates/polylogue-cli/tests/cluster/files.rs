//! Files of conversations that workers run: where they are while it runs, and afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use polylogue_test::postgres::PostgresServer;

use crate::place::{Place, of_type, until};

/// Writes a file, and reads it after a message.
const WRITES: &str = "
name: writes
task: Write.
agents: [{name: Ann, tools: [write_file, read_file]}]
chat: {participants: [Ann], pattern: round_robin, stop: {max_turns: 1}}
script:
  - Ann: {calls: [{tool: write_file, args: {path: notes/a.txt, content: one}}]}
  - Ann: written
  - Ann: {calls: [{tool: read_file, args: {path: notes/a.txt}}]}
  - Ann: read
";

/// The folders below `folder` that have the name of a conversation.
fn work_dirs(folder: &Path, id: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = entries.filter(|path| path.is_dir());
    folders.flat_map(|path| if path.ends_with(id) { vec![path] } else { work_dirs(&path, id) }).collect()
}

/// Runs a conversation to its end on a worker with these options.
fn ended(place: &Place, options: &[&str]) -> String {
    let id = place.detach(&["writes.yaml"]);
    let mut worker = place.worker(options);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.end(), 0, "{}", worker.log());
    id
}

#[test]
fn a_worker_removes_the_files_of_what_has_ended_and_another_one_continues_with_them() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    place.file("writes.yaml", WRITES);
    let id = ended(&place, &[]);
    assert!(work_dirs(&place.path(""), &id).is_empty());
    let kept = ended(&place, &["--keep-files"]);
    let dirs = work_dirs(&place.path(""), &kept);
    let [dir] = dirs.as_slice() else { panic!("{dirs:?}") };
    assert_eq!(fs::read_to_string(dir.join("notes/a.txt")).unwrap(), "one");
    // On another machine.
    let elsewhere = Place::new(&server.url());
    elsewhere.file("writes.yaml", WRITES);
    assert!(elsewhere.run(&["files", &id], 0).out.contains("          3  notes/a.txt"));
    let listed = elsewhere.run(&["files", &id, "--json"], 0).lines();
    assert_eq!(listed, [serde_json::json!({"path": "notes/a.txt", "bytes": 3, "link": null})]);
    let shown = elsewhere.run(&["show", &id], 0).out;
    assert!(
        shown.contains(&format!("1 file stored; `polylogue files {id} --to FOLDER` copies them")),
        "{shown}"
    );
    elsewhere.run(&["files", &id, "--to", "copy/"], 0);
    assert_eq!(fs::read_to_string(elsewhere.path("copy/notes/a.txt")).unwrap(), "one");
    let refused = elsewhere.run(&["files", &id, "--to", "copy"], 2).err;
    assert!(refused.contains("nothing is replaced") && refused.contains("hint: "), "{refused}");
    let _worker = elsewhere.worker(&[]);
    place.run(&["resume", &id, "Read it.", "--detach"], 0);
    until("it has ended again", || of_type(&place.events(&id), "closed").len() == 2);
    let events = place.events(&id);
    let read = of_type(&events, "tool_returned").pop().unwrap().to_string();
    assert!(read.contains("one"), "{read}");
    assert!(work_dirs(&place.path(""), &id).is_empty(), "nor are they where it was handed over");
}

/// Files that only this machine has stay here.
#[test]
fn files_that_are_not_stored_stay_on_the_machine_of_the_worker() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_var("POLYLOGUE_FILES", "local");
    place.file("writes.yaml", WRITES);
    let id = ended(&place, &[]);
    assert_eq!(work_dirs(&place.path(""), &id).len(), 1);
    place.run(&["files", &id, "--to", "copy"], 0);
    assert_eq!(fs::read_to_string(place.path("copy/notes/a.txt")).unwrap(), "one");
    let elsewhere = Place::new(&server.url());
    assert!(elsewhere.run(&["files", &id], 0).err.contains("has no files"));
}

#[test]
fn files_in_a_volume_that_is_not_here_are_not_said_to_be_missing() {
    let Some(server) = PostgresServer::start() else { return };
    let volume = tempfile::tempdir().unwrap();
    let shared = format!("volume:{}", volume.path().display());
    let place = Place::new(&server.url()).with_var("POLYLOGUE_FILES", &shared);
    place.file("writes.yaml", WRITES);
    let id = ended(&place, &[]);
    assert!(place.run(&["files", &id], 0).out.contains("notes/a.txt"));
    // With the default, and with the volume.
    let (other, same) = (Place::new(&server.url()), Place::new(&server.url()));
    let same = same.with_var("POLYLOGUE_FILES", &shared);
    let is_in = format!("the files of `{id}` are in the volume `{}`, which ", volume.path().display());
    let unused = other.run(&["files", &id], 2).err;
    assert!(unused.contains(&format!("{is_in}this process does not use")), "{unused}");
    assert!(unused.contains(&format!("hint: set `POLYLOGUE_FILES={shared}`")), "{unused}");
    drop(volume);
    for place in [other, same] {
        let unmounted = place.run(&["files", &id], 2).err;
        assert!(unmounted.contains(&format!("{is_in}is not here")), "{unmounted}");
        assert!(unmounted.contains("hint: mount it at this path"), "{unmounted}");
    }
}

/// Such as one whose disk is full, or a container whose file system is read-only.
#[test]
fn a_worker_that_can_make_no_work_directory_leaves_conversations_to_others_and_parks_none() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    place.file("writes.yaml", WRITES);
    // No one can make a folder in a file.
    place.file("data", "");
    let data = place.path("data").display().to_string();
    let unwritable = Place::new(&server.url()).with_var("XDG_DATA_HOME", &data);
    let id = place.detach(&["writes.yaml"]);
    let worker = unwritable.worker(&[]);
    until("it is left to others", || worker.log().contains("is left to other workers"));
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.logs WHERE is_parked OR tries > 0"), "0");
    let shown = place.run(&["cluster"], 0).out;
    assert!(shown.contains("cannot be made: "), "{shown}");
    let _other = place.worker(&[]);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
}
