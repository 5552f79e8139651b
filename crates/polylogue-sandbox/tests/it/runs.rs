//! Programs that do what they are meant to.

use std::process::Command;
use std::time::{Duration, Instant};

use polylogue_sandbox::{Cancellation, Error, ExitReason, Network, Program, Sandbox, what_is_enforced};

use crate::{Dir, python, run, sandbox, sh, text};

#[test]
fn a_program_reads_and_writes_its_work_directory() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let program =
        sh("pwd; cat sub/in.txt; echo err >&2; mv sub/in.txt out.txt; exit 3").file("sub/in.txt", "hello\n");
    let ended = run(&sandbox, &program);
    assert_eq!((ended.how, &*text(&ended)), (ExitReason::Exited(3), "/work\nhello\nerr\n"));
    assert_eq!(std::fs::read_to_string(sandbox.work().join("out.txt")).unwrap(), "hello\n");
}

#[test]
fn interpreters_run() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let pool = "import multiprocessing, tempfile, threading\nwith multiprocessing.Pool(2) as p: print(p.map(abs, [-1, 2]))";
    assert_eq!(text(&run(&sandbox, &python(pool))), "[1, 2]\n");
    let Ok(ended) =
        sandbox.run(&Program::new("node").arg("-e").arg("console.log([1, 2])"), &Cancellation::new())
    else {
        polylogue_test::skip::skipped("there is no Node.js");
        return;
    };
    assert_eq!((ended.how, &*text(&ended)), (ExitReason::Exited(0), "[ 1, 2 ]\n"));
}

/// What agents write programs for: all of it runs within the system calls that are let through.
#[test]
fn tools_that_agents_use_run() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let python = r#"python3 -c '
import asyncio, ctypes, http.server, mmap, multiprocessing, os, signal, socket, sqlite3, ssl, subprocess, sys, tempfile, threading, time, urllib.request, uuid, zipfile
from multiprocessing import Pool, Process, Queue, shared_memory
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
async def go():
    made = await asyncio.create_subprocess_exec("echo", "x", stdout=subprocess.PIPE)
    return (await made.communicate())[0]
def main():
    assert asyncio.run(go()) == b"x\n"
    with ProcessPoolExecutor(2) as p: assert list(p.map(abs, [-1])) == [1]
    with ThreadPoolExecutor(4) as p: assert list(p.map(abs, [-1])) == [1]
    db = sqlite3.connect("a.db"); db.execute("pragma journal_mode = wal"); db.execute("create table t(x)"); db.commit()
    memory = shared_memory.SharedMemory(create=True, size=100); memory.close(); memory.unlink()
    with tempfile.TemporaryDirectory() as d: open(d + "/f", "w").write("x")
    a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
    signal.setitimer(signal.ITIMER_REAL, 10); signal.alarm(0); os.sched_getaffinity(0); os.nice(1)
    os.mkfifo("fifo"); os.truncate("a.db", os.path.getsize("a.db")); os.listxattr("a.db")
    print("ran")
main()'"#;
    let programs = [
        ("python3", python),
        (
            "node",
            r#"node -e 'const {Worker} = require("worker_threads"); const cp = require("child_process"); const fs = require("fs").promises;
            new Worker("require(\"worker_threads\").parentPort.postMessage(1)", {eval: true}).on("message", async () => {
            cp.execSync("true"); await fs.writeFile("n", "x"); await fs.cp("n", "m"); console.log("ran") })'"#,
        ),
        (
            "git",
            "git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m c && git log --oneline >/dev/null && git gc -q && echo ran",
        ),
        (
            "cc",
            "printf '#include <stdio.h>\nint main(void) { puts(\"ran\"); }' > a.c && cc -O1 -o a a.c && ./a",
        ),
        ("make", "printf 'all:\n\t@echo ran\n' > Makefile && make -j4"),
        ("perl", "perl -MFile::Temp -e 'my $f = File::Temp->new; print \"ran\n\"'"),
        ("bash", "bash -c 'cat <(echo ran)'"),
        (
            "tar",
            "echo x > f && tar czf f.tgz f && tar tzf f.tgz >/dev/null && gzip -k f && sort -u f | xargs -P2 -n1 true && find . -name f -newer /usr >/dev/null; echo ran",
        ),
        ("tail", "echo ran > t; timeout 1 tail -f t 2>/dev/null; true"),
    ];
    let limits = polylogue_sandbox::Limits { memory_bytes: 4 << 30, processes: 512, ..*sandbox.limits() };
    let sandbox = sandbox.limited(limits);
    for (name, script) in programs {
        if !["/usr/local/bin", "/usr/bin", "/bin"]
            .iter()
            .any(|dir| std::path::Path::new(dir).join(name).exists())
        {
            polylogue_test::skip::skipped(&format!("in part: there is no `{name}`"));
            continue;
        }
        let ended = run(&sandbox, &Program::new("/bin/bash").arg("-c").arg(script));
        assert!(text(&ended).contains("ran\n"), "{name}: {:?} {}", ended.how, text(&ended));
    }
}

#[test]
fn crashes_and_bytes_that_are_not_text_are_reported() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let ended = run(&sandbox, &sh("kill -SEGV $$"));
    assert_eq!((ended.how, ended.how.code()), (ExitReason::Signaled(11), 139));
    assert_eq!(run(&sandbox, &sh("printf '\\377\\000a'")).output, b"\xff\0a");
}

#[test]
fn a_program_that_cannot_be_started_is_an_error() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let error = |program: &Program| sandbox.run(program, &Cancellation::new()).unwrap_err().to_string();
    assert_eq!(
        error(&Program::new("no-such-program")),
        "there is no program `no-such-program` in /usr/local/bin, /usr/bin, /bin"
    );
    assert!(
        error(&Program::new("/nowhere")).starts_with("`/nowhere` cannot be run in the sandbox: No such file")
    );
    for path in ["../x", "/x", "a/../../x", ""] {
        assert_eq!(error(&sh("true").file(path, "")), format!("`{path}` is not in the work directory"));
    }
    assert!(matches!(sandbox.clone().readable("/"), Err(Error::Config(_))));
    assert!(matches!(sandbox.readable("/nowhere"), Err(Error::Config(_))));
}

#[test]
fn more_can_be_shown_and_said() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let data = dir.0.join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("a"), "A").unwrap();
    let sandbox = sandbox.readable(&data).unwrap().env("NAME", "value");
    let path = data.display();
    let ended = run(&sandbox, &sh(&format!("cat {path}/a; echo $NAME; touch {path}/b")));
    assert!(text(&ended).starts_with("Avalue\n") && ended.how == ExitReason::Exited(1), "{}", text(&ended));
}

#[test]
fn a_network_has_to_be_given() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    assert_eq!(sandbox.warning(), None);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let code =
        format!("import socket; socket.create_connection(('127.0.0.1', {port}), 30); print('connected')");
    let sandbox = sandbox.network(Network::Host);
    assert!(sandbox.warning().is_some());
    assert_eq!(text(&run(&sandbox, &python(&code))), "connected\n");
}

#[test]
fn the_unsafe_host_runs_programs_without_isolation() {
    let dir = Dir::new();
    let sandbox = Sandbox::unsafe_host(dir.0.canonicalize().unwrap().join("work"));
    assert!(sandbox.warning().unwrap().contains("all your rights") && !sandbox.is_enclosed());
    let ended = run(&sandbox, &sh("cat a; echo $HOME; env | grep -c CARGO; exit 2").file("a", "hello\n"));
    let work = sandbox.work().display().to_string();
    assert_eq!((ended.how, text(&ended)), (ExitReason::Exited(2), format!("hello\n{work}\n0\n")));
    let limits = polylogue_sandbox::Limits { time: Duration::from_millis(500), ..*sandbox.limits() };
    let began = Instant::now();
    let ended = run(&sandbox.limited(limits), &sh("sleep 60 & sleep 60"));
    assert!(
        ended.how == ExitReason::TimedOut && began.elapsed() < Duration::from_secs(20),
        "{:?}",
        ended.how
    );
}

#[test]
fn runs_at_the_same_time_do_not_disturb_one_another() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    std::thread::scope(|scope| {
        for nth in 0..8 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let ended = run(sandbox, &sh(&format!("sleep 0.0{nth}; echo {nth}")));
                assert_eq!((ended.how, text(&ended)), (ExitReason::Exited(0), format!("{nth}\n")));
            });
        }
    });
}

#[test]
fn the_enforced_measures_are_listed() {
    let measures = what_is_enforced();
    let names: Vec<_> = measures.iter().map(|measure| measure.name).collect();
    assert_eq!(names, ["namespaces", "seccomp", "limits", "memory", "landlock"]);
    assert!(measures.iter().all(|measure| !measure.detail.is_empty()));
    let dir = Dir::new();
    let all = measures.iter().filter(|measure| measure.required).all(|measure| measure.holds);
    let ended = Sandbox::enclosed(dir.0.join("work")).run(&sh("true"), &Cancellation::new());
    assert_eq!(ended.is_ok(), all, "{ended:?}");
}

/// Where no namespaces are made the reason is the kernel's, with what allows them.
#[test]
fn a_refused_sandbox_says_why() {
    const REFUSED: &str = "POLYLOGUE_REFUSED";
    if std::env::var_os(REFUSED).is_some() {
        let refused = Sandbox::enclosed(Dir::new().0.join("work")).run(&sh("true"), &Cancellation::new());
        return eprintln!("refused: {}", refused.unwrap_err());
    }
    let none = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" --exact runs::a_refused_sandbox_says_why --nocapture";
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", none])
        .arg(std::env::current_exe().unwrap())
        .env(REFUSED, "1")
        .output();
    let shown = ran.map(|ran| String::from_utf8_lossy(&ran.stderr).into_owned()).unwrap_or_default();
    if !shown.contains("refused: ") {
        return polylogue_test::skip::skipped(&format!("namespaces cannot be forbidden here: {shown}"));
    }
    assert!(shown.contains("No space left on device (os error 28)"), "{shown}");
    assert!(shown.contains("sysctl user.max_user_namespaces"), "{shown}");
}

/// A refusal whose cause passes is not remembered, and a directory for temporary files in which nothing can be made refuses
/// nothing.
#[test]
fn a_refusal_is_not_remembered() {
    const PASSES: &str = "POLYLOGUE_REFUSAL_PASSES";
    const NAMESPACES: &str = "/proc/sys/user/max_user_namespaces";
    if std::env::var_os(PASSES).is_some() {
        let dir = Dir(std::path::PathBuf::from(std::env::var_os("POLYLOGUE_DIR").unwrap()));
        let sandbox = Sandbox::enclosed(dir.0.join("work"));
        let first = sandbox.run(&sh("true"), &Cancellation::new()).unwrap_err();
        std::fs::write(NAMESPACES, "1000").unwrap();
        let then = sandbox.run(&sh("echo enclosed"), &Cancellation::new()).unwrap();
        return eprintln!("refused: {first}, then: {}", text(&then));
    }
    let dir = Dir::new();
    if sandbox(&dir).is_none() {
        return;
    }
    let none =
        format!("echo 0 > {NAMESPACES} && exec \"$0\" --exact runs::a_refusal_is_not_remembered --nocapture");
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", &none])
        .arg(std::env::current_exe().unwrap())
        .env(PASSES, "1")
        .env("POLYLOGUE_DIR", dir.0.canonicalize().unwrap())
        .env("TMPDIR", "/proc/nothing/can/be/made/here")
        .output();
    let shown = ran.map(|ran| String::from_utf8_lossy(&ran.stderr).into_owned()).unwrap_or_default();
    if shown.contains("Permission denied") && !shown.contains("refused: ") {
        return polylogue_test::skip::skipped(&format!("namespaces cannot be forbidden here: {shown}"));
    }
    assert!(shown.contains("refused: ") && shown.contains("then: enclosed"), "{shown}");
}

/// How much later a program starts than without a sandbox: the least of many times, since machines are busy. It is to be
/// under 30 ms; the bound of the test is one that holds on a machine with other things to do.
#[test]
fn the_sandbox_adds_little_time() {
    let dir = Dir::new();
    let Some(enclosed) = sandbox(&dir) else { return };
    let host = Sandbox::unsafe_host(dir.0.canonicalize().unwrap().join("work"));
    let least = |sandbox: &Sandbox| (0..40).map(|_| run(sandbox, &Program::new("true")).took).min().unwrap();
    let (enclosed, host) = (least(&enclosed), least(&host));
    eprintln!("`true`: {enclosed:?} enclosed, {host:?} on the host");
    assert!(enclosed < host + Duration::from_millis(100), "{enclosed:?} enclosed, {host:?} on the host");
}
