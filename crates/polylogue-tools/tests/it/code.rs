//! Code that runs, fails, hangs, floods and is left alone.

use std::time::{Duration, Instant};

use polylogue_core::{Tool, ToolStatus};
use polylogue_tools::code::{Code, Limits, Sandbox, javascript, python, save, shell};
use serde_json::json;

use crate::{Dir, call, done, failed, result_of, sandbox};

const OK: &str = "exitcode: 0 (execution succeeded)\nCode output:";

/// Whether a process of this machine was started with `word` among its arguments.
fn is_running(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line.split(|byte| *byte == 0).any(|arg| arg == word.as_bytes()))
}

/// A number of seconds that no other test sleeps for.
fn long(nth: u32) -> String {
    format!("{}.{}", 100_000 + nth, std::process::id())
}

fn in_time(sandbox: Sandbox, time: Duration) -> Sandbox {
    let limits = Limits { time, ..*sandbox.limits() };
    sandbox.limited(limits)
}

#[tokio::test]
async fn three_languages_run_and_say_what_they_print() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let tool = python(sandbox.clone());
    assert_eq!(done(&tool, json!({"code": "print(6 * 7)"})).await, format!("{OK} 42"));
    assert_eq!(done(&tool, json!({"code": "```python\nprint(6 * 7)\n```"})).await, format!("{OK} 42"));
    let out = done(&shell(sandbox.clone()), json!({"code": "pwd\necho err >&2"})).await;
    assert_eq!(out, format!("{OK} /work\nerr"));
    if !std::path::Path::new("/usr/bin/node").exists() {
        polylogue_test::skip::skipped("in part: there is no Node.js");
        return;
    }
    let out = done(&javascript(sandbox), json!({"code": "console.log([1, 2].map(x => x * 2))"})).await;
    assert_eq!(out, format!("{OK} [ 2, 4 ]"));
}

#[tokio::test]
async fn failures_are_results_with_their_exit_code() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let out = failed(&shell(sandbox.clone()), json!({"code": "echo before\nexit 3"})).await;
    assert_eq!(out, "exitcode: 3 (execution failed)\nCode output: before");
    let out = failed(&python(sandbox.clone()), json!({"code": "print('a')\n1 / 0"})).await;
    assert!(out.starts_with("exitcode: 1 (execution failed)\nCode output: a\nTraceback"), "{out}");
    assert!(out.ends_with("ZeroDivisionError: division by zero"), "{out}");
    let out = failed(&shell(sandbox), json!({"code": "printf half; kill -9 $$"})).await;
    assert_eq!(out, "exitcode: 137 (execution failed)\nCode output: half\nEnded by signal 9");
}

#[tokio::test]
async fn a_missing_interpreter_is_a_result() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let tool = python(sandbox.clone()).interpreter("python9");
    assert_eq!(
        failed(&tool, json!({"code": "print(1)"})).await,
        "exitcode: 1 (execution failed)\nCode output: there is no program `python9` in /usr/local/bin, /usr/bin, /bin"
    );
    let tool = python(sandbox).interpreter("/nowhere/python");
    let out = failed(&tool, json!({"code": "print(1)"})).await;
    assert!(out.contains("`/nowhere/python` cannot be run in the sandbox"), "{out}");
}

#[tokio::test]
async fn of_output_that_is_not_text_the_legible_part_is_printed() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let code = "import sys; sys.stdout.buffer.write(b'a\\xff\\xfe\\x00b\\xc3\\xa9')";
    let out = done(&python(sandbox), json!({"code": code})).await;
    assert_eq!(out, format!("{OK} a\u{fffd}\u{fffd}\u{0}b\u{e9}"));
}

// Item 68, trap T31.
#[tokio::test]
async fn a_timeout_kills_all_descendants_of_a_program() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let (child, grandchild) = (long(1), long(2));
    let code = format!("echo begun\nsetsid sh -c 'sleep {grandchild} & sleep {grandchild}' &\nsleep {child}");
    let tool = shell(in_time(sandbox, Duration::from_secs(1)));
    let began = Instant::now();
    let out = failed(&tool, json!({"code": code})).await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(out, "exitcode: 124 (execution failed)\nCode output: begun\nTimeout");
    assert!(!is_running(&child) && !is_running(&grandchild), "something outlived the run");
}

// A background process holds the output open, and is none the less over with its program.
#[tokio::test]
async fn background_processes_end_with_their_program() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let sleep = long(3);
    let out = done(&shell(sandbox), json!({"code": format!("sleep {sleep} &\necho done")})).await;
    assert_eq!(out, format!("{OK} done"));
    assert!(!is_running(&sleep));
}

#[tokio::test]
async fn a_run_whose_caller_is_dropped_is_ended() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let sleep = long(4);
    let tool = shell(sandbox);
    let run = call(&tool, json!({"code": format!("touch begun; sleep {sleep}")}));
    let begun = dir.work().join("begun");
    let has_begun = async {
        while !begun.exists() || !is_running(&sleep) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcome = run => panic!("it ended: {outcome:?}"),
        () = has_begun => {}
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    while is_running(&sleep) {
        assert!(Instant::now() < deadline, "it still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_program_that_is_only_run_leaves_no_file_in_a_project() {
    let dir = Dir::new();
    let tool = shell(Sandbox::unsafe_host(dir.work()).project());
    let sleep = long(5);
    let files = || -> Vec<_> {
        std::fs::read_dir(dir.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    done(&tool, json!({"code": "true"})).await;
    assert!(files().is_empty(), "{:?}", files());
    let run = call(&tool, json!({"code": format!("touch begun; sleep {sleep}")}));
    let has_begun = async {
        while !is_running(&sleep) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcome = run => panic!("it ended: {outcome:?}"),
        () = has_begun => {}
    }
    assert_eq!(files(), ["begun"], "the call was cancelled");
}

#[tokio::test]
async fn output_memory_and_files_are_bounded() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let limits =
        Limits { output_bytes: 1000, memory_bytes: 256 << 20, file_bytes: 1 << 20, ..Limits::default() };
    let sandbox = sandbox.limited(limits);
    let out = failed(&shell(sandbox.clone()), json!({"code": "yes"})).await;
    let expected =
        format!("exitcode: 137 (execution failed)\nCode output: {}Ended: too much output", "y\n".repeat(500));
    assert_eq!(out, expected);
    let out = failed(&python(sandbox.clone()), json!({"code": "x = bytearray(1 << 30)"})).await;
    assert!(out.contains("MemoryError"), "{out}");
    let code = "with open('big', 'wb') as f:\n    for _ in range(64): f.write(bytes(1 << 16))";
    let (status, out) = result_of(&python(sandbox), json!({"code": code})).await;
    assert_eq!(status, ToolStatus::Failed, "{out}");
    assert!(std::fs::metadata(dir.work().join("big")).unwrap().len() <= 1 << 20);
}

// Item 70.
#[tokio::test]
async fn files_are_written_to_their_directory_and_listed() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let tool = python(sandbox);
    let code =
        "import os\nopen('out.csv', 'w').write('a,b')\nos.makedirs('sub')\nopen('sub/x', 'w').write('1')";
    let out = done(&tool, json!({"code": code, "filename": "make/it.py"})).await;
    assert_eq!(out, format!("{OK}\n\nFiles written: `out.csv` (3 bytes), `sub/x` (1 bytes)"));
    assert_eq!((dir.read("work/make/it.py"), dir.read("work/out.csv")), (code.into(), "a,b".into()));
    // What is only read, or was there before, is not listed.
    let out = done(&tool, json!({"code": "print(open('out.csv').read())"})).await;
    assert_eq!(out, format!("{OK} a,b"));
    let out =
        done(&save(tool.sandbox().clone()), json!({"code": "1", "filename": "/work/sub/whole.txt"})).await;
    assert!(out.contains("Code saved to /work/sub/whole.txt"), "{out}");
    assert_eq!(dir.read("work/sub/whole.txt"), "1");
    for name in ["../a.py", "/etc/a.py", "sub/../../a.py", ""] {
        let out = failed(&tool, json!({"code": "print(1)", "filename": name})).await;
        let expected =
            format!("exitcode: 1 (execution failed)\nCode output: `{name}` is not in the work directory");
        assert_eq!(out, expected);
    }
    assert!(!dir.0.join("a.py").exists());
    // A name is not an option, and is shown unchanged.
    let code = "raise ValueError('x')";
    for name in ["-c.py", "sub/a b.py"] {
        let out = failed(&tool, json!({"code": code, "filename": name})).await;
        assert!(
            out.contains(&format!("/work/{name}\"")) || out.contains(&format!("/work/./{name}\"")),
            "{out}"
        );
        assert!(out.ends_with("ValueError: x"), "{out}");
    }
}

// A program may leave a link behind; what is written next does not follow it out.
#[tokio::test]
async fn a_link_left_behind_leads_nowhere() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    dir.write("secret.py", "print('mine')");
    let target = dir.0.display();
    let tool = shell(sandbox.clone());
    let code = format!("ln -s {target}/secret.py a.py; ln -s {target} out; ln -s / root");
    done(&tool, json!({"code": code})).await;
    for file in ["a.py", "out/b.py", "root/etc/b.py"] {
        let (_, out) =
            result_of(&python(sandbox.clone()), json!({"code": "print(1)", "filename": file})).await;
        assert!(!out.contains("mine"), "{out}");
    }
    assert_eq!(dir.read("secret.py"), "print('mine')");
    assert!(!dir.0.join("b.py").exists() && !std::path::Path::new("/etc/b.py").exists());
}

// Item 69.
#[tokio::test]
async fn a_saved_file_is_reported_with_its_path() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let tool = save(sandbox);
    let out = done(&tool, json!({"code": "<p>Hi</p>", "filename": "a.html", "language": "html"})).await;
    assert_eq!(out, format!("{OK} Code saved to /work/a.html"));
    assert_eq!(dir.read("work/a.html"), "<p>Hi</p>");
    let out = done(&tool, json!({"code": "p { }", "language": "css"})).await;
    let name = out.strip_prefix(&format!("{OK} Code saved to /work/")).unwrap();
    assert!(name.starts_with("code_") && name.ends_with(".css"), "{name}");
    assert_eq!(dir.read(&format!("work/{name}")), "p { }");
}

#[tokio::test]
async fn wrong_arguments_are_named_in_the_result() {
    let tool = shell(Sandbox::enclosed("never-made"));
    let wrong = "`code` must be a text: the whole program";
    assert_eq!(failed(&tool, json!({})).await, wrong);
    assert_eq!(failed(&tool, json!({"code": 1})).await, wrong);
    assert!(!std::path::Path::new("never-made").exists(), "nothing is made before something runs");
}

#[test]
fn the_tool_specification_names_every_argument() {
    let sandbox = || Sandbox::enclosed("work");
    let tools: [Code; 4] = [python(sandbox()), shell(sandbox()), javascript(sandbox()), save(sandbox())];
    let names = tools.each_ref().map(|tool| &*tool.spec().name);
    assert_eq!(names, ["python", "shell", "javascript", "save"]);
    for tool in &tools {
        assert!(!tool.spec().repeatable, "running code twice is not running it once");
        assert_eq!(tool.spec().parameters["required"], json!(["code"]));
        let has_language = tool.spec().parameters["properties"].get("language").is_some();
        assert_eq!(has_language, tool.spec().name == "save");
    }
}
