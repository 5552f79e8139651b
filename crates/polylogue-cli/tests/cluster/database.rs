//! W14: workers while their database is killed.

use std::time::Duration;

use polylogue_test::postgres::PostgresServer;

use crate::notes::{assert_as_undisturbed, detach_all, model, prepare};
use crate::place::{Place, WorkerProcess, until};

const UNSAFE: &[&str] = &["--allow", "unsafe-host"];

/// W14.
#[test]
fn workers_continue_by_themselves_when_the_database_is_killed_and_restarted() {
    const COUNT: usize = 20;
    let Some(mut server) = PostgresServer::start() else { return };
    let model = model(Duration::from_millis(300));
    let place = Place::new(&server.url()).with_model(&model);
    prepare(&place);
    let ids = detach_all(&place, COUNT);
    let mut workers: Vec<WorkerProcess> = (0..2).map(|_| place.worker(UNSAFE)).collect();
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(600));
        server.kill();
        server.restart();
    }
    until("all have ended", || place.all(COUNT, |state| state.starts_with("done")));
    assert!(workers.iter_mut().all(|worker| !worker.is_over()), "no worker ends");
    assert_as_undisturbed(&place, &ids);
}
