//! Teams whose programs run in containers, by an engine on the path that writes down its arguments and runs them here.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::home::{Home, of_type};

/// An engine that runs its arguments in the directory that would be `/work`.
const ENGINE: &str = r#"#!/bin/sh
here=$(dirname "$0")
case "$1" in
version) echo "27.0 27.0" ;;
kill) kill -9 "-$(cat "$here/pid")"; echo "$*" >> "$here/calls" ;;
rm) echo "$*" >> "$here/calls" ;;
run)
  shift
  while :; do
    printf '%s\n' "$1" >> "$here/args"
    case "$1" in
    --cidfile=*) id=${1#*=} ;;
    --mount=*,target=/work*) work=${1#*source=}; work=${work%%,*} ;;
    --*) ;;
    *) shift; break ;;
    esac
    shift
  done
  echo 1234 > "$id"
  cd "$work" || exit 125
  setsid "$@" &
  echo $! > "$here/pid"
  wait $!
  ;;
esac
"#;

const DOWN: &str = r#"#!/bin/sh
echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?" >&2
exit 125
"#;

/// A team that runs `code` in containers of Docker, which is this script.
fn home(engine: &str, code: &str) -> Home {
    let mut home = Home::new();
    fs::create_dir(home.path("bin")).unwrap();
    let path = home.path("bin/docker");
    fs::write(&path, engine).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    home.set("PATH", &format!("{}:/usr/bin:/bin", home.path("bin").display()));
    let step = serde_json::json!({"Coder": format!("```sh\n{code}\n```")});
    let text = format!(
        "
name: t
task: go
sandbox: {{backend: docker, image: 'python:3.12-slim', timeout: 1 s, memory_mib: 64}}
agents: [{{name: Coder}}, {{name: Runner, model: none, code_execution: {{languages: [shell]}}}}]
chat: {{participants: [Coder, Runner], pattern: sequential}}
script: [{step}]
"
    );
    home.file("team.yaml", &text);
    home
}

#[test]
fn programs_run_in_containers_of_the_engine_on_the_path() {
    let home = home(ENGINE, "echo from the container > made.txt; cat made.txt");
    // Nothing has to be allowed: a container is a sandbox.
    let ran = home.run(&["run", "team.yaml", "--offline"]).ok();
    assert!(
        ran.out.contains("exitcode: 0 (execution succeeded)\nCode output: from the container"),
        "{}",
        ran.out
    );
    let work = home.path("store.db.work").join(home.id());
    assert_eq!(fs::read_to_string(work.join("made.txt")).unwrap(), "from the container\n");
    let args = fs::read_to_string(home.path("bin/args")).unwrap();
    let mount = format!("--mount=type=bind,source={},target=/work", work.canonicalize().unwrap().display());
    for arg in [
        "--rm", "--read-only", "--pull=never", "--network=none", "--cap-drop=ALL", "--memory=67108864",
        &mount, "python:3.12-slim",
    ] {
        assert!(args.lines().any(|line| line == arg), "`{arg}` is not among:\n{args}");
    }
    assert!(!home.path("bin/calls").exists());
}

#[test]
fn a_container_that_takes_too_long_is_killed_and_removed_and_the_run_continues() {
    let home = home(ENGINE, "echo begun; sleep 600");
    let ran = home.run(&["run", "team.yaml", "--offline"]).ok();
    assert!(ran.out.contains("exitcode: 124 (execution failed)\nCode output: begun"), "{}", ran.out);
    let calls = fs::read_to_string(home.path("bin/calls")).unwrap();
    assert!(calls.starts_with("kill polylogue-") && calls.contains("\nrm --force polylogue-"), "{calls}");
}

#[test]
fn an_engine_that_does_not_run_is_the_result_of_the_call() {
    let home = home(DOWN, "echo never");
    let ran = home.run(&["run", "team.yaml", "--offline"]).ok();
    assert!(
        ran.out
            .contains("the container engine `docker` made no container: Cannot connect to the Docker daemon"),
        "{}",
        ran.out
    );
    let events = home.events();
    assert_eq!(of_type(&events, "tool_returned")[0]["result"]["status"], "failed");
    assert_eq!(events.last().unwrap()["type"], "closed");
}
