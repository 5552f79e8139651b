//! An agent that writes facts down, killed repeatedly: every fact is kept once, and none that was acknowledged is lost.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use polylogue_test::server::{Answer, Behavior, Playbook, Received, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::random::Random;

const KILLS: usize = 120;
const PATIENCE: Duration = Duration::from_secs(60);
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

struct Place {
    dir: TempDir,
    server: Server,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("team.yaml"), TEAM).unwrap();
        let model = Behavior::from(Playbook::new(|received, _| reply(received)));
        Self { dir, server: Server::bind((Ipv4Addr::LOCALHOST, 0).into(), model).unwrap() }
    }

    fn program(&self, args: &[&str]) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_polylogue"));
        program.env_clear().env("HOME", self.dir.path()).current_dir(self.dir.path());
        program.env("OPENAI_BASE_URL", self.server.base_url()).env("OPENAI_API_KEY", "test");
        program.args(args).args(["--store", "talk.db"]).stdin(Stdio::null());
        program
    }

    /// Begins or resumes the conversation, and kills it a while after it asked its model something.
    fn run_and_kill(&self, is_begun: bool, wait: Duration) {
        let (before, begun) = (self.server.count(), Instant::now());
        let mut child = self.start(is_begun);
        while self.server.count() == before {
            let ended = child.try_wait().unwrap().is_some();
            assert!(!ended && begun.elapsed() < PATIENCE, "it said: {}", self.errors());
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(wait);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn start(&self, is_begun: bool) -> Child {
        let args: &[&str] = match is_begun {
            true => &["resume", "last"],
            false => &["run", "team.yaml", "--model", "openai:test"],
        };
        let errors = File::create(self.dir.path().join("errors")).unwrap();
        self.program(args).stdout(Stdio::null()).stderr(errors).spawn().unwrap()
    }

    fn errors(&self) -> String {
        fs::read_to_string(self.dir.path().join("errors")).unwrap()
    }

    fn lines(&self, args: &[&str]) -> Vec<Value> {
        let output = self.program(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn every_fact_is_kept_once_however_often_its_writer_is_killed() {
    let (place, mut random) = (Place::new(), Random::of_environment());
    for nth in 0..KILLS {
        place.run_and_kill(nth > 0, random.time_below(WRITING));
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
