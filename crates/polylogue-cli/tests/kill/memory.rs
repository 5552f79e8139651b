//! An agent that writes facts down, killed repeatedly: every fact is kept once, and none that was acknowledged is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, Playbook, Received};
use serde_json::json;

use crate::place::{Kind, Place, Shows};
use crate::random::{Moment, Random};

const KILLS: usize = 120;
/// From a request to somewhat after the fact that its reply asks for is written.
const WRITING: Duration = Duration::from_millis(30);

const TEAM: &str = "
name: notes
task: Work
agents:
  - {name: Ann, memory: {auto_recall: 1}, parameters: {max_tokens: 1000}}
  - {name: Bob, model: none, default_reply: Go on.}
chat: {participants: [Ann, Bob], stop: {max_turns: 100000}, max_turns: 100000, loop_detection: off}
limits: {calls: 100000, tokens: 1000000000}
";

/// A pure function of the request: a fact with the number of the turn, then a word.
fn reply(received: &Received) -> Answer {
    if received.messages().last().is_some_and(|message| message["role"] == "tool") {
        return Answer::text("Noted.");
    }
    let calls = received.messages().iter().filter(|message| message.get("tool_calls").is_some()).count();
    Answer::tool("remember", json!({"text": format!("Fact {calls}.")}))
}

#[test]
fn every_fact_is_kept_once_however_often_its_writer_is_killed() {
    let model = Behavior::from(Playbook::new(|received, _| reply(received)));
    let (place, mut random) = (Place::of(Kind::Sqlite, TEAM, model), Random::of_environment());
    for nth in 0..KILLS {
        let mut process = place.start(nth > 0, Shows::Talk);
        let moment = Moment::Request(1, random.time_below(WRITING));
        assert_eq!(process.kill(moment), None, "it ended: {}", process.errors());
    }
    let mut kept: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for fact in place.lines(&["memory", "list", "--limit", "100000", "--json"]) {
        let (count, id) = kept.entry(fact["text"].as_str().unwrap().to_owned()).or_default();
        *count += 1;
        *id = fact["id"].as_u64().unwrap();
    }
    let (mut called, mut returned) = (BTreeMap::new(), 0);
    for event in place.lines(&["show", "last", "--json"]) {
        if event["type"] == "tool_called" && event["call"]["tool"] == "remember" {
            let id = event["call"]["id"].as_str().unwrap().to_owned();
            called.insert(id, event["call"]["args"]["text"].as_str().unwrap().to_owned());
        }
        let Some(text) = event["id"].as_str().and_then(|id| called.get(id)) else { continue };
        if event["type"] == "tool_returned" {
            returned += 1;
            let (count, id) = kept.get(text).unwrap_or_else(|| panic!("`{text}` was lost"));
            assert_eq!(*count, 1, "`{text}` was written {count} times");
            assert_eq!(event["result"]["parts"][0]["text"], format!("Remembered as #{id}."));
        }
    }
    println!("{KILLS} kills, {} calls, {returned} returned, {} facts", called.len(), kept.len());
    assert!(returned >= 20, "{returned}");
    assert!(called.len() - returned <= 1, "only the last call may be open");
    assert!(kept.values().all(|(count, _)| *count == 1) && kept.len() <= called.len());
}
