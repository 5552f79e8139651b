//! Workers that share a SQLite file.

use polylogue_core::{
    AnyQueue, Due, Features, LEASE, LeaseNumber, LogId, Meta, Queue as _, QueueState, Store as _, StoreError,
    WorkerInfo,
};
use polylogue_store::Sqlite;

use crate::queue::Time;

/// As workers of two processes: each has its own connection and its own lock.
#[tokio::test]
async fn two_workers_on_one_file_share_its_logs_and_take_over_from_one_another() {
    const LOGS: usize = 20;
    let (time, dir) = (Time::new(), tempfile::tempdir().unwrap());
    let open = || {
        let place = dir.path().join("chats.db");
        AnyQueue::new(Sqlite::open_with_clocks(place, time.clock(), time.steady()).unwrap()).unwrap()
    };
    let (one, other) = (open(), open());
    for log in 0..LOGS {
        let id = LogId::new(&format!("log-{log}")).unwrap();
        let claim = one.create(&id, &Meta::default()).await.unwrap();
        one.release_until(claim, Due::Now).await.unwrap();
    }
    let none = Features::none();
    let mut held = [Vec::new(), Vec::new()];
    for _ in 0..LOGS / 4 {
        let (mine, theirs) = tokio::join!(
            one.claim_due(2, &none, &[], LeaseNumber::ALL),
            other.claim_due(2, &none, &[], LeaseNumber::ALL)
        );
        held[0].extend(mine.unwrap());
        held[1].extend(theirs.unwrap());
    }
    assert_eq!((held[0].len(), held[1].len()), (LOGS / 2, LOGS / 2), "each log is claimed once");
    let info = WorkerInfo { at_once: 7, ..WorkerInfo::default() };
    one.announce(Some(&info)).await.unwrap();
    // One of them is silent.
    time.pass(LEASE * 2 / 3);
    assert_eq!(one.heartbeat(&held[0]).await.unwrap().len(), LOGS / 2);
    time.pass(LEASE * 2 / 3);
    let taken = one.claim_due(LOGS, &none, &[], LeaseNumber::ALL).await.unwrap();
    assert_eq!(taken.len(), LOGS / 2, "those of the other one");
    for claim in &held[1] {
        let late = other.append(claim, &[]).await;
        assert_eq!(late, Err(StoreError::Fenced { id: claim.id.clone() }));
    }
    assert_eq!(other.heartbeat(&held[1]).await.unwrap(), []);
    let overview = other.overview(LOGS).await.unwrap();
    assert_eq!(overview.logs.iter().filter(|log| log.takeovers == 1).count(), LOGS / 2);
    assert!(overview.logs.iter().all(|log| log.state == QueueState::Held), "{:?}", overview.logs);
    let [worker] = overview.workers.as_slice() else { panic!("{:?}", overview.workers) };
    assert_eq!((worker.held, &worker.info), (LOGS as u64, &info));
    one.announce(None).await.unwrap();
    assert_eq!(other.overview(0).await.unwrap().workers, [], "it has ended");
}

/// Its locks are next to the file: a process that looked for them next to the link would think that the others are dead.
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_opened_by_a_link_has_the_same_writers() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("chats.db"), dir.path().join("link.db"));
    drop(Sqlite::open(&file).unwrap());
    std::os::unix::fs::symlink("chats.db", &link).unwrap();
    let (one, other) = (Sqlite::open(&file).unwrap(), Sqlite::open(&link).unwrap());
    let id = LogId::new("a").unwrap();
    let claim = one.create(&id, &Meta::default()).await.unwrap();
    assert!(matches!(other.claim(&id).await, Err(StoreError::Busy { .. })));
    one.release(claim).await.unwrap();
    let claim = other.claim(&id).await.unwrap();
    assert!(matches!(one.claim(&id).await, Err(StoreError::Busy { .. })));
    other.release(claim).await.unwrap();
}

/// W8: when the clock of the machine is set, nothing is taken over from a process that lives.
#[tokio::test]
async fn a_clock_that_is_set_ends_no_lease() {
    let (clock, leases, dir) = (Time::new(), Time::new(), tempfile::tempdir().unwrap());
    let open = || {
        let place = dir.path().join("chats.db");
        AnyQueue::new(Sqlite::open_with_clocks(place, clock.clock(), leases.steady()).unwrap()).unwrap()
    };
    let (one, other) = (open(), open());
    let id = LogId::new("a").unwrap();
    let claim = one.create(&id, &Meta::default()).await.unwrap();
    one.release_until(claim, Due::Now).await.unwrap();
    let claim = async |queue: &AnyQueue| {
        queue.claim_due(1, &Features::none(), &[], LeaseNumber::ALL).await.unwrap().pop()
    };
    let held = claim(&one).await.unwrap();
    clock.pass(LEASE * 2);
    assert_eq!(claim(&other).await, None, "by the clock of leases it lasts");
    assert_eq!(one.heartbeat(std::slice::from_ref(&held)).await.unwrap().len(), 1);
    clock.pass(LEASE * 2);
    leases.pass(LEASE * 2);
    let taken = claim(&other).await.unwrap();
    assert!(taken.fence > held.fence && taken.found.unwrap().is_takeover);
}
