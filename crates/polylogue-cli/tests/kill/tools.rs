//! Tools with effects, in a conversation that is killed 200 times: one that may be called again, and one that may not. What they
//! did is counted in files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polylogue_test::server::{Answer, Behavior, Playbook, Received};
use serde_json::{Value, json};

use crate::place::{Kind, PATIENCE, Place};
use crate::random::Random;

const KILLS: usize = 200;
/// From something that was written down to somewhat after both tools have returned.
const WORKING: Duration = Duration::from_millis(45);

/// Ann calls both tools in every turn. There is no sandbox: a program that was started lives on when its parent is killed, which
/// is the harder case.
const TEAM: &str = r#"
name: tools
task: Work
sandbox: {backend: none}
agents:
  - {name: Ann, system: You are Ann., tools: [once, again], approval: never, parameters: {max_tokens: 1000}}
  - {name: Bob, model: none, default_reply: Go on.}
commands:
  - name: once
    description: Notes something, once
    command: [sh, -c, 'echo "$1" >> once.txt; sleep 0.01', once, "{id}"]
    arguments: {id: {type: string}}
  - name: again
    description: Notes something
    command: [sh, -c, 'echo "$1" >> again.txt; sleep 0.01', again, "{id}"]
    arguments: {id: {type: string}}
    repeatable: true
chat: {participants: [Ann, Bob], stop: {max_turns: 100000}, max_turns: 100000, loop_detection: off}
limits: {calls: 100000, tokens: 1000000000}
"#;

/// A pure function of the request: calls with the number of the turn, then a word.
fn reply(received: &Received) -> Answer {
    if received.messages().last().is_some_and(|message| message["role"] == "tool") {
        return Answer::text("Noted.");
    }
    let calls = received.messages().iter().filter(|message| message.get("tool_calls").is_some()).count();
    let args = json!({"id": format!("n{calls}")});
    Answer::text("I note.").call("once", args.clone()).call("again", args)
}

/// How much is written down.
fn logged(place: &Place) -> u64 {
    let files = fs::read_dir(place.store()).into_iter().flatten().flatten();
    let logs = files.filter(|file| file.path().extension().is_some_and(|end| end == "jsonl"));
    logs.filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum()
}

/// Begins or resumes the conversation, and kills it a while after it wrote something down.
fn run_and_kill(place: &Place, wait: Duration) {
    let (before, begun) = (logged(place), Instant::now());
    let args: &[&str] = match before > 0 {
        true => &["resume", "last"],
        false => &["run", "team.yaml", "--model", "openai:test", "--allow", "unsafe-host"],
    };
    loop {
        let mut process = place.begin(args);
        if process.kill_when(|| logged(place) != before, wait).is_none() {
            return;
        }
        // A program that was being started holds the log until it is under way.
        let errors = process.errors();
        assert!(begun.elapsed() < PATIENCE && errors.contains("another process"), "{errors}");
    }
}

/// The work directory.
fn work(place: &Place) -> PathBuf {
    let dirs = fs::read_dir(place.store().with_extension("work")).unwrap();
    let dirs: Vec<PathBuf> = dirs.map(|entry| entry.unwrap().path()).collect();
    let [dir] = &dirs[..] else { panic!("{dirs:?}") };
    dir.clone()
}

/// How often each line is in a file.
fn counted(path: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap_or_default().lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn a_tool_is_called_again_only_if_it_may_be() {
    let model = Behavior::from(Playbook::new(|received, _| reply(received)));
    let (place, mut random) = (Place::of(Kind::Jsonl, TEAM, model), Random::of_environment());
    place.file(".config/polylogue/approvals.yaml", "- allow: {command: '*'}\n");
    for _ in 0..KILLS {
        run_and_kill(&place, random.time_below(WORKING));
    }
    let [once, again] = ["once.txt", "again.txt"].map(|file| counted(&work(&place).join(file)));
    assert!(once.values().all(|times| *times == 1), "something was done twice: {once:?}");
    let mut open: BTreeMap<String, (String, String)> = BTreeMap::new();
    let (mut done, mut unknown, mut known) = (0, 0, Vec::new());
    for event in place.lines(&["show", "last", "--json"]) {
        match event["type"].as_str().unwrap() {
            "tool_called" => {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let (id, tool) = (text(&event["call"]["id"]), text(&event["call"]["tool"]));
                let line = text(&event["call"]["args"]["id"]);
                known.push(line.clone());
                assert!(open.insert(id, (tool, line)).is_none(), "a call is in the log once");
            }
            "tool_returned" => {
                let (tool, line) =
                    open.remove(event["id"].as_str().unwrap()).expect("what returned was called");
                let counts = if tool == "again" { &again } else { &once };
                let times = counts.get(&line).copied().unwrap_or_default();
                match event["result"]["status"].as_str().unwrap() {
                    "done" if tool == "again" => assert!(times >= 1, "{line} was done"),
                    "done" => assert_eq!(times, 1, "{line} was done once"),
                    "unknown" => assert!(tool == "once" && times <= 1, "{tool} {line}: {times} times"),
                    status => panic!("{tool} {line}: {status}: {event}"),
                }
                done += usize::from(event["result"]["status"] == "done");
                unknown += usize::from(event["result"]["status"] == "unknown");
            }
            _ => {}
        }
    }
    assert!(
        once.keys().chain(again.keys()).all(|line| known.contains(line)),
        "all that was done is in the log"
    );
    let repeated = again.values().filter(|times| **times > 1).count();
    println!(
        "{KILLS} kills: {done} calls were done, {unknown} have an unknown outcome, {repeated} were made again"
    );
    assert!(done >= 20 && unknown >= 10 && repeated >= 1, "the kills hit nothing");
}
