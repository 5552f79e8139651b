//! What is left of a store whose process is killed, or whose disk fails, at any system call of its first moments: strace injects
//! the fault into a child process, call by call.

use std::path::Path;
use std::process::{Output, Stdio};

use polylogue_core::{Meta, Store, StoreError};
use polylogue_test::skip::has_strace;

use crate::processes::{BOTH, acknowledged, child};
use crate::support::{Kind, assert_events, event, id};

/// What touches files. Between two of these nothing on the disk changes.
const CALLS: [&str; 12] = [
    "openat",
    "close",
    "pread64",
    "read",
    "write",
    "pwrite64",
    "ftruncate",
    "fsync",
    "fdatasync",
    "flock",
    "fcntl",
    "/^(mkdir|rmdir|link|unlink|rename)(at|at2)?$",
];

/// More calls of one kind than a child makes.
const MANY: usize = 400;

/// The child that does `task`, with `fault` injected into its `nth` call of `call`. `None` when strace cannot trace here.
fn faulty(task: &str, kind: Kind, place: &Path, (call, fault, nth): (&str, &str, usize)) -> Output {
    let strace = format!(
        "exec strace -f -qqq -o /dev/null -e trace='{call}' -e inject='{call}':{fault}:when={nth} -- \"$@\""
    );
    child(&strace, task, kind, place).stderr(Stdio::piped()).output().unwrap()
}

/// Opens the store again: all acknowledged events are there, and more can be appended.
async fn continues(kind: Kind, place: &Path, acknowledged: u64, what: &str) {
    let store = kind.open(place).unwrap_or_else(|error| panic!("{what}: {error}"));
    let claim = match store.claim(&id("a")).await {
        Err(StoreError::NotFound { .. }) if acknowledged == 0 => {
            store.create(&id("a"), &Meta::default()).await
        }
        claim => claim,
    };
    let claim = claim.unwrap_or_else(|error| panic!("{what}: {error}"));
    let kept = store.read(&id("a"), 0).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let count = kept.len() as u64;
    assert!(count >= acknowledged, "{what}: {count} kept, {acknowledged} acknowledged");
    assert_events(&kept, 0, count);
    store.append(&claim, &[event(count)]).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    store.release(claim).await.unwrap();
    drop(store);
    let hidden = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name());
    let hidden: Vec<_> = hidden.filter(|name| name.to_string_lossy().contains(".new-")).collect();
    assert!(hidden.is_empty() || acknowledged == 0, "{what}: {hidden:?} are left");
}

/// Injects the fault into every call of each kind in turn. Says how many children met it.
async fn at_every_call(kind: Kind, calls: &[&str], fault: &str, prepared: bool) -> usize {
    let mut met = 0;
    for call in calls {
        for nth in 1..=MANY {
            let dir = tempfile::tempdir().unwrap();
            if prepared {
                drop(kind.open(dir.path()).unwrap());
            }
            let output = faulty("begin", kind, dir.path(), (call, fault, nth));
            let acknowledged = acknowledged(&output.stdout);
            let what = format!("{kind:?}, {fault} at {call} {nth}");
            if acknowledged == 5 && output.status.success() {
                // It made fewer of them, or did without.
                if fault.starts_with("signal") {
                    break;
                }
            } else {
                met += 1;
            }
            continues(kind, dir.path(), acknowledged, &what).await;
            if fault.starts_with("error") && nth >= 10 {
                break;
            }
        }
    }
    met
}

#[tokio::test]
async fn a_kill_at_any_system_call_of_the_first_run_leaves_a_store_that_continues() {
    if !has_strace() {
        return;
    }
    for kind in BOTH {
        let met = at_every_call(kind, &CALLS, "signal=SIGKILL", false).await;
        println!("{kind:?}: killed at {met} system calls");
        assert!(met > 50, "{kind:?}: strace killed only {met} times");
    }
}

#[tokio::test]
async fn a_kill_at_any_system_call_of_a_later_run_leaves_a_store_that_continues() {
    if !has_strace() {
        return;
    }
    for kind in BOTH {
        let met = at_every_call(kind, &CALLS, "signal=SIGKILL", true).await;
        println!("{kind:?}: killed at {met} system calls");
        assert!(met > 50, "{kind:?}: strace killed only {met} times");
    }
}

#[tokio::test]
async fn a_failing_disk_costs_nothing_that_was_acknowledged() {
    if !has_strace() {
        return;
    }
    let writing =
        ["pwrite64", "ftruncate", "fsync", "fdatasync", "/^(mkdir|rmdir|link|unlink|rename)(at|at2)?$"];
    for kind in BOTH {
        for error in ["error=EIO", "error=ENOSPC"] {
            let met = at_every_call(kind, &writing, error, false).await;
            println!("{kind:?}: {error} at {met} system calls");
            assert!(met > 3, "{kind:?}: {error} met only {met} calls");
        }
    }
}
