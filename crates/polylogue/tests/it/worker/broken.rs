//! W8, W9 and W10: the protocol on virtual time, and its broken copies.

use crate::worker::faults::Broken;
use crate::worker::simulated::{run, script_of, shrunk, table};

/// How many worlds are looked at for a violation.
const SEARCH: u64 = 6_000;

/// W8: `POLYLOGUE_WORLDS` sets how many (default: 2,000), `POLYLOGUE_SEED` the first of their seeds (default: 0).
#[test]
fn no_world_violates_the_protocol() {
    let set = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (worlds, first) = (set("POLYLOGUE_WORLDS").unwrap_or(2_000), set("POLYLOGUE_SEED").unwrap_or(0));
    let (mut takeovers, mut refusals) = (0, 0);
    for seed in first..first + worlds {
        let (logs, script) = script_of(seed);
        let verdict = run(seed, Broken::Not, logs, &script);
        takeovers += verdict.takeovers;
        refusals += verdict.refusals;
        if verdict.violation.is_some() {
            let script = shrunk(seed, Broken::Not, logs, &script);
            panic!("the protocol is violated:\n{}", table(seed, Broken::Not, logs, &script));
        }
    }
    println!(
        "{worlds} worlds from seed {first}, {takeovers} claims after others, {refusals} refused appends, no violation"
    );
    assert!(takeovers > worlds && refusals > 0, "the worlds are too quiet to show anything");
}

/// Finds a world that shows what is broken, and shrinks it to at most 12 steps (W10).
#[track_caller]
fn is_found(broken: Broken, how: &str) {
    for seed in 0..SEARCH {
        let (logs, script) = script_of(seed);
        let Some((_, what)) = run(seed, broken, logs, &script).violation else { continue };
        let script = shrunk(seed, broken, logs, &script);
        let table = table(seed, broken, logs, &script);
        println!("after {} worlds: {what}\n{table}", seed + 1);
        // The faults, and what they led to.
        assert!(script.len() < 12, "{} faults: {table}", script.len());
        assert!(what.contains(how) || table.contains(how), "found something else:\n{table}");
        assert_says_who_did_what_when(&table);
        // That is what is broken, and not the world.
        let unbroken = run(seed, Broken::Not, logs, &script).violation;
        assert_eq!(unbroken, None, "the protocol is violated:\n{table}");
        return;
    }
    panic!("{broken:?} was found in none of {SEARCH} worlds");
}

/// W10: after two lines of heading, each row has a time, who, and what, in order; the last one is the violation.
#[track_caller]
fn assert_says_who_did_what_when(table: &str) {
    let rows: Vec<Vec<&str>> =
        table.lines().skip(2).map(|row| row.split('|').map(str::trim).collect()).collect();
    let times: Vec<u64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(times.is_sorted(), "{table}");
    for row in &rows {
        let [_, who, what] = row.as_slice() else { panic!("{row:?}:\n{table}") };
        let is_known = ["worker ", "database", "a person", "all"].iter().any(|known| who.starts_with(known));
        assert!(is_known && !what.is_empty(), "{row:?}:\n{table}");
    }
    let who: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    assert!(who.len() > 1 && who.ends_with(&["all"]) && !who[..who.len() - 1].contains(&"all"), "{table}");
}

/// W9.
#[test]
fn appends_without_a_fence_are_found() {
    is_found(Broken::AppendWithoutFence, "which another has claimed");
}

/// W9.
#[test]
fn reading_before_the_claim_is_found() {
    is_found(Broken::ReadBeforeClaim, "again, which has finished");
}

/// W9.
#[test]
fn a_release_that_forgets_messages_is_found() {
    is_found(Broken::ReleaseForgetsMessages, "has only");
}

/// W9.
#[test]
fn posting_that_forgets_the_holder_is_found() {
    is_found(Broken::PostForgetsTheHolder, "has only");
}

/// W9.
#[test]
fn calls_without_a_guard_are_found() {
    is_found(Broken::NoGuard, "again, which has finished");
}

/// W9.
#[test]
fn messages_that_are_deleted_before_the_append_are_found() {
    is_found(Broken::MessageDeletedBeforeAppend, "has only");
}

/// W9.
#[test]
fn messages_that_the_log_does_not_remember_are_found() {
    is_found(Broken::MessagesNotRemembered, "twice");
}

/// W9.
#[test]
fn tries_that_are_never_cleared_are_found() {
    is_found(Broken::TriesNeverCleared, "tries without progress");
}

/// W8, W9: nothing bounds what the clock of the database says.
#[test]
fn leases_by_the_clock_of_the_database_alone_are_found() {
    is_found(Broken::DatabasesClock, "again, which has finished");
}

/// W9.
#[test]
fn leases_by_the_clock_of_workers_are_found() {
    is_found(Broken::WorkersClock, "again, which has finished");
}
