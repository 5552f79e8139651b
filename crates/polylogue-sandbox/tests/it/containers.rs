//! Programs in containers: by an engine that records its arguments, and by a real one where there is one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use polylogue_sandbox::{
    Cancellation, Engine, Error, ExitReason, Limits, Network, Program, Sandbox, Streams,
};

use crate::{Dir, run, sh, text};

/// Runs programs on the host, outside of the process group of its client, as the daemon of an engine would.
const FAKE: &str = r#"#!/bin/sh
here=$(dirname "$0")
case "$1" in
version) echo "1.2 1.2" ;;
kill) echo "kill $2" >> "$here/calls"; kill -9 "-$(cat "$here/pid")" ;;
rm) echo "rm $2 $3" >> "$here/calls" ;;
run)
  shift
  while :; do
    printf '%s\n' "$1" >> "$here/args"
    case "$1" in
    --cidfile=*) id=${1#*=} ;;
    --mount=*,target=/work*) work=${1#*source=}; work=${work%%,*} ;;
    --*) ;;
    *) image=$1; shift; break ;;
    esac
    shift
  done
  [ "$image" = missing ] && { echo "Error: no such image: missing" >&2; exit 125; }
  echo 1234 > "$id"
  cd "$work" || exit 125
  exec 3<&0
  setsid "$@" <&3 &
  echo $! > "$here/pid"
  wait $!
  ;;
esac
"#;

fn engine(dir: &Path, name: &str, image: &str) -> Engine {
    let path = dir.join(name);
    std::fs::write(&path, FAKE).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Engine::new(path, image)
}

fn fake(dir: &Dir, name: &str) -> Sandbox {
    Sandbox::container(dir.0.join("work"), engine(&dir.0, name, "python:3"))
}

/// The arguments of the engine, except those that differ from run to run.
fn arguments_of(dir: &Dir) -> Vec<String> {
    let args = std::fs::read_to_string(dir.0.join("args")).unwrap();
    let all = args.lines().filter(|arg| !arg.starts_with("--cidfile=") && !arg.starts_with("--name="));
    let all = all.filter(|arg| !arg.starts_with("--user="));
    all.map(|arg| arg.replace(&dir.0.canonicalize().unwrap().display().to_string(), "DIR")).collect()
}

#[test]
fn an_engine_receives_every_option_of_the_sandbox() {
    let dir = Dir::new();
    std::fs::create_dir(dir.0.join("data")).unwrap();
    let sandbox = fake(&dir, "docker").env("NAME", "a value").readable(dir.0.join("data")).unwrap();
    assert!(sandbox.is_enclosed() && sandbox.warning().is_none());
    let ended = run(&sandbox, &sh("pwd; cat sub/a; echo err >&2; exit 3").file("sub/a", "A\n"));
    let work = sandbox.work().canonicalize().unwrap();
    assert_eq!((ended.how, text(&ended)), (ExitReason::Exited(3), format!("{}\nA\nerr\n", work.display())));
    assert_eq!(
        arguments_of(&dir),
        [
            "--rm",
            "--read-only",
            "--pull=never",
            "--network=none",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--pids-limit=128",
            "--memory=1073741824",
            "--memory-swap=1073741824",
            "--ulimit=fsize=268435456:268435456",
            "--ulimit=nofile=1024:1024",
            "--ulimit=core=0:0",
            "--tmpfs=/tmp:rw,nosuid,nodev,size=256m",
            "--mount=type=bind,source=DIR/work,target=/work",
            "--mount=type=bind,source=DIR/data,target=DIR/data,readonly",
            "--workdir=/work",
            "--env=HOME=/tmp",
            "--env=LANG=C.UTF-8",
            "--env=TERM=dumb",
            "--env=PYTHONDONTWRITEBYTECODE=1",
            "--env=PYTHONUNBUFFERED=1",
            "--env=MPLBACKEND=Agg",
            "--env=NAME=a value",
            "python:3",
        ]
    );
}

#[test]
fn no_name_of_an_image_is_an_option_of_its_engine() {
    let dir = Dir::new();
    for image in ["--volume=/:/host", "-v/:/host", "--privileged", "", "a b", "dir:/etc", "python\n:3"] {
        let sandbox = Sandbox::container(dir.0.join("work"), engine(&dir.0, "docker", image));
        let error = sandbox.run(&sh("true"), &Cancellation::new()).unwrap_err();
        assert!(
            matches!(&error, Error::Config(why) if why.ends_with("is not the name of an image")),
            "{image}: {error}"
        );
    }
    assert!(!dir.0.join("args").exists(), "the engine was called");
}

#[test]
fn podman_receives_its_own_options() {
    let dir = Dir::new();
    let sandbox = fake(&dir, "podman").network(Network::Host);
    assert!(sandbox.warning().is_some());
    run(&sandbox, &sh("true"));
    let shown = arguments_of(&dir);
    assert!(!shown.iter().any(|arg| arg.starts_with("--network")), "{shown:?}");
    assert!(shown.contains(&"--mount=type=bind,source=DIR/work,target=/work,relabel=private".to_owned()));
}

#[test]
fn a_container_ends_when_its_time_is_up() {
    let dir = Dir::new();
    let limits = Limits { time: Duration::from_millis(700), ..Limits::default() };
    let began = Instant::now();
    let sandbox = fake(&dir, "docker").limited(limits);
    let ended = run(&sandbox, &sh("echo begun; sleep 600"));
    assert_eq!((ended.how, &*text(&ended)), (ExitReason::TimedOut, "begun\n"));
    assert!(began.elapsed() < Duration::from_secs(20));
    let args = std::fs::read_to_string(dir.0.join("args")).unwrap();
    let name = args.lines().find_map(|arg| arg.strip_prefix("--name=")).unwrap();
    let calls = std::fs::read_to_string(dir.0.join("calls")).unwrap();
    assert_eq!(calls, format!("kill {name}\nrm --force {name}\n"));
    let pid = std::fs::read_to_string(dir.0.join("pid")).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "it still runs: {state}");
}

#[test]
fn a_container_may_not_fill_the_disk() {
    let dir = Dir::new();
    let limits = Limits { disk_bytes: 2 << 20, ..Limits::default() };
    let fill = sh("head -c 4000000 /dev/zero > f; sleep 600");
    assert_eq!(run(&fake(&dir, "docker").limited(limits), &fill).how, ExitReason::TooMuchDisk);
}

#[test]
fn a_link_leads_the_files_of_a_container_nowhere() {
    let dir = Dir::new();
    let sandbox = fake(&dir, "docker");
    std::fs::write(dir.0.join("victim"), "whole").unwrap();
    run(&sandbox, &sh("ln -s ../victim a; ln -s .. b; mkfifo c; mkdir d"));
    for file in ["a", "b/victim", "c", "d"] {
        let error =
            sandbox.run(&sh("true").file(file, "broken"), &Cancellation::new()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{file}` cannot be written to the work directory")), "{error}");
    }
    assert_eq!(std::fs::read_to_string(dir.0.join("victim")).unwrap(), "whole");
}

#[test]
fn programs_in_containers_can_be_spoken_with() {
    use std::io::Write as _;
    let dir = Dir::new();
    let (input, mut speak) = std::io::pipe().unwrap();
    speak.write_all(b"hello\n").unwrap();
    drop(speak);
    let mut received = Vec::new();
    let streams = Streams { input: Some(input), output: &mut |bytes| received.extend_from_slice(bytes) };
    let how = fake(&dir, "docker").run_streamed(&Program::new("cat"), &Cancellation::new(), streams).unwrap();
    assert_eq!((how, &*received), (ExitReason::Exited(0), &b"hello\n"[..]));
    assert!(arguments_of(&dir).contains(&"--interactive".to_owned()));
}

#[test]
fn an_engine_that_fails_says_why() {
    let dir = Dir::new();
    let refused = |engine| {
        let sandbox = Sandbox::container(dir.0.join("work"), engine);
        let error = sandbox.run(&sh("true"), &Cancellation::new()).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error:?}");
        error.to_string()
    };
    let error = refused(Engine::new("no-such-engine", "x"));
    assert!(error.contains("there is no container engine `no-such-engine` on this machine"), "{error}");
    assert!(error.contains("\nhint: "), "{error}");
    let error = refused(engine(&dir.0, "docker", "missing"));
    assert!(error.contains("`docker` made no container: Error: no such image: missing"), "{error}");
    let by_name = Network::Hosts(vec!["example.org".into()]);
    let error = fake(&dir, "docker").network(by_name).run(&sh("true"), &Cancellation::new()).unwrap_err();
    assert!(matches!(error, Error::Config(_)), "{error:?}");
    assert_eq!(engine(&dir.0, "docker", "x").answers().unwrap(), "1.2 1.2");
}

#[test]
fn a_real_engine() {
    // Small, and there already where anything is: nothing is fetched.
    let image = std::env::var("POLYLOGUE_TEST_IMAGE").unwrap_or_else(|_| "busybox".into());
    let engines = [Engine::docker(&*image), Engine::podman(&*image)];
    for engine in engines {
        let dir = Dir::new();
        let sandbox = Sandbox::container(dir.0.join("work"), engine);
        match sandbox.run(&sh("cat a; ls /sys/class/net; touch /x").file("a", "A\n"), &Cancellation::new()) {
            Err(error) => polylogue_test::skip::skipped(&error.to_string()),
            Ok(ended) => {
                let output = text(&ended);
                assert!(ended.how != ExitReason::Exited(0) && output.starts_with("A\nlo\n"), "{output}");
            }
        }
    }
}

#[test]
fn an_engine_whose_daemon_does_not_run_says_so() {
    let dir = Dir::new();
    let path = dir.0.join("docker");
    let why =
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";
    std::fs::write(
        &path,
        format!("#!/bin/sh\necho 'docker: {why}' >&2\n[ \"$1\" = run ] && exit 125\nexit 1\n"),
    )
    .unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let engine = Engine::new(path, "python:3");
    let shown = format!("the container engine `docker` made no container: docker: {why}");
    let error = engine.answers().unwrap_err();
    assert!(matches!(&error, Error::Refused { why } if *why == shown), "{error}");
    let error =
        Sandbox::container(dir.0.join("work"), engine).run(&sh("true"), &Cancellation::new()).unwrap_err();
    assert!(matches!(&error, Error::Refused { why } if *why == shown), "{error}");
}

/// The file to which the engine writes that the container is there.
fn id_file(dir: &Dir) -> std::path::PathBuf {
    let args = std::fs::read_to_string(dir.0.join("args")).unwrap();
    args.lines().find_map(|arg| arg.strip_prefix("--cidfile=")).unwrap().into()
}

#[test]
fn a_program_may_end_as_engines_do_that_fail_and_nothing_is_left_behind() {
    let dir = Dir::new();
    let ended = run(&fake(&dir, "docker"), &sh("echo mine; exit 125"));
    assert_eq!((ended.how, &*text(&ended)), (ExitReason::Exited(125), "mine\n"));
    assert!(!id_file(&dir).exists());
    // Containers that end by themselves are removed by the engine.
    assert!(!dir.0.join("calls").exists());
}

#[test]
fn a_container_ends_when_its_caller_is_dropped() {
    let dir = Dir::new();
    let (sandbox, cancellation) = (fake(&dir, "docker"), Cancellation::new());
    let stop = cancellation.clone();
    let began = sandbox.work().join("began");
    let waiting = std::thread::spawn(move || {
        while !began.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.cancel();
    });
    let since = Instant::now();
    let ended = sandbox.run(&sh("touch began; sleep 600"), &cancellation).unwrap();
    waiting.join().unwrap();
    assert!(
        !matches!(ended.how, ExitReason::Exited(0)) && since.elapsed() < Duration::from_secs(20),
        "{:?}",
        ended.how
    );
    let calls = std::fs::read_to_string(dir.0.join("calls")).unwrap();
    assert!(calls.starts_with("kill polylogue-") && calls.contains("\nrm --force polylogue-"), "{calls}");
    assert!(!id_file(&dir).exists());
}
