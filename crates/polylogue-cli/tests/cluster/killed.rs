//! W19: workers that are drained.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use polylogue_test::postgres::PostgresServer;
use rustix::process::Signal;

use crate::notes::{assert_as_undisturbed, detach_all, model, prepare};
use crate::place::{Place, WorkerProcess, held_by, number, until};

/// W19: one of four workers is stopped by `SIGTERM`. The others continue what it had. `POLYLOGUE_CONVERSATIONS` says how many each of them has
/// (default: 10).
#[test]
fn a_worker_that_is_drained_leaves_its_conversations_to_others_at_once() {
    const WORKERS: usize = 4;
    let each = number("POLYLOGUE_CONVERSATIONS", 10);
    let count = WORKERS * each;
    let Some(server) = PostgresServer::start() else { return };
    let model = model(Duration::from_millis(800));
    let place = Place::new(&server.url()).with_model(&model);
    prepare(&place);
    let ids = detach_all(&place, count);
    let worker = |places: usize| place.worker(&["--allow", "unsafe-host", "--at-once", &places.to_string()]);
    let mut first = worker(each);
    until("it is busy", || held_by(&server, &first).len() > each / 2);
    // They have places for all.
    let others = [(); WORKERS - 1].map(|()| worker(count.div_ceil(WORKERS - 1)));
    until("the others are seen", || place.cluster().0.len() == WORKERS);
    // Otherwise those that no worker has begun come first: they are due for longer.
    until("each conversation runs", || waiting(&server) == "0");
    let begun = Instant::now();
    first.signal(Signal::TERM);
    let waits = drained(&server, &first);
    assert_eq!(first.end(), 0, "{}", first.log());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let longest = waits.values().max().copied().unwrap_or_default();
    println!("{} of {count} conversations waited for others for {longest:?} at most: {waits:?}", waits.len());
    assert!(!waits.is_empty(), "it had some");
    assert!(longest < Duration::from_secs(1), "{waits:?}");
    let workers = place.cluster().0;
    assert_eq!(workers.len(), WORKERS - 1, "one that has ended is shown no more: {workers:?}");
    let is_of = |worker: &WorkerProcess| {
        let process = format!("process {} ", worker.id());
        workers.iter().any(|seen| seen["worker"].as_str().unwrap().starts_with(&process))
    };
    assert!(others.iter().all(is_of), "{workers:?}");
    until("all have ended", || place.all(count, |state| state.starts_with("done")));
    assert_eq!(assert_as_undisturbed(&place, &ids), 0, "no call was in flight");
    for worker in others.iter().chain([&first]) {
        let log = worker.log();
        assert!(!log.contains("taken over") && !log.contains("the claim was lost"), "{log}");
    }
    assert_eq!(server.sql("SELECT sum(takeovers) FROM polylogue.logs"), "0", "{}", others[0].log());
}

/// A process that the signal kills has no exit code, and keeps its claims until their leases end.
#[cfg(target_os = "linux")]
#[test]
fn a_worker_is_drained_when_its_terminal_is_closed_unless_it_ignores_that() {
    const COUNT: usize = 4;
    let Some(server) = PostgresServer::start() else { return };
    let model = model(Duration::from_millis(300));
    let place = Place::new(&server.url()).with_model(&model);
    prepare(&place);
    let ids = detach_all(&place, COUNT);
    let mut first = place.worker(&["--allow", "unsafe-host"]);
    until("it is busy", || held_by(&server, &first).len() == COUNT);
    first.signal(Signal::HUP);
    assert_eq!(first.end(), 0, "{}", first.log());
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.logs WHERE holder IS NOT NULL"), "0");
    let mut second = place.worker_with_nohup(&["--allow", "unsafe-host"]);
    until("another one is busy", || held_by(&server, &second).len() == COUNT);
    second.signal(Signal::HUP);
    until("all have ended", || place.all(COUNT, |state| state.starts_with("done")));
    assert!(!second.is_over(), "{}", second.log());
    assert_as_undisturbed(&place, &ids);
    assert_eq!(server.sql("SELECT sum(takeovers) FROM polylogue.logs"), "0", "{}", second.log());
}

/// How many conversations wait for a worker.
fn waiting(server: &PostgresServer) -> String {
    server.sql("SELECT count(*) FROM polylogue.logs WHERE holder IS NULL AND due <= now()")
}

/// For how long each conversation that a worker has, which is being drained, has no holder until another worker has it. One that has ended
/// waits no more.
fn drained(server: &PostgresServer, worker: &WorkerProcess) -> BTreeMap<String, Duration> {
    let mut since: BTreeMap<String, Option<Instant>> =
        held_by(server, worker).into_iter().map(|id| (id, None)).collect();
    let sql = format!(
        "SELECT logs.id, CASE WHEN holder IS NULL AND due <= now() THEN 'ready'
         WHEN holder IN (SELECT id FROM polylogue.nodes WHERE process ~ '^process {}( |$)') THEN 'own' ELSE 'taken' END
         FROM polylogue.logs",
        worker.id()
    );
    let mut waits = BTreeMap::new();
    until("others have what it had", || {
        let (now, rows) = (Instant::now(), server.sql(&sql));
        let states: BTreeMap<&str, &str> = rows.lines().filter_map(|row| row.split_once('|')).collect();
        since.retain(|id, since| {
            match states[id.as_str()] {
                "own" => {}
                "ready" => {
                    since.get_or_insert(now);
                }
                _ => {
                    waits.insert(id.clone(), since.map_or(Duration::ZERO, |since| now - since));
                }
            }
            !waits.contains_key(id)
        });
        since.is_empty()
    });
    waits
}
