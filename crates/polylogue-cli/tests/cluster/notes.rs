//! A team whose tool writes to a file outside, and the model that speaks for it: a pure function of the request.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, Playbook, Received, Server};
use serde_json::{Value, json};

use crate::place::{Place, of_type};

/// How many notes a conversation writes.
pub(crate) const NOTES: usize = 4;

/// Ann writes a note in each of her turns. There is no sandbox for the program, which survives the death of its worker: the harder case.
fn team(place: &Place) -> String {
    let file = place.path("notes.txt").display().to_string();
    format!(
        r#"
name: notes
task: job-0
sandbox: {{backend: none}}
agents:
  - {{name: Ann, system: You are Ann., tools: [note], approval: never, parameters: {{max_tokens: 1000}}}}
  - {{name: Bob, model: none, default_reply: Go on.}}
commands:
  - name: note
    description: Writes a note, once
    command: [sh, -c, 'echo "$1" >> {file}; sleep 0.01', note, "{{id}}"]
    arguments: {{id: {{type: string}}}}
chat: {{participants: [Ann, Bob], stop: {{max_turns: {turns}}}, loop_detection: off}}
limits: {{calls: 1000, tokens: 100000000}}
"#,
        turns = 2 * NOTES
    )
}

/// A model that takes `latency` for each reply.
pub(crate) fn model(latency: Duration) -> Server {
    let book = Playbook::new(|received, _| reply(received));
    Server::bind((Ipv4Addr::LOCALHOST, 0).into(), Behavior::from(book).latency(latency)).unwrap()
}

fn reply(received: &Received) -> Answer {
    let messages = received.messages();
    if messages.last().is_some_and(|message| message["role"] == "tool") {
        return Answer::text("Noted.");
    }
    let text = Value::from(messages).to_string();
    let job = text.split("job-").nth(1).unwrap_or_default();
    let job: String = job.chars().take_while(char::is_ascii_digit).collect();
    let calls = messages.iter().filter(|message| message.get("tool_calls").is_some()).count();
    Answer::text("I note.").call("note", json!({"id": format!("{job}.{calls}")}))
}

/// Prepares the home folder for the team.
pub(crate) fn prepare(place: &Place) {
    place.file("team.yaml", &team(place));
    place.file("notes.txt", "");
    place.file(".config/polylogue/approvals.yaml", "- allow: {command: '*'}\n");
}

/// Hands the conversation of this number over to workers, and returns its id.
#[track_caller]
pub(crate) fn detach(place: &Place, job: usize) -> String {
    let task = format!("job-{job}");
    place.detach(&["team.yaml", &task, "--model", "openai:test", "--allow", "unsafe-host"])
}

/// Hands `count` of them over.
pub(crate) fn detach_all(place: &Place, count: usize) -> Vec<String> {
    (0..count).map(|job| detach(place, job)).collect()
}

/// How often each note was written.
pub(crate) fn written(place: &Place) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(place.path("notes.txt")).unwrap();
    let mut count = BTreeMap::new();
    text.lines().for_each(|line| *count.entry(line.to_owned()).or_default() += 1);
    count
}

/// Every conversation has ended as if nothing had happened, and each call that has finished did so once. Returns how many calls were in
/// flight when something happened to their workers.
#[track_caller]
pub(crate) fn assert_as_undisturbed(place: &Place, ids: &[String]) -> usize {
    let written = written(place);
    let mut in_flight = 0;
    for (job, id) in ids.iter().enumerate() {
        let events = place.events(id);
        let said: Vec<&str> =
            of_type(&events, "message").iter().filter_map(|said| said["parts"][0]["text"].as_str()).collect();
        assert_eq!(said, ["Noted.", "Go on."].repeat(NOTES), "{id}");
        assert_eq!(of_type(&events, "closed").len(), 1, "{id}");
        let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (0..events.len() as u64).collect::<Vec<_>>(), "{id}");
        let (called, returned) = (of_type(&events, "tool_called"), of_type(&events, "tool_returned"));
        assert_eq!(
            (called.len(), returned.len()),
            (NOTES, NOTES),
            "{id}: no call is repeated, each has an outcome"
        );
        for (nth, returned) in returned.iter().enumerate() {
            let times = written.get(&format!("{job}.{nth}")).copied().unwrap_or_default();
            match is_done(returned) {
                true => assert_eq!(times, 1, "{id}: the call {nth} has finished"),
                false => {
                    assert!(times <= 1, "{id}: the call {nth} in flight was repeated");
                    in_flight += 1;
                }
            }
        }
    }
    in_flight
}

/// Whether a call has finished, and its outcome is not unknown.
fn is_done(returned: &Value) -> bool {
    returned["result"]["status"] == "done"
}
