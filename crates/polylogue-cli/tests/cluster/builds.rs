//! W43 with two builds: workers of an earlier commit and of this one on one database, as while a cluster is updated.

use std::path::Path;
use std::time::Duration;

use polylogue_test::postgres::PostgresServer;
use polylogue_test::skip::skipped;

use crate::place::{Place, WorkerProcess, held_by, until};
use crate::scripts::{Script, Scripts, key};
use crate::shipped::{ALLOW, Team, assert_as_undisturbed, teams};

/// The program of the earlier commit, which `.ci/two-releases` builds.
const EARLIER: &str = "POLYLOGUE_EARLIER";

/// How many shipped teams talk at once: those with the most calls.
const TEAMS: usize = 20;

/// How long each reply of a model takes, so that workers are drained in the middle of conversations.
const LATENCY: Duration = Duration::from_millis(600);

/// The shipped teams whose calls a script can answer in order, those with the most calls first.
fn talkative(alone: &Place) -> Vec<Team> {
    let mut teams: Vec<Team> = teams(alone).into_iter().filter(Team::is_steady).collect();
    teams.sort_by_key(|team| std::cmp::Reverse(team.replies().len()));
    teams.truncate(TEAMS);
    assert_eq!(teams.len(), TEAMS);
    teams
}

/// Drains a worker. Returns how many of its conversations it has left in their middle.
fn drained(database: &PostgresServer, worker: &mut WorkerProcess) -> usize {
    let held = held_by(database, worker);
    worker.drain();
    let held: Vec<String> = held.iter().map(|id| format!("'{id}'")).collect();
    let open = format!(
        "SELECT count(*) FROM polylogue.logs WHERE id = ANY(ARRAY[{}]::text[]) AND state NOT IN ('done', 'ended')",
        held.join(",")
    );
    database.sql(&open).parse().unwrap()
}

/// A worker of each build runs half of the conversations, which both builds have handed over. The earlier one is drained when a third of all
/// calls has finished. Then it is started again, and continues what the other one leaves when that is drained.
#[test]
fn workers_of_two_builds_continue_what_the_other_one_runs_and_repeat_no_call() {
    let Ok(program) = std::env::var(EARLIER) else {
        return skipped(&format!(
            "`{EARLIER}` names no program of an earlier commit: `.ci/two-releases` builds one"
        ));
    };
    let Some(database) = PostgresServer::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let teams = talkative(&Place::new(&dir.path().join("store.db").display().to_string()));
    let script = |team: &Team| (team.model(), Script::undisturbed(team.replies()));
    let scripts = Scripts::new(teams.iter().map(script).collect());
    let model = scripts.serve(LATENCY);
    let calls: usize = teams.iter().map(|team| team.replies().len()).sum();
    let place = || Place::new(&database.url()).with_model(&model).with_var("OPENAI_API_KEY", &key(0));
    let program = std::path::absolute(Path::new(&program)).unwrap().display().to_string();
    let (old, new) = (place().with_program(program), place());
    // The earlier build makes the tables.
    let detach = |(nth, team): (usize, &Team)| {
        let (place, model) = ([&old, &new][nth % 2], format!("openai:{}", team.model()));
        place.detach(&[&[team.file.as_str(), "--model", &model][..], &ALLOW].concat())
    };
    let ids: Vec<String> = teams.iter().enumerate().map(detach).collect();
    let worker = |place: &Place, at_once: usize| {
        place.worker(&[&ALLOW[..], &["--at-once", &at_once.to_string()]].concat())
    };
    let mut earlier = worker(&old, TEAMS / 2);
    until("it runs half of them", || held_by(&database, &earlier).len() == TEAMS / 2);
    let mut later = worker(&new, TEAMS);
    until("a third of the calls has finished", || scripts.finished() >= calls / 3);
    let left = drained(&database, &mut earlier);
    earlier = worker(&old, TEAMS);
    until("both are seen", || old.cluster().0.len() == 2 && new.cluster().0.len() == 2);
    let left = [left, drained(&database, &mut later)];
    assert!(left.iter().all(|left| *left > 0), "conversations are continued in their middle: {left:?}");
    until("all have ended", || new.all(TEAMS, |status| status.starts_with("done")));
    earlier.drain();
    for (team, id) in teams.iter().zip(&ids) {
        assert_as_undisturbed(team, &new.events(id));
        scripts.assert_calls_are_made_once(&team.model());
    }
    let stored = "SELECT sum(takeovers), max(tries), bool_or(is_parked), count(*) FROM polylogue.logs";
    assert_eq!(database.sql(stored), format!("0|0|f|{TEAMS}"), "{}", earlier.log());
    println!("{TEAMS} teams, {calls} calls; {left:?} conversations were continued by the other build");
}
