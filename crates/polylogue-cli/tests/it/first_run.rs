//! The first run of the program is killed, or its disk fails, at the system calls that make the store.

use std::process::Stdio;

use polylogue_test::skip::has_strace;

use crate::home::{Home, PROGRAM, shipped};

/// What happens at which call, and at how many of its kind.
const FAULTS: [(&str, &str, u32); 7] = [
    ("pwrite64", "signal=SIGKILL", 12),
    ("fsync", "signal=SIGKILL", 5),
    ("fdatasync", "signal=SIGKILL", 5),
    ("/^(unlink|rename|link)(at|at2)?$", "signal=SIGKILL", 4),
    ("close", "signal=SIGKILL", 14),
    ("/^unlink(at)?$", "error=EIO", 3),
    ("fsync", "error=EIO", 3),
];

/// Runs the program with `fault` at its `nth` call of `call`. Whether it was killed or failed by that.
fn meets(home: &Home, (call, fault, nth): (&str, &str, u32)) -> bool {
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:{fault}:when={nth}"));
    let team = shipped("writer-critic");
    let args = [
        "-f", "-qqq", "-o", "/dev/null", "-e", &trace, "-e", &inject, "--", PROGRAM, "run", &team, "--quiet",
    ];
    let mut strace = home.command("strace", &args);
    let status = strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    !status.success()
}

#[test]
fn a_first_run_that_is_killed_or_whose_disk_fails_leaves_a_store_that_the_next_run_finishes() {
    if !has_strace() {
        return;
    }
    let mut met = 0;
    for (call, fault, most) in FAULTS {
        for nth in 1..=most {
            let home = Home::new();
            met += usize::from(meets(&home, (call, fault, nth)));
            let what = format!("{fault} at {call} {nth}");
            let again = home.run(&["run", &shipped("writer-critic"), "--quiet"]);
            assert_eq!(again.code, 0, "{what}: {}", again.err);
            let listed = home.run(&["runs"]);
            assert_eq!(listed.code, 0, "{what}: {}", listed.err);
            let verified = home.run(&["verify"]);
            assert_eq!(verified.code, 0, "{what}: {}{}", verified.out, verified.err);
        }
    }
    println!("{met} runs met a fault");
    assert!(met >= 20, "only {met} runs met a fault");
}
