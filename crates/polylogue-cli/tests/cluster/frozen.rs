//! W13: workers that are killed, and workers that stand still for longer than their leases.

use std::time::{Duration, Instant};

use polylogue_core::LEASE;
use polylogue_test::postgres::{Pooler, PostgresServer};
use rustix::process::Signal;

use crate::notes::{assert_as_undisturbed, detach_all, model, prepare};
use crate::place::{Place, WorkerProcess, expire, held_by, number, until};

const WORKER: &[&str] = &["--allow", "unsafe-host", "--at-once", "15"];

/// W13: the tools of 60 conversations, or as many as `POLYLOGUE_CONVERSATIONS` says, write to a file outside. Two of four workers stand
/// still for longer than a lease while others are killed in turn, and wake up when others have continued what they had.
#[test]
fn workers_that_are_killed_and_frozen_past_their_leases_repeat_no_finished_call() {
    let Some(server) = PostgresServer::start() else { return };
    kill_and_freeze(&server, &server.url());
}

/// W22: the same, where each statement may reach another of a few sessions, and none is notified of anything.
#[test]
fn workers_behind_a_pooler_in_transaction_mode_repeat_no_finished_call() {
    let Some(server) = PostgresServer::start() else { return };
    let Some(pooler) = Pooler::start(&server, SESSIONS) else { return };
    kill_and_freeze(&server, &pooler.url());
    let sessions: u16 =
        server.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = 'polylogue'").parse().unwrap();
    assert!(sessions <= SESSIONS + 1, "{sessions} sessions, and that of this question");
}

/// Fewer sessions than four workers have connections.
const SESSIONS: u16 = 6;

fn kill_and_freeze(server: &PostgresServer, url: &str) {
    let count = number("POLYLOGUE_CONVERSATIONS", 60);
    let model = model(Duration::from_millis(400));
    let place = Place::new(url).with_model(&model);
    prepare(&place);
    let ids = detach_all(&place, count);
    let mut workers: Vec<WorkerProcess> = (0..4).map(|_| place.worker(WORKER)).collect();
    until("all of them run some", || {
        let (seen, logs) = place.cluster();
        let held = logs.iter().filter(|log| log["state"] == "held").count();
        let has_some = |worker: &WorkerProcess| !held_by(server, worker).is_empty();
        seen.len() == 4 && held >= count.min(4 * 15) / 2 && workers.iter().all(has_some)
    });
    let mut frozen: Vec<WorkerProcess> = workers.drain(..2).collect();
    frozen.iter().for_each(|worker| worker.signal(Signal::STOP));
    let (since, mut is_thawed, mut kills) = (Instant::now(), false, 0);
    until("all have ended", || {
        let is_overdue = || since.elapsed() > LEASE + Duration::from_secs(1);
        // The others take over what they have when they have known its leases for as long.
        if !is_thawed && is_overdue() && frozen.iter().all(|worker| held_by(server, worker).is_empty()) {
            frozen.iter().for_each(|worker| worker.signal(Signal::CONT));
            is_thawed = true;
        }
        if kills < if is_thawed { 12 } else { 8 } {
            std::thread::sleep(Duration::from_millis(700));
            expire(server, workers.remove(0).kill());
            workers.push(place.worker(WORKER));
            kills += 1;
        }
        is_thawed && place.all(count, |state| state.starts_with("done"))
    });
    assert!(frozen.iter_mut().all(|worker| !worker.is_over()), "those that woke up go on");
    let in_flight = assert_as_undisturbed(&place, &ids);
    let takeovers: usize = server.sql("SELECT sum(takeovers) FROM polylogue.logs").parse().unwrap();
    println!("{count} conversations, {kills} kills, {takeovers} takeovers, {in_flight} calls in flight");
    assert!(takeovers > 0);
}
