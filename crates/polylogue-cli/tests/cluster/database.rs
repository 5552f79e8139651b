//! W14, W20, W21 and W48: workers while their database is killed, away, or full, or might lose events.

use std::time::Duration;

use polylogue_test::postgres::PostgresServer;

use crate::commands::TALK;
use crate::notes::{assert_as_undisturbed, detach_all, model, prepare};
use crate::place::{Place, WorkerProcess, number, of_type, until};

const UNSAFE: &[&str] = &["--allow", "unsafe-host"];

/// W14: with 20 conversations, or as many as `POLYLOGUE_CONVERSATIONS` says.
#[test]
fn workers_continue_by_themselves_when_the_database_is_killed_and_restarted() {
    let count = number("POLYLOGUE_CONVERSATIONS", 20);
    let Some(mut server) = PostgresServer::start() else { return };
    let model = model(Duration::from_millis(300));
    let place = Place::new(&server.url()).with_model(&model);
    prepare(&place);
    let ids = detach_all(&place, count);
    let mut workers: Vec<WorkerProcess> = (0..2).map(|_| place.worker(UNSAFE)).collect();
    for _ in 0..5 {
        let before = model.count();
        until("a call begins", || model.count() > before);
        server.kill();
        server.restart();
    }
    let (calls, begun) = (model.count(), std::time::Instant::now());
    until("they continue", || model.count() > calls);
    println!("a call begins {:?} after the database is there again", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    until("all have ended", || place.all(count, |state| state.starts_with("done")));
    assert!(workers.iter_mut().all(|worker| !worker.is_over()), "no worker ends");
    assert_as_undisturbed(&place, &ids);
}

/// The processor time that a process has used.
fn used(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // Behind the name, which may contain anything: the 14th and the 15th column.
    let columns = stat.rsplit(')').next().unwrap();
    let ticks: u32 =
        columns.split_ascii_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u32>().unwrap()).sum();
    let per_second = std::process::Command::new("getconf").arg("CLK_TCK").output().unwrap().stdout;
    let per_second: u32 = String::from_utf8(per_second).unwrap().trim().parse().unwrap();
    Duration::from_secs(1) * ticks / per_second
}

/// W20: the database is away for longer than a lease, or as many seconds as `POLYLOGUE_SECONDS` says.
#[test]
fn no_call_begins_and_nothing_spins_while_the_database_is_away() {
    const COUNT: usize = 8;
    let seconds = number("POLYLOGUE_SECONDS", 36);
    let Some(mut server) = PostgresServer::start() else { return };
    let model = model(Duration::from_millis(500));
    let place = Place::new(&server.url()).with_model(&model);
    prepare(&place);
    let ids = detach_all(&place, COUNT);
    let mut worker = place.worker(UNSAFE);
    until("all of them talk", || model.count() > COUNT);
    server.kill();
    // What is in flight ends.
    std::thread::sleep(Duration::from_secs(3));
    let (calls, before) = (model.count(), used(worker.id()));
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let spent = used(worker.id()) - before;
    println!("{spent:?} of processor time in {seconds} s without a database");
    assert_eq!(model.count(), calls, "no call begins: {}", worker.log());
    // A hundredth of a processor; a build without optimization takes more.
    let most = Duration::from_secs(seconds as u64) / if cfg!(debug_assertions) { 20 } else { 100 };
    assert!(spent < most, "{spent:?} in {seconds} s: {}", worker.log());
    assert!(!worker.is_over(), "{}", worker.log());
    server.restart();
    until("all have ended", || place.all(COUNT, |state| state.starts_with("done")));
    assert_as_undisturbed(&place, &ids);
}

/// W21: nothing can be appended, however often a worker tries. `cluster` says why, nothing is parked, and conversations continue when there is
/// room.
#[test]
fn conversations_wait_for_room_on_the_disk_of_the_database() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    let id = place.detach(&["team.yaml"]);
    // As Postgres reports it.
    let _ = server.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON polylogue.events FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let worker = place.worker(&[]);
    until("it has tried twice", || worker.log().matches("is left to other workers").count() > 1);
    let shown = place.run(&["cluster"], 0).out;
    let row = shown.lines().find(|line| line.contains(&id)).unwrap();
    assert!(row.starts_with("ready") && row.contains("no space is left on the disk"), "{row}");
    assert_eq!(server.sql("SELECT tries, is_parked FROM polylogue.logs"), "0|f");
    let _ = server.sql("DROP TRIGGER refuse ON polylogue.events");
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
    until("it is idle", || place.cluster().1.is_empty());
}

/// W48: what `doctor` says of a database that can be used is in the logs of processes that use it for long.
#[test]
fn a_worker_and_a_server_warn_of_an_asynchronous_standby() {
    const WARNING: &str = "a standby follows asynchronously: a failover to it may lose";
    let Some(server) = PostgresServer::start() else { return };
    let _standby = server.standby();
    server.wait_for_standby(false);
    let place = Place::new(&server.url()).with_team(TALK);
    assert!(place.run(&["doctor"], 0).out.contains(WARNING));
    let worker = place.worker(&[]);
    until("the worker warns", || worker.log().contains(WARNING));
    let served = place.begin(&["serve", "team.yaml", "--listen", "127.0.0.1:0"], "served");
    until("the server warns", || served.log().contains(WARNING));
}
