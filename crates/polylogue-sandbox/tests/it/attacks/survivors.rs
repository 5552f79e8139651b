//! Processes that try to outlive their program.

use std::time::Duration;

use polylogue_sandbox::{Cancellation, ExitReason, Limits};

use crate::{Dir, python, run, sandbox, sh, text};

/// How many processes of this machine have `word` among their arguments.
fn running(word: &str) -> usize {
    let has = |entry: &std::fs::DirEntry| {
        let args = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        args.split(|byte| *byte == 0).any(|arg| arg == word.as_bytes())
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(has).count()
}

/// Runs `code`, in which `NAP` is a time to sleep that no other test uses. All must be dead when the call returns.
fn leaves_nothing(nth: u32, time: Option<Duration>, code: &str) {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let nap = format!("{nth}{}", std::process::id());
    let limits = Limits { time: time.unwrap_or(Duration::from_secs(60)), ..*sandbox.limits() };
    let ended = run(&sandbox.limited(limits), &python(&code.replace("NAP", &nap)));
    assert!(text(&ended).contains("started"), "{}", text(&ended));
    assert_eq!(ended.how == ExitReason::TimedOut, time.is_some(), "{:?}", ended.how);
    assert_eq!(running(&nap), 0, "everything is dead when the call returns");
}

#[test]
fn a_session_of_its_own() {
    let code =
        "import subprocess\nsubprocess.Popen(['sleep', 'NAP'], start_new_session=True)\nprint('started')";
    leaves_nothing(71, None, code);
}

#[test]
fn forking_twice() {
    let code = r"
import os, time
if not os.fork():
    os.setsid()
    if not os.fork():
        for fd in range(3): os.close(fd)
        os.chdir('/')
        os.execvp('sleep', ['sleep', 'NAP'])
    os._exit(0)
os.wait()
print('started')";
    leaves_nothing(72, None, code);
}

#[test]
fn ignoring_signals() {
    let code = r"
import os, signal, subprocess
for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXCPU]: signal.signal(number, signal.SIG_IGN)
subprocess.Popen(['sleep', 'NAP'], start_new_session=True)
print('started', flush=True)
while True: pass";
    leaves_nothing(73, Some(Duration::from_secs(1)), code);
}

#[test]
fn adopting_orphans() {
    let code = r"
import ctypes, os, subprocess, time
# PR_SET_CHILD_SUBREAPER, and no signal when the parent dies.
libc = ctypes.CDLL(None)
if not os.fork():
    libc.prctl(36, 1, 0, 0, 0)
    libc.prctl(1, 0, 0, 0, 0)
    os.setsid()
    subprocess.Popen(['sleep', 'NAP'])
    time.sleep(1000)
time.sleep(0.2)
print('started')";
    leaves_nothing(74, None, code);
}

#[test]
fn a_stopped_process_is_killed_with_its_children() {
    let code = r"
import os, signal, subprocess, time
child = subprocess.Popen(['sleep', 'NAP'])
child.send_signal(signal.SIGSTOP)
print('started', flush=True)
os.kill(os.getpid(), signal.SIGSTOP)";
    leaves_nothing(75, Some(Duration::from_secs(1)), code);
}

#[test]
fn a_fork_bomb_is_killed() {
    let code = r"
import os, sys
print('started', flush=True)
while True:
    try:
        if os.fork(): os.execvp('sleep', ['sleep', 'NAP']) if os.getpid() % 2 else os._exit(0)
    except OSError: pass";
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let nap = format!("76{}", std::process::id());
    let limits = Limits { time: Duration::from_secs(2), processes: 30, ..*sandbox.limits() };
    sandbox.limited(limits).run(&python(&code.replace("NAP", &nap)), &Cancellation::new()).unwrap();
    assert_eq!(running(&nap), 0);
}

#[test]
fn its_parent_dies() {
    // The thread that runs it ends with the process; here it is halted while the program makes children.
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let nap = format!("77{}", std::process::id());
    let cancellation = Cancellation::new();
    let other = cancellation.clone();
    let ended = std::thread::scope(|scope| {
        let code = format!("setsid sleep {nap} & setsid sleep {nap} & wait");
        let sandbox = &sandbox;
        let ran = scope.spawn(move || sandbox.run(&sh(&code), &cancellation).unwrap());
        while running(&nap) < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        other.cancel();
        ran.join().unwrap()
    });
    assert_eq!((ended.how, running(&nap)), (ExitReason::Cancelled, 0));
}

const HELPER: &str = "POLYLOGUE_SURVIVOR";

/// For the next test only: runs a program until it is killed.
#[test]
fn helper_that_is_killed() {
    let Ok(nap) = std::env::var(HELPER) else { return };
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    run(&sandbox, &sh(&format!("setsid sleep {nap} & sleep {nap}")));
}

#[test]
fn its_caller_is_killed() {
    let dir = Dir::new();
    if sandbox(&dir).is_none() {
        return;
    }
    let nap = format!("78{}", std::process::id());
    let mut caller = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "attacks::survivors::helper_that_is_killed"])
        .env(HELPER, &nap)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while running(&nap) < 2 {
        assert!(caller.try_wait().unwrap().is_none(), "the helper ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    caller.kill().unwrap();
    caller.wait().unwrap();
    let since = std::time::Instant::now();
    while running(&nap) > 0 {
        assert!(since.elapsed() < Duration::from_secs(20), "they outlive the caller");
        std::thread::sleep(Duration::from_millis(5));
    }
}
