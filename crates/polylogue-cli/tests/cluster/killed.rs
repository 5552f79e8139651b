//! W19: workers that are drained.

use std::time::{Duration, Instant};

use polylogue_test::postgres::PostgresServer;
use rustix::process::Signal;

use crate::notes::{assert_as_undisturbed, detach_all, model, prepare};
use crate::place::{Place, number, until};

const UNSAFE: &[&str] = &["--allow", "unsafe-host"];

/// W19: one of two workers is stopped by `SIGTERM`. The other one continues what it had.
#[test]
fn a_worker_that_is_drained_leaves_its_conversations_to_others_at_once() {
    let count = number("POLYLOGUE_CONVERSATIONS", 40);
    let Some(server) = PostgresServer::start() else { return };
    let model = model(Duration::from_millis(200));
    let place = Place::new(&server.url()).with_model(&model);
    prepare(&place);
    let ids = detach_all(&place, count);
    let mut first = place.worker(UNSAFE);
    until("it runs some", || {
        place.cluster().1.iter().filter(|log| log["state"] == "held").count() > count / 4
    });
    let other = place.worker(UNSAFE);
    let begun = Instant::now();
    first.signal(Signal::TERM);
    assert_eq!(first.end(), 0, "{}", first.log());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(!first.log().contains("taken over"), "nothing of it was taken away: {}", first.log());
    let workers = place.cluster().0;
    assert_eq!(workers.len(), 1, "one that has ended is shown no more: {workers:?}");
    assert!(
        workers[0]["worker"].as_str().unwrap().contains(&format!("process {} ", other.id())),
        "{workers:?}"
    );
    // Nothing waits for a lease: what is left is held by the other, or ready.
    let of_first = place
        .cluster()
        .1
        .iter()
        .filter(|log| {
            log["holder"]
                .as_str()
                .is_some_and(|holder| holder.starts_with(&format!("process {} ", first.id())))
        })
        .count();
    assert_eq!(of_first, 0);
    until("all have ended", || place.all(count, |state| state.starts_with("done")));
    assert_eq!(assert_as_undisturbed(&place, &ids), 0, "no call was in flight");
    assert_eq!(server.sql("SELECT sum(takeovers) FROM polylogue.logs"), "0", "{}", other.log());
}
