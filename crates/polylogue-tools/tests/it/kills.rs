//! A conversation whose process is killed 200 times, and what its tools did meanwhile, counted in files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use polylogue::layers::{Coder, Stack};
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::tools::FunctionTool;
use polylogue::{Act, Chat, Error, Function, Log, Tool, round_robin};
use polylogue_core::{AnyStore, Body, LogId, StoreError, ToolCall, ToolStatus};
use polylogue_store::Jsonl;
use polylogue_tools::code::{Sandbox, shell};
use serde_json::Value;

use crate::{Dir, sandbox};

const KILLS: u32 = 200;
const DIR: &str = "POLYLOGUE_TEST_KILLED_IN";

/// Appends a line, and may be called again.
fn again(dir: &Path) -> impl Tool + use<> {
    let path = dir.join("again");
    FunctionTool::new("again", "Appends a line.", move |args: Value| {
        let path = path.clone();
        async move {
            append(&path, args["code"].as_str().unwrap_or_default().trim());
            Ok("appended")
        }
    })
    .repeatable()
}

fn append(path: &Path, line: &str) {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Ann asks for three blocks, each with its own id, and Bob runs them: two by a shell in a sandbox.
fn chat(dir: &Path) -> Chat {
    let ann = Function::new("Ann", |turn| {
        let nth = turn.transcript().turns_of(turn.me());
        let block = |id: &str| format!("```sh\nprintf '{nth}{id}\\n' >> effects\n```\n");
        Ok(Act::say(format!("{}```again\n{nth}b\n```\n{}", block("a"), block("c"))))
    });
    let coder = Coder::new().tool(shell(Sandbox::enclosed(dir.join("work")))).tool(again(dir));
    Chat::builder("killed")
        .participant(ann.unwrap())
        .participant(Stack::new("Bob").unwrap().then(coder))
        .policy(with_termination(round_robin(), max_turns(1_000_000)))
        .max_turns(1_000_000)
        .build()
        .unwrap()
}

/// What is killed: continues the conversation in the directory that the environment names.
#[tokio::test]
#[ignore = "runs only as a process of the test below"]
async fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    let (store, id) = (AnyStore::new(Jsonl::open(dir.join("logs")).unwrap()), LogId::new("killed").unwrap());
    let chat = chat(dir);
    if dir.join("begun").exists() {
        let mut log = reopened(&store, &id).await;
        chat.resume(&mut log).await.unwrap();
    } else {
        let mut log = Log::create(store, id).await.unwrap();
        append(&dir.join("begun"), "");
        chat.run_in(&mut log, "go").await.unwrap();
    }
}

/// The log of the process that was killed. If that was just starting a program, its copy holds the log a moment longer, until
/// it has closed all that it came with.
async fn reopened(store: &AnyStore, id: &LogId) -> Log {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match Log::open(store.clone(), id.clone()).await {
            Err(Error::Store(StoreError::Busy { .. })) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            log => return log.unwrap(),
        }
    }
}

/// Runs the conversation in its own process, and kills it some time after it has appended to its log `appends` times: a
/// loaded machine only takes longer for that.
fn run_and_kill(dir: &Path, appends: u64, wait: Duration) {
    let logged = || std::fs::metadata(dir.join("logs/killed.jsonl")).map_or(0, |about| about.len());
    let mut seen = logged();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::child", "--ignored", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::null())
        .stderr(std::fs::OpenOptions::new().create(true).append(true).open(dir.join("stderr")).unwrap())
        .spawn()
        .unwrap();
    let mut appended = 0;
    while appended < appends || !dir.join("begun").exists() {
        let now = logged();
        appended += u64::from(now != seen);
        seen = now;
        if let Some(status) = child.try_wait().unwrap() {
            panic!("it ended by itself: {status}\n{}", std::fs::read_to_string(dir.join("stderr")).unwrap());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(wait);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn lines(path: &Path) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap_or_default().lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

/// What a block appends.
fn line_of(call: &ToolCall) -> String {
    let code = call.args["code"].as_str().unwrap().trim();
    code.strip_prefix("printf '").map_or(code, |rest| rest.split('\\').next().unwrap()).to_owned()
}

#[tokio::test]
async fn a_tool_that_is_killed_repeatedly_does_nothing_twice() {
    let dir = Dir::new();
    if sandbox(&dir).is_none() {
        return;
    }
    let mut state = 11_u64;
    for _ in 0..KILLS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        run_and_kill(&dir.0, 1 + (state >> 33) % 6, Duration::from_micros((state >> 40) % 8_000));
    }
    let store = AnyStore::new(Jsonl::open(dir.0.join("logs")).unwrap());
    let log = reopened(&store, &LogId::new("killed").unwrap()).await;
    let (effects, again) = (lines(&dir.0.join("work/effects")), lines(&dir.0.join("again")));
    let mut open: BTreeMap<String, ToolCall> = BTreeMap::new();
    let (mut done, mut unknown, mut known) = (0, 0, Vec::new());
    for event in log.events().await {
        match &event.body {
            Body::ToolCalled { call, .. } => {
                known.push(line_of(call));
                assert!(open.insert(call.id.clone(), call.clone()).is_none(), "a call is made once");
            }
            Body::ToolReturned { id, result: outcome, .. } => {
                let call = open.remove(id).expect("what returned was called");
                let (line, is_repeatable) = (line_of(&call), call.tool == "again");
                let times = if is_repeatable { &again } else { &effects }.get(&line).copied().unwrap_or(0);
                match outcome.status {
                    ToolStatus::Done if is_repeatable => assert!(times >= 1, "{line} was done"),
                    ToolStatus::Done => assert_eq!(times, 1, "{line} was done once"),
                    ToolStatus::Unknown => assert!(!is_repeatable && times <= 1, "{line}: {times} times"),
                    ToolStatus::Failed => panic!("{line} failed: {outcome:?}"),
                }
                done += u32::from(outcome.status == ToolStatus::Done);
                unknown += u32::from(outcome.status == ToolStatus::Unknown);
            }
            _ => {}
        }
    }
    assert!(effects.values().all(|times| *times == 1), "nothing was done twice: {effects:?}");
    assert!(
        effects.keys().chain(again.keys()).all(|line| known.contains(line)),
        "all that was done is in the log"
    );
    eprintln!("{KILLS} kills: {done} calls were done, the outcome of {unknown} is unknown");
    assert!(unknown >= 10 && done >= 10, "{done} done, {unknown} unknown: the kills hit nothing");
}
