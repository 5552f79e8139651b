//! Workers of one machine, on one SQLite file.

use std::time::Duration;

use rustix::process::Signal;

use crate::commands::TALK;
use crate::notes::{assert_as_undisturbed, detach_all, model, prepare};
use crate::place::{Place, WorkerProcess, of_type, until};

const UNSAFE: &[&str] = &["--allow", "unsafe-host"];

/// The default store, and one of a name: `run --detach`, `worker`, `worker --only` and `cluster`.
#[test]
fn a_conversation_in_a_file_is_handed_over_to_a_worker() {
    for place in [Place::of_default_store(), Place::new("runs.db")] {
        place.file("team.yaml", TALK);
        let (id, other) = (place.detach(&["team.yaml"]), place.detach(&["team.yaml", "--needs", "gpu"]));
        let shown = place.run(&["cluster"], 0);
        assert!(shown.out.contains(&format!("ready   {id}")), "{}", shown.out);
        assert!(shown.err.contains("start one with `polylogue worker`"), "{}", shown.err);
        let few = place.run(&["cluster", "--limit", "1"], 0);
        assert_eq!(few.out.lines().count(), 1, "{}", few.out);
        assert!(
            few.err.contains("2 ready") && few.err.contains("1 of 2 conversations is shown"),
            "{}",
            few.err
        );
        let worker = place.worker(&["--at-once", "3"]);
        until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
        until("only the other one is left", || place.cluster().1.len() == 1);
        let (workers, logs) = place.cluster();
        assert_eq!((&logs[0]["id"], &logs[0]["state"]), (&other.clone().into(), &"ready".into()));
        assert_eq!(logs[0]["missing"], serde_json::json!(["gpu"]), "{logs:?}");
        assert_eq!(workers[0]["at_once"], 3, "{workers:?}");
        assert_eq!(workers[0]["worker"].as_str().unwrap().split(' ').nth(1), Some(&*worker.id().to_string()));
        let refused = place.run(&["worker", "--only", &other], 2);
        assert!(refused.err.contains("needs gpu, which this machine does not offer"), "{}", refused.err);
        place.run(&["worker", "--only", &other, "--offers", "gpu"], 0);
        assert!(place.cluster().1.is_empty(), "{:?}", place.cluster());
    }
}

/// One worker is killed, and one drained, while they run conversations whose tools write to a file outside.
#[test]
fn workers_on_one_file_continue_what_others_leave() {
    const COUNT: usize = 12;
    let model = model(Duration::from_millis(300));
    let place = Place::new("runs.db").with_model(&model);
    prepare(&place);
    let ids = detach_all(&place, COUNT);
    let worker = || place.worker(&[UNSAFE, &["--at-once", "6"]].concat());
    let mut workers: Vec<WorkerProcess> = vec![worker(), worker()];
    let held = |least: usize| place.cluster().1.iter().filter(|log| log["state"] == "held").count() >= least;
    until("they run all", || held(COUNT - 1));
    workers.remove(0).kill();
    workers.push(worker());
    until("the new one has some", || held(COUNT / 2));
    workers[0].signal(Signal::TERM);
    assert_eq!(workers[0].end(), 0, "{}", workers[0].log());
    until("all have ended", || place.all(COUNT, |state| state.starts_with("done")));
    until("nothing waits", || place.cluster().1.is_empty());
    assert_as_undisturbed(&place, &ids);
}
