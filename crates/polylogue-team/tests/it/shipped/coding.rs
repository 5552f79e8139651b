//! Teams that ship and run programs: what these find out is real, and when a log is cut nothing is run twice unasked.

use std::sync::Arc;

use polylogue_core::{
    AnyModel, AnyStore, Body, Event, Log, LogId, Meta, Status, Store, Timestamp, ToolStatus,
};
use polylogue_store::Memory;
use polylogue_team::{Overrides, Team};
use polylogue_test::cut::uncharged;

use crate::shipped::stage::{build_context, can_run, files, model, play, team};

/// The team `name`, if its programs can run here.
fn coding(name: &str) -> Option<Team> {
    let file = files().into_iter().find(|file| file.file_stem().is_some_and(|stem| stem == name)).unwrap();
    Some(team(&file, &Overrides::default())).filter(can_run)
}

/// The result of each tool call of a run, in order: whether it succeeded, and its text.
fn outcomes(events: &[Arc<Event>]) -> Vec<(ToolStatus, String)> {
    let returned = |event: &Arc<Event>| match &event.body {
        Body::ToolReturned { result: outcome, .. } => {
            Some((outcome.status, polylogue_core::text_of(&outcome.parts).into_owned()))
        }
        _ => None,
    };
    events.iter().filter_map(returned).collect()
}

#[tokio::test]
async fn a_proxy_runs_what_an_assistant_writes_until_it_works() {
    let Some(team) = coding("year-to-date") else { return };
    let played = play(&team).await;
    let came = outcomes(&played.events);
    let [first, broken, mended] = came.as_slice() else { panic!("{came:?}") };
    assert!(first.1.contains("Code output: date,ticker,close\n2023-12-01,ALDR,48.00"), "{first:?}");
    assert_eq!(broken.0, ToolStatus::Failed);
    assert!(
        broken.1.starts_with("exitcode: 1 (execution failed)") && broken.1.ends_with("KeyError: 'price'")
    );
    assert_eq!(mended.0, ToolStatus::Done);
    // In the file the close is 228.03 on 2023-12-29, and 428.34 on 2024-09-20.
    assert!(mended.1.contains("today is 2024-09-20\nBRCH +87.8 %\nDOGW +25.5 %"), "{mended:?}");
    assert!(played.summary.contains("BRCH has the largest gain") && !played.summary.contains("TERMINATE"));
}

#[tokio::test]
async fn a_person_has_a_program_changed_that_ran() {
    let Some(team) = coding("human-feedback-code") else { return };
    let played = play(&team).await;
    let came = outcomes(&played.events);
    let [first, changed] = came.as_slice() else { panic!("{came:?}") };
    assert!(first.1.contains("Code output: ALDR 48.74 53.75\nBRCH 228.03 428.34\n"), "{first:?}");
    assert!(changed.1.contains("Code output: BRCH 228.03 428.34 +87.8 %\nDOGW"), "{changed:?}");
    let wish = ("User_proxy".to_owned(), "Add the change in percent, and put the largest first.".to_owned());
    assert!(played.said("").contains(&wish), "{:?}", played.said(""));
    assert!(played.summary.ends_with("+87.8 %."), "{}", played.summary);
}

#[tokio::test]
async fn a_critic_has_a_program_improved_that_an_executor_runs() {
    let Some(team) = coding("coder-critic-executor") else { return };
    let played = play(&team).await;
    let came = outcomes(&played.events);
    let [broken, wide, scaled] = came.as_slice() else { panic!("{came:?}") };
    assert_eq!((broken.0, wide.0), (ToolStatus::Failed, ToolStatus::Done));
    assert!(broken.1.contains("TypeError"), "{broken:?}");
    let width = |text: &str| text.lines().map(str::len).max().unwrap_or_default();
    assert!(width(&wide.1) > 400 && width(&scaled.1) <= 80, "{} {}", width(&wide.1), width(&scaled.1));
    let speakers: Vec<String> = played.said("").into_iter().map(|(who, _)| who).collect();
    let turns = ["Coder", "Executor", "Coder", "Executor", "Critic", "Coder", "Executor", "Critic"];
    assert_eq!(speakers[1..], turns);
}

#[tokio::test]
async fn what_a_stream_has_taught_stays_in_files_from_line_to_line() {
    let Some(team) = coding("continual-learning") else { return };
    let played = play(&team).await;
    let came = outcomes(&played.events);
    let [first, second] = came.as_slice() else { panic!("{came:?}") };
    assert!(first.1.contains("Code output: 1 prices, change 0.0"), "{first:?}");
    assert!(second.1.contains("Code output: 2 prices, change 3.0"), "{second:?}");
}

#[tokio::test]
async fn a_coder_solves_a_problem_with_programs_and_mends_them() {
    let Some(team) = coding("projection") else { return };
    let played = play(&team).await;
    let came = outcomes(&played.events);
    let [broken, mended] = came.as_slice() else { panic!("{came:?}") };
    assert!(broken.1.starts_with("exitcode: 1 (execution failed)\nCode output: Traceback"), "{broken:?}");
    assert!(broken.1.contains("NameError: name 'Fraction' is not defined"), "{broken:?}");
    let shown = "exitcode: 0 (execution succeeded)\nCode output: projection: 1/5 -3/5\nproduct: 2 cross: 0";
    assert_eq!((mended.0, &*mended.1), (ToolStatus::Done, shown));
    assert!(played.summary.contains("\\boxed"), "{}", played.summary);
}

#[tokio::test]
async fn a_planner_is_asked_as_a_function_and_functions_mend_a_file() {
    let Some(team) = coding("planner-functions") else { return };
    let played = play(&team).await;
    let came = outcomes(&played.events);
    let failed: Vec<bool> = came.iter().map(|(status, _)| *status == ToolStatus::Failed).collect();
    assert_eq!(failed, [false, true, false, false, false], "{came:?}");
    assert!(came[0].1.starts_with("1. Run the tests") && came[4].1 == "3 tests passed", "{came:?}");
    // The planner knows only the question, in a separate chat.
    let [asked] = played.asked_of("Planner")[..] else { panic!("the planner is asked once") };
    assert_eq!(asked.texts().len(), 1);
    assert!(asked.texts()[0].contains("How do I go about it?"));
}

/// Continues `prefix` in a new process, in the same work directory.
async fn resumed(
    team: &Team,
    prefix: &[Arc<Event>],
    place: &polylogue_team::BuildContext,
) -> Vec<Arc<Event>> {
    let (store, id) = (AnyStore::new(Memory::default()), LogId::new("cut").unwrap());
    let claim = store.create(&id, &Meta::default()).await.unwrap();
    store.append(&claim, prefix).await.unwrap();
    store.release(claim).await.unwrap();
    let model = AnyModel::new(model(team));
    let chat = team.build_at(&|_| Ok(model.clone()), place).unwrap();
    let mut log = Log::open(store, id).await.unwrap().clock(|| Timestamp(0));
    // A script that expects an output fails when the outcome is unknown.
    let status = chat.resume(&mut log).await.map(|run| run.status);
    assert!(matches!(status, Ok(Status::Closed { .. }) | Err(_)), "{status:?}");
    log.events().await
}

#[tokio::test]
async fn a_run_in_flight_is_reported_and_not_repeated_and_every_other_cut_changes_nothing() {
    let Some(team) = coding("year-to-date") else { return };
    let place = build_context(&team);
    let begun = &play(&team).await.events[..2];
    let whole = resumed(&team, begun, &place).await;
    let mut in_flight = 0;
    for cut in 1..whole.len() {
        let again = resumed(&team, &whole[..cut], &place).await;
        match &whole[cut - 1].body {
            Body::ToolCalled { .. } => {
                in_flight += 1;
                let returned = again[cut..].iter().find_map(|event| match &event.body {
                    Body::ToolReturned { result: outcome, .. } => Some(outcome),
                    _ => None,
                });
                let outcome = returned.unwrap();
                assert_eq!(outcome.status, ToolStatus::Unknown, "the call before event {cut}");
            }
            _ => assert_eq!(uncharged(&whole), uncharged(&again), "cut before event {cut}"),
        }
    }
    assert_eq!(in_flight, 3);
}

#[tokio::test]
async fn a_team_within_a_team_works_in_the_same_directory() {
    let Some(_) = coding("projection") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("data.txt", "from outside\n");
    file(
        "outer.yaml",
        "{name: outer, task: x, files: [data.txt], agents: [{name: A}], teams: [{name: desk, file: inner.yaml}],
          chat: {pattern: sequential, participants: [A, desk]},
          script: [{A: \"```sh\\ncat data.txt note.txt\\n```\"}]}",
    );
    file("note.txt", "from inside\n");
    file(
        "inner.yaml",
        "{name: inner, files: [note.txt], agents: [{name: R, model: none, code_execution: true}],
          chat: {pattern: sequential, participants: [R]}}",
    );
    let team = team(&folder.path().join("outer.yaml"), &Overrides::default());
    assert!(team.needs_workplace());
    let played = play(&team).await;
    assert_eq!(played.summary, "exitcode: 0 (execution succeeded)\nCode output: from outside\nfrom inside");
}

#[tokio::test]
async fn a_charter_draws_what_a_researcher_found() {
    let Some(team) = coding("data-visualizer") else { return };
    let played = play(&team).await;
    let came = outcomes(&played.events);
    let [found, read, drawn] = came.as_slice() else { panic!("{came:?}") };
    assert!(found.1.contains("page:/aldoria/economy.md"), "{found:?}");
    assert!(read.1.contains("352.8"), "{read:?}");
    assert!(drawn.1.starts_with("a line graph of 640x400 pixels"), "{drawn:?}");
    let pictures = played.events.iter().filter_map(|event| match &event.body {
        Body::ToolReturned { result: outcome, .. } => Some(outcome.parts.clone()),
        _ => None,
    });
    let pixels = pictures.flatten().filter_map(|part| match part {
        polylogue_core::Part::Media(media) => media.pixels(),
        _ => None,
    });
    let pictures: Vec<(u32, u32)> = pixels.collect();
    assert_eq!(pictures, [(640, 400)]);
    assert!(played.summary.starts_with("Final Answer"), "{}", played.summary);
}
