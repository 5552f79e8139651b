//! Tools that fail in every way they can, in one conversation: each failure is a result that the model reads, the run continues to
//! its end, and the log is whole.
//!
//! There is no sandbox here, so that it works on every machine. (That a custom tool may panic is shown where
//! tools are written: no tool that ships does.)

use polylogue_test::skip::has_python;
use serde_json::{Value, json};

use crate::home::{Home, of_type};

/// What the model does, what its next request has to hold, and how the call ended.
const STEPS: [(&str, &str, &str, &str); 9] = [
    ("old_script", "{}", "there is no program `an-interpreter-that-is-not-there`", "failed"),
    ("shell", r#"{"code": "printf 'a\\000\\377\\376\\033[2Jb'"}"#, "\u{fffd}\u{fffd}\u{1b}[2Jb", "done"),
    ("shell", r#"{"code": "no-such-program --help"}"#, "exitcode: 127 (execution failed)", "failed"),
    (
        "python_session",
        r#"{"code": "x = 7\nimport os\nos.kill(os.getpid(), 9)"}"#,
        "The session ended (Ended by signal 9)",
        "failed",
    ),
    ("python_session", r#"{"code": "x"}"#, "NameError: name 'x' is not defined", "failed"),
    ("crash", "{}", "Ended by signal 6", "failed"),
    ("write_file", r#"{"path": 7, "content": "x"}"#, "`path`", "failed"),
    ("write_file", r#"{"path": "../../out.txt", "content": "x"}"#, "is not in the work directory", "failed"),
    ("no_such_tool", r#"{"a": 1}"#, "There is no tool `no_such_tool`", "failed"),
];

fn home() -> Option<Home> {
    if !has_python() {
        return None;
    }
    let mut script = Vec::new();
    let mut reported = None;
    for (nth, (tool, args, result, _)) in STEPS.iter().enumerate() {
        let args: Value = serde_json::from_str(args).unwrap();
        let mut step = json!({"calls": [{"tool": tool, "args": args, "id": format!("c{nth}")}]});
        if let Some(reported) = reported.replace(*result) {
            step["expect"] = json!({"last": reported});
        }
        script.push(json!({"Ann": step}));
    }
    script.push(
        json!({"Ann": {"say": "All of it went wrong, and I am still here.", "expect": {"last": reported}}}),
    );
    let home = Home::new();
    let text = format!(
        "
name: breakdowns
task: Try everything.
sandbox: {{backend: none}}
agents:
  - {{name: Ann, tools: [shell, python_session, files, old_script, crash], approval: never}}
commands:
  - {{name: old_script, description: Runs an old script, command: [an-interpreter-that-is-not-there, old.script]}}
  - {{name: crash, description: Breaks down, command: [sh, -c, 'echo begun; kill -6 $$']}}
chat: {{participants: [Ann], pattern: sequential}}
script: {}
",
        Value::Array(script)
    );
    home.file("team.yaml", &text);
    home.allow_programs();
    Some(home)
}

#[test]
fn the_model_reads_every_failure_of_a_tool_and_the_run_continues() {
    let Some(home) = home() else { return };
    let ran = home.run(&["run", "team.yaml", "--offline", "--allow", "unsafe-host"]).ok();
    assert!(ran.out.contains("All of it went wrong, and I am still here."), "{}", ran.out);
    // What binary output says to a terminal, none obeys.
    assert!(!ran.out.contains('\u{1b}') && !ran.out.contains('\0'), "{:?}", ran.out);
    assert!(!home.path("out.txt").exists() && !home.path("store.db.work/out.txt").exists());

    let events = home.events();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let (called, returned) = (of_type(&events, "tool_called"), of_type(&events, "tool_returned"));
    assert_eq!((called.len(), returned.len()), (STEPS.len(), STEPS.len()));
    for (nth, (tool, _, result, status)) in STEPS.iter().enumerate() {
        let outcome = &returned[nth]["result"];
        let text = outcome["parts"][0]["text"].as_str().unwrap();
        assert!(text.contains(result), "{tool}: {text}");
        assert_eq!(outcome["status"].as_str().unwrap(), *status, "{tool}: {text}");
    }
    assert_eq!(events.last().unwrap()["type"], "closed");
    // It is over, and can be read in every way there is.
    let before = events.len();
    home.run(&["resume", "last"]).ok();
    assert_eq!(home.events().len(), before);
    for how in [&["show", "last"][..], &["show", "last", "--markdown"], &["show", "last", "--as", "Ann"]] {
        let shown = home.run(how).ok().out;
        assert!(shown.contains("The session ended (Ended by signal 9)"), "{how:?}: {shown}");
    }
}
