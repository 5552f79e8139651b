//! W17: workers that are killed in turn, in every team that ships.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use polylogue_test::postgres::PostgresServer;
use serde_json::Value;

use crate::place::{Place, expire, of_type, until};

/// The files of all teams.
fn teams() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../teams");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let teams = files.filter(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    let mut teams: Vec<String> = teams.map(|file| file.display().to_string()).collect();
    teams.sort();
    teams
}

/// What every chat of a log said, in its order: chats at the same time have no common one.
fn said(events: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut said: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for kind in ["message", "posted", "closed"] {
        for event in of_type(events, kind) {
            let what = event.get("parts").or_else(|| event.get("reason")).cloned().unwrap_or_default();
            said.entry(event["at"].to_string()).or_default().push(without_files(what));
        }
    }
    said
}

/// What is said, without the references to files, which only conversations in Postgres keep.
fn without_files(mut what: Value) -> Value {
    match &mut what {
        Value::Object(fields) => {
            fields.shift_remove("files");
            fields.values_mut().for_each(|value| *value = without_files(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_files(item.take())),
        _ => {}
    }
    what
}

/// A program that was running has an unknown outcome, which the script of its team does not expect.
fn was_interrupted(events: &[Value]) -> bool {
    Value::from(events.to_vec()).to_string().contains("The outcome of this call is unknown")
}

/// What `run` alone does with a team.
fn undisturbed(alone: &Place, team: &str) -> Vec<Value> {
    let ran = alone.command(&["run", team, "--offline", "--json"]).output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_shipped_team_ends_the_same_though_its_workers_are_killed_in_turn() {
    const WORKER: &[&str] = &["--offline", "--at-once", "4"];
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    let dir = tempfile::tempdir().unwrap();
    let alone = Place::new(&dir.path().join("store.db").display().to_string());
    let mut ids = Vec::new();
    for team in teams() {
        let ran = place.command(&["run", &team, "--offline", "--detach"]).output().unwrap();
        // Some ask for permissions, or for a memory.
        if ran.status.success() {
            ids.push((team, String::from_utf8(ran.stdout).unwrap().trim().to_owned()));
        }
    }
    assert!(ids.len() > 20, "{} teams", ids.len());
    let mut workers = vec![place.worker(WORKER), place.worker(WORKER)];
    let mut kills = 0;
    until("all are at rest", || {
        if kills < 12 {
            std::thread::sleep(Duration::from_millis(500));
            expire(&server, workers.remove(0).kill());
            workers.push(place.worker(WORKER));
            kills += 1;
        }
        // Those whose script was surprised are tried again and parked.
        place.cluster().1.iter().all(|log| log["state"] == "timed" || log["state"] == "parked")
    });
    let mut interrupted = 0;
    for (team, id) in &ids {
        let (found, expected) = (place.events(id), undisturbed(&alone, team));
        if was_interrupted(&found) {
            interrupted += 1;
            continue;
        }
        let calls = |events: &[Value]| of_type(events, "tool_returned").len();
        assert_eq!(calls(&found), calls(&expected), "{team}: a call was repeated or is missing");
        assert_eq!(said(&found), said(&expected), "{team}");
    }
    assert!(interrupted < ids.len() / 2, "{interrupted} of {} teams had a program running", ids.len());
    let takeovers = server.sql("SELECT sum(takeovers) FROM polylogue.logs");
    println!("{} teams, {kills} kills, {takeovers} takeovers, {interrupted} programs", ids.len());
}
