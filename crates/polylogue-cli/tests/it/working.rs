//! Teams that run programs: what has to be allowed, where the files are, who is asked, and what becomes of a run that is
//! killed.
//!
//! There is no sandbox here, so that it works on every machine; the sandbox is tested elsewhere.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::Value;

use crate::home::{Home, PROGRAM, of_type, shipped, until};
use crate::terminal::Terminal;

/// A team whose `Runner` runs what its `Coder` wrote, which is `code`.
fn team(home: &Home, runs: &str, code: &str) {
    let step = serde_json::json!({"Coder": format!("```sh\n{code}\n```")});
    let text = format!(
        "name: t
task: go
files: [data.txt]
sandbox: {{backend: none}}
agents: [{{name: Coder}}, {{name: Runner, model: none, code_execution: {runs}}}]
chat: {{participants: [Coder, Runner], pattern: sequential}}
script: [{step}]
"
    );
    home.file("team.yaml", &text);
    home.file("data.txt", "brought along\n");
}

const RUN: [&str; 5] = ["run", "team.yaml", "--offline", "--allow", "unsafe-host"];

fn work(home: &Home) -> PathBuf {
    home.path("store.db.work").join(home.id())
}

#[test]
fn programs_without_a_sandbox_must_be_allowed_by_the_user() {
    let home = Home::new();
    home.allow_programs();
    team(&home, "{approval: never}", "cat data.txt > copy.txt; cat copy.txt");
    let refused = home.run(&["run", "team.yaml", "--offline"]).exits(2);
    assert!(refused.err.contains("all your rights") && refused.err.contains("add `--allow unsafe-host`"));
    assert!(!home.path("store.db").exists() && !home.path("store.db.work").exists());
    let wrong = home.run(&["run", "team.yaml", "--allow", "everything"]).exits(2);
    assert!(wrong.err.contains("expected one of unsafe-host, network, readable"), "{}", wrong.err);
    let ran = home.run(&RUN).ok();
    assert!(ran.err.contains("`t` is allowed to run on this machine with all your rights"));
    assert!(ran.out.contains("Code output: brought along"), "{}", ran.out);
    let files = format!("files: {} (", work(&home).display());
    assert!(ran.out.contains(&files) && ran.out.contains("copy.txt, data.txt)"), "{}", ran.out);
    let shown = home.run(&["show", "last"]).ok();
    assert!(shown.out.trim_end().lines().last().unwrap().starts_with(&files), "{}", shown.out);
    let removed = work(&home);
    assert!(removed.join("copy.txt").exists());
    home.run(&["rm", "last"]).ok();
    assert!(!removed.exists());
}

#[test]
fn a_person_at_the_terminal_is_asked_before_code_runs() {
    let home = Home::new();
    team(&home, "true", "echo ran > ran.txt");
    let mut terminal = Terminal::open(&home, (100, 40), &RUN);
    terminal.wait_for_question("`exit` ends the conversation.");
    assert!(
        terminal.sees().contains("`Runner` is about to run sh code:\n\n── 1 line\necho ran > ran.txt\n──\n"),
        "{}",
        terminal.sees()
    );
    assert!(!work(&home).join("ran.txt").exists());
    terminal.press("yes\r");
    let (code, _) = terminal.end();
    assert_eq!(code, 0);
    assert_eq!(fs::read_to_string(work(&home).join("ran.txt")).unwrap(), "ran\n");
}

#[test]
fn an_approval_can_be_given_later_and_the_work_directory_is_the_same() {
    let home = Home::new();
    team(&home, "{approval: {matches: cat}}", "cat data.txt");
    home.run(&RUN).exits(5);
    let dir = work(&home);
    fs::write(dir.join("data.txt"), "changed meanwhile\n").unwrap();
    // What was allowed when it began is allowed still.
    let resumed = home.run(&["resume", "last", "--answer", "yes"]).ok();
    assert!(resumed.out.contains("Code output: changed meanwhile"), "{}", resumed.out);
    assert_eq!(work(&home), dir);
}

#[test]
fn code_that_ran_when_the_process_was_killed_is_reported_and_not_run_again() {
    let home = Home::new();
    home.allow_programs();
    team(&home, "{approval: never}", "echo run >> runs.txt; sleep 2");
    let running = home.start(&RUN);
    until("there is a conversation", || home.path("store.db").exists() && !home.listed().is_empty());
    let runs = work(&home).join("runs.txt");
    until("the code runs", || fs::read_to_string(&runs).is_ok_and(|text| !text.is_empty()));
    running.signal(Signal::KILL);
    running.end();
    let resumed = home.run(&["resume", "last"]).ok();
    assert!(resumed.out.contains("unknown"), "{}", resumed.out);
    let events = home.events();
    let (called, returned) = (of_type(&events, "tool_called"), of_type(&events, "tool_returned"));
    assert_eq!((called.len(), returned.len()), (1, 1));
    assert_eq!(returned[0]["result"]["status"], Value::from("unknown"), "{}", returned[0]);
    assert_eq!(fs::read_to_string(&runs).unwrap(), "run\n");
}

#[test]
fn an_agent_whose_command_hangs_receives_a_timeout_and_continues() {
    let home = Home::new();
    home.allow_programs();
    let text = r#"name: t
task: go
sandbox: {backend: none}
commands:
  - {name: hang, description: Hangs, command: [sh, -c, "echo $$ > pid.txt; exec sleep 600"]}
  - {name: long, description: Prints much, command: [seq, "5000"]}
agents: [{name: A, tools: [hang, long], tool_limits: {timeout: 2 s, max_output_bytes: 200}, approval: never}]
chat: {participants: [A], pattern: sequential}
script:
  - A: {calls: [{tool: hang}, {tool: long}]}
  - A: I go on.
"#;
    home.file("team.yaml", text);
    let begun = Instant::now();
    let ran = home.run(&RUN).ok();
    assert!(begun.elapsed() < Duration::from_secs(50), "the sandbox would have given it a minute");
    assert!(ran.out.contains("I go on."), "{}", ran.out);
    let events = home.events();
    let returned = of_type(&events, "tool_returned");
    let outcome = |nth: usize| (&returned[nth]["result"]["status"], returned[nth]["result"].to_string());
    let ((hung, why), (printed, much)) = (outcome(0), outcome(1));
    assert_eq!((hung, printed), (&Value::from("failed"), &Value::from("done")));
    assert!(why.contains("`hang` timed out: it did not return within 2s."), "{why}");
    assert!(much.contains("more bytes are left out") && much.len() < 400, "{much}");
    let pid = fs::read_to_string(work(&home).join("pid.txt")).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    assert!(test_kill_process(pid).is_err(), "the program is still there");
}

#[test]
fn every_conversation_of_a_batch_has_a_work_directory_of_its_own() {
    let home = Home::new();
    home.allow_programs();
    team(&home, "{approval: never}", "cat data.txt > copy.txt");
    home.file("rows.jsonl", "{\"task\": \"one\"}\n{\"task\": \"two\"}\n");
    let args = ["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl", "--offline"];
    assert!(home.run(&args).exits(2).err.contains("add `--allow unsafe-host`"));
    home.run(&[&args[..], &["--allow", "unsafe-host"]].concat()).ok();
    let place = home.path("store.db.work");
    let dirs: Vec<PathBuf> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(dirs.len(), 2);
    assert!(dirs.iter().all(|dir| dir.join("copy.txt").exists()), "{dirs:?}");
}

/// Finding out must not cost a model call.
#[test]
fn a_machine_without_a_sandbox_is_reported_at_once() {
    let home = Home::new();
    team(&home, "{approval: never}", "echo hi");
    let text =
        fs::read_to_string(home.path("team.yaml")).unwrap().replace("backend: none", "backend: native");
    home.file("team.yaml", &text);
    let none = "echo 0 > /proc/sys/user/max_user_namespaces && echo none && exec \"$@\"";
    let polylogue = env!("CARGO_BIN_EXE_polylogue");
    let args =
        ["--user", "--map-root-user", "sh", "-c", none, "-", polylogue, "run", "team.yaml", "--offline"];
    let ran = home.command("unshare", &args).output();
    let (out, err) = ran.map(|ran| (text_of(&ran.stdout), text_of(&ran.stderr))).unwrap_or_default();
    if !out.starts_with("none") {
        return polylogue_test::skip::skipped(&format!("namespaces cannot be forbidden here: {err}"));
    }
    let warning =
        "warning: the programs of `t` will be refused: the kernel makes no namespaces for this user";
    assert!(err.split_whitespace().collect::<Vec<_>>().join(" ").contains(warning), "{err}");
    assert!(out.contains("Code output: the sandbox does not work here"), "{out}");
    let path = home.path("bin");
    fs::create_dir(&path).unwrap();
    home.file("team.yaml", &text.replace("{backend: native}", "{backend: podman, image: none}"));
    let ran =
        home.command(polylogue, &["run", "team.yaml", "--offline"]).env("PATH", &path).output().unwrap();
    let err = text_of(&ran.stderr);
    assert!(
        err.contains("warning: the programs of `t` will be refused: ") && err.contains("`podman`"),
        "{err}"
    );
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A tree in the work directory of the newest conversation whose directories are closed to their owner.
const CLOSED: &str =
    "mkdir -p work/a/b/c && echo x > work/a/b/c/file && chmod 000 work/a/b/c work/a/b work/a";

#[test]
fn rm_removes_trees_with_directories_of_mode_0_also_for_an_ordinary_user() {
    let is_root = rustix::process::getuid().is_root();
    for ordinary in [false, true] {
        let home = Home::new();
        home.run(&["run", &shipped("writer-critic")]).ok();
        let id = home.id();
        let work = home.path(&format!("store.db.work/{id}"));
        let script = format!("mkdir -p {0} && ln -s {0} work && {CLOSED} && rm work", work.display());
        home.shell(&script).ok();
        let args = ["rm", &id];
        let mut rm = home.command(PROGRAM, &args);
        if ordinary && is_root {
            // The copy is where that user may run it.
            let copy = home.path("program");
            std::fs::copy(PROGRAM, &copy).unwrap();
            home.shell("chown -R 65534:65534 .").ok();
            let become_ordinary = ["--reuid=65534", "--regid=65534", "--clear-groups"];
            let copy = copy.display().to_string();
            rm = home.command("setpriv", &[&become_ordinary[..], &[&copy], &args].concat());
        }
        let Ok(ran) = rm.stdin(std::process::Stdio::null()).output() else {
            polylogue_test::skip::skipped("there is no `setpriv` to become an ordinary user with");
            continue;
        };
        let (output, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(output, format!("removed {id}\n"), "{errors}");
        assert!(std::fs::symlink_metadata(&work).is_err(), "{} is still there", work.display());
    }
}
