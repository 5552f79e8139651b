//! What holds of every team that ships.

use std::path::Path;
use std::sync::Mutex;

use polylogue_core::{AnyModel, AnyStore, Body, RunOutcome};
use polylogue_store::{Memory, Sqlite};
use polylogue_team::{Overrides, Pattern, Team};
use polylogue_test::cut::{Calls, Cut};
use tempfile::TempDir;

use crate::shipped::apart;
use crate::shipped::stage::{answer, build_context, can_run, files, model, play, team};

/// Every team that ships and can run here.
fn teams() -> Vec<Team> {
    files().iter().map(|file| team(file, &Overrides::default())).filter(can_run).collect()
}

/// Those of them that run no programs. What becomes of programs when a log is cut is in `coding`.
fn talking() -> impl Iterator<Item = Team> {
    teams().into_iter().filter(|team| !team.needs_workplace())
}

/// Cuts the conversation of each of `teams` after every event; how many cuts there were.
async fn cut_everywhere(teams: impl IntoIterator<Item = Team>, store: &dyn Fn() -> AnyStore) -> usize {
    let mut cuts = 0;
    for team in teams {
        if matches!(team.chat.pattern, Pattern::Dag(_)) {
            cuts += apart::cut_everywhere(&team, store).await;
            continue;
        }
        let cut = Cut {
            task: team.task.as_deref().unwrap_or_default(),
            chat: &|calls: &Calls| {
                let model = AnyModel::new(calls.through(model(&team)));
                team.build_at(&|_| Ok(model.clone()), &build_context(&team)).unwrap()
            },
            store,
            answer: &|_, question, answered| answer(&team, question, usize::try_from(answered).unwrap()),
        };
        cuts += cut.everywhere().await.unwrap_or_else(|flaw| panic!("{}: {flaw}", team.name)).len();
    }
    cuts
}

#[tokio::test(start_paused = true)]
async fn every_team_can_be_cut_after_every_event() {
    assert!(cut_everywhere(talking(), &|| AnyStore::new(Memory::default())).await > 1000);
}

/// In files, which take their time: every third team from the nth on.
async fn cut_in_a_database(nth: usize) {
    let places: Mutex<Vec<TempDir>> = Mutex::default();
    let store = || {
        let place = tempfile::tempdir().unwrap();
        let store = Sqlite::open(place.path().join("cut.db")).unwrap();
        places.lock().unwrap().push(place);
        AnyStore::new(store)
    };
    assert!(cut_everywhere(talking().skip(nth).step_by(3), &store).await > 100);
}

#[tokio::test(start_paused = true)]
async fn every_team_can_be_cut_after_every_event_in_a_database_one() {
    cut_in_a_database(0).await;
}

#[tokio::test(start_paused = true)]
async fn every_team_can_be_cut_after_every_event_in_a_database_two() {
    cut_in_a_database(1).await;
}

#[tokio::test(start_paused = true)]
async fn every_team_can_be_cut_after_every_event_in_a_database_three() {
    cut_in_a_database(2).await;
}

#[tokio::test(start_paused = true)]
async fn every_team_plays_its_whole_script_and_comes_to_what_it_is_for() {
    for team in teams() {
        let played = play(&team).await;
        assert_eq!(played.unconsumed, [""; 0], "{}", team.name);
        assert!(played.reason.outcome() == RunOutcome::Done, "{}: {}", team.name, played.reason);
        assert!(!played.summary.trim().is_empty(), "{} comes to nothing", team.name);
        for event in &played.events {
            if let Body::Closed { reason, .. } = &event.body {
                assert!(
                    reason.outcome() == RunOutcome::Done,
                    "{}: {} ends by {reason}",
                    team.name,
                    event.chat
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_message_is_in_the_log_once_and_every_chat_has_one_end() {
    for team in teams() {
        let played = play(&team).await;
        let count = |is: &dyn Fn(&Body) -> bool| played.events.iter().filter(|event| is(&event.body)).count();
        let requested: usize = played
            .events
            .iter()
            .map(|event| if let Body::TurnStarted { turns } = &event.body { turns.len() } else { 0 })
            .sum();
        // Where two know each other's task as their own, each has a turn in which it learns it, and says nothing.
        let learns = matches!(&team.chat.pattern, Pattern::GroupSolve(solve) if *solve.reconcile);
        let ends = |body: &Body| {
            let passes = learns && matches!(body, Body::Passed { .. });
            passes || matches!(body, Body::Message(_) | Body::Stopped { .. })
        };
        assert_eq!(count(&ends), requested, "{}: every turn says something, or ends the chat", team.name);
        // An agent that is asked again within a turn of another has an inner chat that is reopened.
        let opened = played.events.iter().filter(|event| matches!(event.body, Body::Opened(_)));
        for at in opened.map(|event| &event.chat) {
            let here = played.events.iter().filter(|event| event.chat == *at);
            let again = here.clone().filter(|event| matches!(event.body, Body::Reopened { .. })).count();
            let closed = here.filter(|event| matches!(event.body, Body::Closed { .. })).count();
            assert_eq!(closed, again.max(1), "{} at `{at}`", team.name);
        }
        assert_eq!(count(&|body| matches!(body, Body::ModelReplied(_))), played.asked.len(), "{}", team.name);
    }
}

#[tokio::test(start_paused = true)]
async fn every_team_runs_the_same_when_it_comes_out_of_the_store() {
    for team in teams() {
        let stored = serde_json::to_string(&team).unwrap();
        let read: Team = serde_json::from_str(&stored).unwrap();
        let (read, made) = (play(&read).await.events, play(&team).await.events);
        assert_eq!(apart::apart(&read), apart::apart(&made), "{}", team.name);
    }
}

#[test]
fn every_team_loads_without_a_warning_and_needs_nothing_next_to_it() {
    for file in files() {
        let loaded = polylogue_team::load(&file, &Overrides::default()).unwrap();
        assert_eq!(loaded.warnings.to_string(), "", "{}", file.display());
        assert!(loaded.team.task.is_some() && !loaded.team.script.is_empty(), "{}", file.display());
        assert_eq!(file.file_stem().map(Path::new), Some(Path::new(loaded.team.name.as_str())));
    }
}
