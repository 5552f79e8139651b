//! `worker`, `cluster` and `--detach` as commands: what they print, their exit codes and hints.

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use polylogue_test::teams::OFFICE;

use crate::place::{Place, expire, of_type, until};

/// A team whose agents speak by its script.
pub(crate) const TALK: &str = "
name: talk
task: Say hello.
agents: [{name: Ann, system: You are brief.}, {name: Bob, system: You are briefer.}]
chat: {participants: [Ann, Bob], pattern: sequential}
script: [{Ann: Hello!}, {Bob: Hi.}]
";

fn is_held_or_ready(place: &Place) -> bool {
    place.cluster().1.iter().any(|log| ["held", "ready"].contains(&log["state"].as_str().unwrap()))
}

#[test]
fn a_conversation_is_handed_over_to_a_worker() {
    let Some(server) = PostgresServer::start() else { return };
    let place = &Place::new(&server.url());
    place.file("team.yaml", TALK);
    let ran = place.run(&["run", "team.yaml", "--detach"], 0);
    let id = ran.out.trim().to_owned();
    assert!(
        ran.err.contains("it waits for a worker, and none runs now")
            && ran.err.contains(&format!("polylogue show {id}")),
        "{}",
        ran.err
    );
    assert!(place.events(&id).is_empty(), "nothing has run");
    let shown = place.run(&["cluster"], 0);
    assert!(shown.out.contains(&format!("ready   {id}")), "{}", shown.out);
    assert!(
        shown.err.contains("0 workers") && shown.err.contains("start one with `polylogue worker`"),
        "{}",
        shown.err
    );
    let worker = place.worker(&["--at-once", "3", "--offers", "gpu,browser"]);
    until("it has ended", || {
        place.all(1, |state| state == "done: all have spoken" || state.starts_with("done"))
    });
    until("it is idle", || place.cluster().1.is_empty());
    assert_eq!(of_type(&place.events(&id), "message").len(), 2);
    let (workers, _) = place.cluster();
    assert_eq!(workers.len(), 1, "{workers:?}");
    assert_eq!(workers[0]["at_once"], 3);
    let offers: Vec<&str> =
        workers[0]["offers"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert!(["browser", "gpu"].iter().all(|word| offers.contains(word)), "{offers:?}");
    assert_eq!(workers[0]["worker"].as_str().unwrap().split(' ').nth(1), Some(&*worker.id().to_string()));
    // As JSON, for programs.
    let row = place.run(&["run", "team.yaml", "--detach", "--json"], 0).lines().remove(0);
    let second = row["id"].as_str().unwrap();
    until("the second one has ended", || of_type(&place.events(second), "closed").len() == 1);
    until("nothing waits", || place.cluster().1.is_empty());
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.cluster"), "0", "nothing waits");
}

/// `worker --only ID`, the adapter for other schedulers: doing it twice is harmless, and the exit code says how it ended.
#[test]
fn a_scheduler_runs_one_conversation_by_its_id() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    let (first, second) = (place.detach(&["team.yaml"]), place.detach(&["team.yaml", "--max-turns", "1"]));
    let ran = place.run(&["worker", "--only", &first], 0);
    assert!(ran.err.contains(&format!("`{first}` has ended: done")), "{}", ran.err);
    assert!(place.events(&second).is_empty(), "only that one");
    let ran = place.run(&["worker", "--only", &second], 3);
    assert!(ran.err.contains("has ended: limit"), "{}", ran.err);
    let before = place.events(&first);
    place.run(&["worker", "--only", &first], 0);
    assert_eq!(place.events(&first), before);
    assert!(place.cluster().1.is_empty(), "{:?}", place.cluster());
}

#[test]
fn what_cannot_be_a_cluster_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("runs")).unwrap();
    let place = Place::new(&format!("{}/", dir.path().join("runs").display()));
    place.file("team.yaml", TALK);
    for args in [&["worker"][..], &["run", "team.yaml", "--detach"], &["cluster"]] {
        let refused = place.run(args, 2);
        assert!(refused.err.contains("cannot be shared by workers"), "{args:?}: {}", refused.err);
        assert!(refused.err.contains("hint: name a SQLite file or a database"), "{}", refused.err);
    }
    assert_eq!(place.run(&["runs", "--json"], 0).out, "", "nor does one in a folder");
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    place.run(&["run", "team.yaml"], 0);
    for (args, wrong) in [
        (&["worker", "--at-once", "0"][..], "--at-once"),
        (&["worker", "--offers", "a b"], "separated by commas: `--offers a,b`"),
        (&["serve", "team.yaml", "--at-once", "3"], "`--at-once` is about the conversations of workers"),
        (&["serve", "team.yaml", "--offers", "gpu"], "`--offers` is about the conversations of workers"),
        (&["run", "team.yaml", "--needs", "gpu"], "--detach"),
        (&["run", "team.yaml", "--detach", "--input", "none"], "--input"),
        (&["run", "team.yaml", "--detach", "--needs", ""], "the name of a feature is empty"),
        (&["run", "team.yaml", "--detach", "--needs", "a b"], "`a b` cannot be the name of a feature"),
        (&["run", "team.yaml", "--detach", "--dir", "."], "`--dir` has no effect with `--detach`"),
        (&["worker", "--only", "nosuch"], "there is no"),
    ] {
        let refused = place.run(args, 2);
        assert!(refused.err.contains(wrong), "{args:?}: {}", refused.err);
    }
    assert_eq!(place.run(&["runs", "--json"], 0).lines().len(), 1, "what is refused leaves no conversation");
}

/// What a process was running that died is shown, whether it was handed over or not.
#[test]
fn a_conversation_whose_process_has_died_is_lost_until_it_is_resumed() {
    let Some(server) = PostgresServer::start() else { return };
    let book = Playbook::new(|_, _| Answer::text("Hello."));
    let behavior = Behavior::from(book).latency(std::time::Duration::from_secs(3600));
    let slow = Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap();
    let place = Place::new(&server.url()).with_model(&slow).with_team(TALK.split("script").next().unwrap());
    let running = place.begin(&["run", "team.yaml", "--model", "openai:test"], "run.out");
    let states = || place.cluster().1.iter().map(|log| log["state"].to_string()).collect::<Vec<_>>();
    until("it runs", || states() == ["\"held\""] && slow.count() == 1);
    expire(&server, running.kill());
    assert_eq!(states(), ["\"lost\""]);
    let _worker = place.worker(&[]);
    let shown = place.run(&["cluster"], 0);
    assert!(shown.out.contains("no worker continues it"), "{}", shown.out);
    assert!(shown.err.contains("1 lost") && shown.err.contains("`polylogue resume ID`"), "{}", shown.err);
    let count = server.sql("SELECT count(*) FROM polylogue.cluster WHERE state = 'lost' AND overdue IS NULL");
    assert_eq!(count, "1");
    let quick = Playbook::new(|_, _| Answer::text("Hello."));
    let quick = Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), Behavior::from(quick)).unwrap();
    let there = Place::new(&server.url()).with_model(&quick);
    there.run(&["resume", "last"], 0);
    assert!(states().is_empty());
}

/// Whether no worker has ever claimed the conversation, also without a try.
fn is_unclaimed(server: &PostgresServer, id: &str) -> bool {
    server.sql(&format!("SELECT worker IS NULL, events FROM polylogue.logs WHERE id = '{id}'")) == "t|0"
}

/// W45.
#[test]
fn a_conversation_that_needs_what_no_worker_offers_is_shown_with_the_missing_word() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    let id = place.detach(&["team.yaml", "--needs", "gpu,browser"]);
    let _without = place.worker(&["--offers", "browser"]);
    until("the worker is seen", || place.cluster().0.len() == 1);
    let begun = std::time::Instant::now();
    until("the missing word is shown", || {
        place.cluster().1.iter().any(|log| log["missing"] == serde_json::json!(["gpu"]))
    });
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    // It has time for many polls, and for another conversation.
    let other = place.detach(&["team.yaml"]);
    until("the other one has ended", || of_type(&place.events(&other), "closed").len() == 1);
    let (_, logs) = place.cluster();
    assert_eq!((&logs[0]["state"], &logs[0]["id"]), (&"ready".into(), &id.clone().into()));
    assert_eq!(logs[0]["missing"], serde_json::json!(["gpu"]), "{logs:?}");
    let shown = place.run(&["cluster"], 0).out;
    assert!(shown.contains("needs browser gpu; no worker offers gpu"), "{shown}");
    assert!(is_unclaimed(&server, &id));
    let _with = place.worker(&["--offers", "gpu,browser,more"]);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
}

/// A team with a command of its own, which works in a folder.
pub(crate) fn lists_files() -> String {
    let files =
        "commands: [{name: list, description: Lists files., command: [ls]}]\nsandbox: {backend: none}";
    let team = TALK.replace("name: Ann, ", "name: Ann, tools: [list], ");
    format!("{team}{files}\n")
}

/// W38.
#[test]
fn a_conversation_with_local_files_waits_for_a_worker_of_its_machine() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_var("POLYLOGUE_FILES", "local").with_team(&lists_files());
    let id = place.detach(&["team.yaml", "--allow", "unsafe-host"]);
    place.file("plain.yaml", TALK);
    let plain = place.detach(&["plain.yaml"]);
    // A worker that keeps files elsewhere is none of this machine.
    let away = Place::new(&server.url());
    let _other = away.worker(&[]);
    until("one without files is run anywhere", || of_type(&place.events(&plain), "closed").len() == 1);
    let shown = place.run(&["cluster"], 0).out;
    assert!(shown.contains("no worker offers files-on-"), "{shown}");
    assert!(is_unclaimed(&server, &id));
    let _worker = place.worker(&["--allow", "unsafe-host"]);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
}

/// What was needed before is needed still, next to the files; what is given instead replaces it.
#[test]
fn a_conversation_that_is_handed_over_again_needs_what_it_needed() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_var("POLYLOGUE_FILES", "local").with_team(&lists_files());
    let allowed = ["--allow", "unsafe-host"];
    let id = place.detach(&[&["team.yaml", "--needs", "gpu"], &allowed[..]].concat());
    let needs = || place.cluster().1[0]["needs"].clone();
    let files = needs()[0].clone();
    assert_eq!(needs(), serde_json::json!([files, "gpu"]));
    place.run(&[&["resume", &id, "--detach"], &allowed[..]].concat(), 0);
    assert_eq!(needs(), serde_json::json!([files, "gpu"]));
    place.run(&[&["resume", &id, "--detach", "--needs", "browser"], &allowed[..]].concat(), 0);
    assert_eq!(needs(), serde_json::json!(["browser", files]));
}

/// Neither a message nor what is needed is dropped.
#[test]
fn a_stopped_conversation_is_handed_over_with_what_it_needs_and_without_a_message() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    place.file("office.yaml", OFFICE);
    let id = place.detach(&["office.yaml", "--offline"]);
    let mut worker = place.worker(&[]);
    until("it waits for a person", || of_type(&place.events(&id), "input_required").len() == 1);
    until("it is released", || !is_held_or_ready(&place));
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.end(), 0);
    place.run(&["pause", &id], 0);
    let refused = place.command(&["resume", &id, "Take an umbrella.", "--detach"]).output().unwrap();
    assert!(!refused.status.success(), "the message would be dropped: {refused:?}");
    place.run(&["resume", &id, "--detach", "--needs", "gpu"], 0);
    let log = place.cluster().1.remove(0);
    assert_eq!((&log["state"], &log["needs"]), (&"ready".into(), &serde_json::json!(["gpu"])));
    let _with = place.worker(&["--offers", "gpu"]);
    until("it waits again", || !is_held_or_ready(&place));
    assert!(place.run(&["show", &id], 0).out.contains("Shall we?"));
}

/// What is said with `resume --detach` of a conversation that a person has paused counts as without `--detach`, or is refused.
#[test]
fn a_paused_conversation_is_handed_over_with_limits_and_changes_of_its_team() {
    let Some(server) = PostgresServer::start() else { return };
    let book = Playbook::new(|_, _| Answer::text("Hello."));
    let behavior = Behavior::from(book).latency(std::time::Duration::from_millis(100));
    let model = Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap();
    let place = Place::new(&server.url()).with_model(&model);
    let talk = "
name: talk
task: Talk.
agents: [{name: Ann, system: You are Ann.}, {name: Bob, system: You are Bob.}]
chat: {participants: [Ann, Bob], stop: {max_turns: 200}, loop_detection: off}
";
    place.file("team.yaml", talk);
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let _worker = place.worker(&[]);
    until("they talk", || model.count() > 1);
    place.run(&["pause", &id], 0);
    until("its worker has released it", || place.cluster().1.is_empty());
    for (args, what) in [
        (&["--model", "openai:other"][..], "`--model` has no effect with `--detach`"),
        (&["--pinned", "--capabilities", "text"], "`--capabilities` has no effect"),
        (&["--timeout", "5"], "`--timeout` has no effect"),
        (&["--thoughts"], "`--thoughts` has no effect"),
        (&["--answer", "yes"], "`--answer` has no effect"),
    ] {
        let refused = place.run(&[&["resume", &id, "--detach"], args].concat(), 2);
        assert!(refused.err.contains(what) && refused.err.contains("hint: "), "{}", refused.err);
    }
    place.file("team.yaml", &talk.replace("You are Bob.", "You are rude."));
    let changed = place.run(&["resume", &id, "--detach", "--max-calls", "3"], 2);
    assert!(changed.err.contains("--accept-changes"), "{}", changed.err);
    let before = (model.count(), place.events(&id));
    place.run(&["resume", &id, "--detach", "--max-calls", "3", "--accept-changes"], 0);
    until("it has ended", || place.all(1, |state| state.starts_with("limit: ")));
    until("it is idle", || place.cluster().1.is_empty());
    assert_eq!(model.count(), before.0 + 3);
    let after = place.events(&id).split_off(before.1.len());
    let count = |kind| of_type(&after, kind).len();
    assert_eq!(
        ["team_changed", "limits_changed", "resumed", "refused"].map(count),
        [1, 1, 1, 0],
        "{after:?}"
    );
    // It has ended: a message continues it, and is handed over, too.
    place.run(&["resume", &id, "Go on.", "--detach", "--max-calls", "2"], 0);
    until("it has ended again", || of_type(&place.events(&id), "closed").len() == 2);
    assert_eq!(model.count(), before.0 + 5);
    let events = place.events(&id);
    assert!(of_type(&events, "reopened")[0].to_string().contains("Go on."), "{events:?}");
}

/// What is said meanwhile is stored, and counts then.
#[test]
fn a_paused_conversation_is_left_alone_until_it_is_resumed() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    place.file("office.yaml", OFFICE);
    place.file("team.yaml", TALK);
    let id = place.detach(&["office.yaml", "--offline"]);
    let _worker = place.worker(&[]);
    until("it waits for a person", || of_type(&place.events(&id), "input_required").len() == 1);
    until("it is released", || !is_held_or_ready(&place));
    place.run(&["pause", &id], 0);
    place.run(&["send", &id, "Hurry."], 0);
    place.run(&["answer", &id, "agreed"], 0);
    let other = place.detach(&["team.yaml"]);
    until("another one has ended", || of_type(&place.events(&other), "closed").len() == 1);
    until("the worker has looked at it", || !is_held_or_ready(&place));
    let events = place.events(&id);
    let last: Vec<_> = events.iter().rev().take(3).map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(last, ["input_provided", "sent", "paused"]);
    place.run(&["resume", &id, "--detach"], 0);
    until("it continues", || !of_type(&place.events(&id), "closed").is_empty());
    assert_eq!(of_type(&place.events(&id), "resumed").len(), 1);
}

/// A conversation whose files are in a volume is run by workers that have that volume.
#[test]
fn a_conversation_with_files_in_a_volume_waits_for_a_worker_that_has_it() {
    let Some(server) = PostgresServer::start() else { return };
    let volume = tempfile::tempdir().unwrap();
    let shared = format!("volume:{}", volume.path().display());
    let place = Place::new(&server.url()).with_var("POLYLOGUE_FILES", &shared).with_team(WRITES);
    let id = place.detach(&["team.yaml"]);
    place.file("plain.yaml", TALK);
    let plain = place.detach(&["plain.yaml"]);
    let _without = Place::new(&server.url()).worker(&[]);
    until("one without files is run anywhere", || of_type(&place.events(&plain), "closed").len() == 1);
    let shown = place.run(&["cluster"], 0).out;
    assert!(shown.contains(&format!("no worker offers files-in-{}", volume.path().display())), "{shown}");
    assert!(is_unclaimed(&server, &id));
    let unmounted = Place::new(&server.url()).with_var("POLYLOGUE_FILES", "volume:/nowhere/at/all");
    let refused = unmounted.run(&["worker"], 2);
    assert!(
        refused.err.contains("is no folder here") && refused.err.contains("hint: mount it"),
        "{}",
        refused.err
    );
    let elsewhere = Place::new(&server.url()).with_var("POLYLOGUE_FILES", &shared);
    let _worker = elsewhere.worker(&[]);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
    assert_eq!(std::fs::read_to_string(volume.path().join(&id).join("a.txt")).unwrap(), "one");
}

/// Writes a file.
pub(crate) const WRITES: &str = "
name: writes
task: Write.
agents: [{name: Ann, tools: [write_file]}]
chat: {participants: [Ann], pattern: round_robin, stop: {max_turns: 1}}
script:
  - Ann: {calls: [{tool: write_file, args: {path: a.txt, content: one}}]}
  - Ann: written
";

/// W46, in part: a conversation keeps the team that it began with.
#[test]
fn a_changed_team_file_changes_no_conversation_that_was_handed_over() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    let id = place.detach(&["team.yaml"]);
    place.file("team.yaml", &TALK.replace("Hello!", "Good day!"));
    let _worker = place.worker(&[]);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
    assert_eq!(of_type(&place.events(&id), "message")[0]["parts"][0]["text"], "Hello!");
}

/// A worker without a key leaves a conversation to others, however often it tries, and `cluster` says why it waits.
#[test]
fn a_conversation_that_one_worker_cannot_prepare_is_run_by_another_one() {
    let Some(server) = PostgresServer::start() else { return };
    let book = Playbook::new(|_, _| Answer::text("Hello."));
    let model = Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), Behavior::from(book)).unwrap();
    let with_key = Place::new(&server.url()).with_model(&model);
    let without_key = Place::new(&server.url());
    with_key.file("team.yaml", TALK.split("script").next().unwrap());
    let id = with_key.detach(&["team.yaml", "--model", "openai:test"]);
    // As one that was not handed over, and that a message has woken.
    assert_eq!(server.sql("UPDATE polylogue.logs SET needs = '' RETURNING id").lines().next(), Some(&*id));
    let first = without_key.worker(&[]);
    until("it has tried twice", || first.log().matches("is left to other workers").count() > 1);
    let shown = with_key.run(&["cluster"], 0).out;
    let row = shown.lines().find(|line| line.contains(&id)).unwrap();
    assert!(row.starts_with("ready") && row.contains("cannot be prepared"), "{row}");
    assert!(row.contains("OPENAI_API_KEY"), "{row}");
    assert_eq!(server.sql("SELECT tries FROM polylogue.logs"), "0");
    let _second = with_key.worker(&[]);
    until("it has ended", || of_type(&with_key.events(&id), "closed").len() == 1);
    until("it is idle", || with_key.cluster().1.is_empty());
}

/// A conversation that workers would try again, or begin, is cancelled though no process runs it, and continues when it is resumed.
#[test]
fn a_conversation_that_waits_for_a_worker_is_cancelled() {
    let server = PostgresServer::start();
    for store in server.iter().map(PostgresServer::url).chain([String::from("runs.db")]) {
        let book = Playbook::new(|_, nth| match nth {
            0 => Answer::error(402, "no credit"),
            _ => Answer::text("Hello."),
        });
        let model = Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), Behavior::from(book)).unwrap();
        let place = Place::new(&store).with_model(&model).with_team(TALK);
        let id = place.detach(&["team.yaml", "--model", "openai:test"]);
        let mut worker = place.worker(&[]);
        until("it waits for another try", || place.cluster().1.iter().any(|log| log["state"] == "timed"));
        let cancelled = place.run(&["cancel", &id, "--now"], 0);
        assert!(cancelled.err.contains("it does not continue by itself"), "{store}: {}", cancelled.err);
        assert!(place.cluster().1.is_empty(), "{store}: {:?}", place.cluster());
        assert_eq!(of_type(&place.events(&id), "cancelled").len(), 1, "{store}");
        worker.signal(rustix::process::Signal::TERM);
        assert_eq!(worker.end(), 0, "{store}");
        // One that has not begun.
        let other = place.detach(&["team.yaml"]);
        place.run(&["cancel", &other], 0);
        assert!(place.cluster().1.is_empty(), "{store}: {:?}", place.cluster());
        let none = place.run(&["cancel", &other], 2);
        assert!(none.err.contains("nothing to cancel"), "{store}: {}", none.err);
        let _worker = place.worker(&[]);
        place.run(&["resume", &id, "--detach"], 0);
        until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
        assert!(place.events(&other).is_empty(), "{store}");
    }
}

/// W16.
#[test]
fn events_that_a_failover_has_undone_are_shown() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    place.detach(&["team.yaml"]);
    let shown = place.run(&["cluster"], 0).err;
    assert!(!shown.contains("events lost"), "{shown}");
    // As a process notes it whose appends the database has lost.
    let _ = server.sql("UPDATE polylogue.logs SET lost_events = 3");
    let shown = place.run(&["cluster"], 0).err;
    assert!(shown.contains("3 events lost"), "{shown}");
}

/// A conversation that cannot be run is parked with the reason, and is handed over again by a command.
#[test]
fn a_conversation_that_fails_repeatedly_is_parked_until_it_is_handed_over_again() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    let id = place.detach(&["team.yaml"]);
    // As if workers had died of it.
    let _ = server.sql("UPDATE polylogue.logs SET tries = 5");
    let _worker = place.worker(&[]);
    until("it is parked", || place.cluster().1.iter().any(|log| log["state"] == "parked"));
    let shown = place.run(&["cluster"], 0);
    assert!(shown.out.contains(&format!("parked  {id}  after 5 tries")), "{}", shown.out);
    assert!(shown.err.contains("`polylogue resume ID --detach`"), "{}", shown.err);
    place.run(&["resume", &id, "--detach"], 0);
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
    assert!(!is_held_or_ready(&place));
}

/// One that a person continues here, or by another scheduler, is parked no more.
#[test]
fn a_parked_conversation_that_is_run_by_its_id_is_parked_no_more() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    for command in [&["resume"][..], &["worker", "--only"]] {
        let id = place.detach(&["team.yaml"]);
        let _ = server
            .sql("UPDATE polylogue.logs SET due = NULL, is_parked = true, tries = 5 WHERE due IS NOT NULL");
        assert_eq!(place.cluster().1[0]["state"], "parked");
        place.run(&[command, &[&*id]].concat(), 0);
        assert_eq!(of_type(&place.events(&id), "closed").len(), 1);
        assert_eq!(place.cluster().1, Vec::<serde_json::Value>::new(), "{command:?}");
    }
}
