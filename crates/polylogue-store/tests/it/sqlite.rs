//! Logs in a database: what the database looks like, and what is left of a damaged one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use polylogue_core::{AnyStore, Event, ListQuery, Store, StoreError};
use polylogue_store::Sqlite;
use rusqlite::Connection;

use crate::support::{assert_events, begin, contents, events, id, seqs};

const PAGE: usize = 4096;

/// A folder for a database, and the database's place.
fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("chats.db");
    (dir, place)
}

/// A database with the logs `log-0`, `log-1` and so on, each of `to` events, closed.
async fn database(logs: usize, to: u64) -> (tempfile::TempDir, PathBuf) {
    let (dir, place) = place();
    let store = Sqlite::open(&place).unwrap();
    for log in 0..logs {
        begin(&store, &format!("log-{log}"), to).await;
    }
    drop(store);
    (dir, place)
}

/// Changes a closed database behind Polylogue's back.
fn edit(place: &Path, sql: &str) {
    let connection = Connection::open(place).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[tokio::test]
async fn the_database_is_what_the_documentation_says() {
    let (dir, place) = database(1, 3).await;
    assert_eq!(contents(dir.path()).len(), 1, "nothing else is left when the store is closed");
    let connection = Connection::open(&place).unwrap();
    let get =
        |sql: &str| connection.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
    assert_eq!(get("PRAGMA application_id"), 0x504C_594C.into());
    assert_eq!(get("PRAGMA user_version"), 10.into());
    assert_eq!(get("PRAGMA journal_mode"), "wal".to_owned().into());
    assert_eq!(get("SELECT count(*) FROM claims"), 0.into());
    let said =
        "SELECT json ->> '$.parts[0].text' FROM events JOIN logs ON nr = log WHERE id = 'log-0' AND seq = 2";
    assert_eq!(get(said), format!("2: {}", "é!".repeat(4)).into());
}

#[tokio::test]
async fn files_that_are_not_ours_are_refused_and_left_as_they_are() {
    let header = fs::read(database(1, 1).await.1).unwrap();
    let mut cut = header.clone();
    cut.truncate(70);
    let mut garbage = header;
    garbage[..16].fill(0xAA);
    let foreign = |place| StoreError::Foreign { place, why: "it is not an SQLite database".into() };
    let damaged =
        |place| StoreError::Damaged { place, why: "it is cut off in its first bytes".into(), intact: 0 };
    type Told = fn(String) -> StoreError;
    let cases: [(&str, Vec<u8>, Told); 3] =
        [("text", b"Dear diary".to_vec(), foreign), ("garbage", garbage, foreign), ("cut", cut, damaged)];
    for (what, bytes, wanted) in cases {
        let (dir, place) = place();
        fs::write(&place, bytes).unwrap();
        let before = contents(dir.path());
        let refused = Sqlite::open(&place).unwrap_err();
        assert_eq!(refused, wanted(place.display().to_string()), "{what}");
        assert_eq!(contents(dir.path()), before, "{what}");
    }
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_unchanged() {
    let (dir, place) = place();
    let theirs = Connection::open(&place).unwrap();
    theirs
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE logs(x); INSERT INTO logs VALUES(1);")
        .unwrap();
    // Still open, with a journal that opening as a database would work through.
    let before = contents(dir.path());
    let refused = Sqlite::open(&place).unwrap_err();
    assert!(refused.to_string().contains("it is an SQLite database of another program"), "{refused}");
    assert_eq!(contents(dir.path()), before);
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_and_unchanged() {
    let (dir, place) = database(1, 1).await;
    edit(&place, "PRAGMA user_version = 11");
    let before = contents(dir.path());
    let newer = StoreError::Newer { place: place.display().to_string(), found: 11, known: 10 };
    assert_eq!(Sqlite::open(&place).unwrap_err(), newer);
    assert_eq!(contents(dir.path()), before);
}

#[tokio::test]
async fn a_database_of_an_earlier_version_is_refused_and_unchanged() {
    let (dir, place) = database(1, 1).await;
    edit(&place, "PRAGMA user_version = 7");
    let before = contents(dir.path());
    let older = StoreError::Older { place: place.display().to_string(), found: 7, known: 10 };
    assert_eq!(Sqlite::open(&place).unwrap_err(), older);
    assert_eq!(contents(dir.path()), before);
}

#[tokio::test]
async fn an_empty_file_becomes_a_database() {
    let (_dir, place) = place();
    fs::write(&place, "").unwrap();
    begin(&Sqlite::open(&place).unwrap(), "a", 2).await;
    assert_events(&Sqlite::open(&place).unwrap().read(&id("a"), 0).await.unwrap(), 0, 2);
}

#[test]
fn a_new_database_can_be_opened_by_many_at_once() {
    for _ in 0..5 {
        let (_dir, place) = place();
        let open = || Sqlite::open(&place).map(drop);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            for thread in threads {
                thread.join().unwrap().unwrap();
            }
        });
    }
}

#[tokio::test]
async fn a_failing_append_fails_alone() {
    let (_dir, place) = database(1, 0).await;
    edit(
        &place,
        "CREATE TRIGGER t BEFORE INSERT ON events WHEN new.seq = 7 BEGIN SELECT RAISE(FAIL, 'no'); END",
    );
    let store = AnyStore::new(Sqlite::open(&place).unwrap());
    let mut claims = Vec::new();
    for log in 0..12 {
        claims.push(begin(&store, &format!("new-{log}"), 3).await);
    }
    // One in three meets the trigger in the middle of its batch.
    let to = |nth: usize| if nth.is_multiple_of(3) { 9 } else { 5 };
    let appends = claims.iter().enumerate().map(|(nth, claim)| {
        let (store, batch) = (&store, events(3, to(nth)));
        async move { store.append(claim, &batch).await }
    });
    let results = join_all(appends).await;
    for (nth, (result, claim)) in results.into_iter().zip(&claims).enumerate() {
        let kept = store.read(&claim.id, 0).await.unwrap();
        match result {
            Ok(()) => assert_events(&kept, 0, 5),
            Err(error) => {
                assert!(nth.is_multiple_of(3) && matches!(&error, StoreError::Io { .. }), "{nth}: {error:?}");
                assert_events(&kept, 0, 3);
            }
        }
    }
}

#[tokio::test]
async fn what_is_around_a_damaged_event_is_readable() {
    let (_dir, place) = database(2, 9).await;
    edit(
        &place,
        "UPDATE events SET json = '{\"seq\":5' WHERE seq = 5 AND log = 1; DELETE FROM events WHERE seq = 7 AND log = 1",
    );
    let store = Sqlite::open(&place).unwrap();
    let damage = store.read(&id("log-0"), 0).await.unwrap_err();
    let StoreError::Damaged { place, why, intact: 5 } = &damage else { panic!("{damage:?}") };
    assert!(place.starts_with("`log-0` in "), "{place}");
    assert!(why.starts_with("event 5 is unreadable: "), "{why}");
    let intact = store.read_intact(&id("log-0")).await.unwrap();
    assert_eq!(seqs(&intact.events), [0, 1, 2, 3, 4, 6, 8]);
    assert_eq!(intact.damage, Some(damage));
    assert_events(&store.read(&id("log-1"), 7).await.unwrap(), 7, 9);
    assert_events(&store.read(&id("log-1"), 0).await.unwrap(), 0, 9);
}

/// What can be read of the logs, checked against what they were: each is a beginning of 0, 1, 2 and so on, with gaps
/// only where there is damage.
async fn readable(store: &Sqlite, logs: usize, to: u64) -> Vec<(u64, Option<StoreError>)> {
    let mut readable = Vec::new();
    for log in 0..logs {
        let log = id(&format!("log-{log}"));
        let (read, intact) = (store.read(&log, 0).await, store.read_intact(&log).await);
        let Ok(intact) = intact else {
            assert_eq!(read.unwrap_err(), intact.unwrap_err());
            continue;
        };
        let unbroken = match &intact.damage {
            Some(StoreError::Damaged { intact, .. }) => *intact,
            Some(error) => panic!("{error:?}"),
            None => intact.events.len() as u64,
        };
        assert_events(&intact.events[..usize::try_from(unbroken).unwrap()], 0, unbroken);
        let all = events(0, to);
        for event in &intact.events {
            assert_eq!(Arc::new(Event::clone(event)), all[usize::try_from(event.seq).unwrap()]);
        }
        match &intact.damage {
            Some(damage) => assert_eq!(read.as_ref(), Err(damage)),
            None => assert_eq!(read.unwrap(), intact.events),
        }
        readable.push((intact.events.len() as u64, intact.damage));
    }
    readable
}

#[tokio::test]
async fn a_damaged_page_takes_only_what_is_on_it() {
    const LOGS: usize = 8;
    let (_dir, place) = database(LOGS, 60).await;
    let sound = fs::read(&place).unwrap();
    let (mut hit_with_both_sides, mut wholes) = (0, Vec::new());
    for page in (1..sound.len() / PAGE).step_by(3) {
        let mut bytes = sound.clone();
        bytes[page * PAGE..page * PAGE + 64].fill(0xAA);
        fs::write(&place, bytes).unwrap();
        let store = Sqlite::open(&place).unwrap();
        let readable = readable(&store, LOGS, 60).await;
        let whole = readable.iter().filter(|(_, damage)| damage.is_none()).count();
        let both_sides = readable.iter().any(|(events, damage)| {
            matches!(damage, Some(StoreError::Damaged { intact, .. }) if intact < events && *intact > 0)
        });
        hit_with_both_sides += usize::from(both_sides);
        wholes.push(whole);
        let (listed, damage) = store.list_intact().await.unwrap();
        if whole < LOGS {
            let Some(StoreError::Damaged { intact, why, .. }) = damage else {
                panic!("page {page}: {damage:?}")
            };
            assert_eq!(
                intact,
                listed.iter().map(|log| log.summary.events).sum::<u64>(),
                "page {page}: {why}"
            );
        }
    }
    assert!(hit_with_both_sides > 5, "{hit_with_both_sides}");
    // Few pages are those through which others are found.
    let barely = wholes.iter().filter(|whole| **whole < LOGS - 2).count();
    assert!(barely * 10 < wholes.len(), "{wholes:?}");
}

#[tokio::test]
async fn a_database_that_is_cut_off_is_readable_as_far_as_it_goes() {
    const LOGS: usize = 8;
    let (_dir, place) = database(LOGS, 60).await;
    let sound = fs::read(&place).unwrap();
    let mut most = 0;
    for tenths in 1..10 {
        fs::write(&place, &sound[..sound.len() * tenths / 10]).unwrap();
        let store = Sqlite::open(&place).unwrap();
        let readable = readable(&store, LOGS, 60).await;
        let events: u64 = readable.iter().map(|(events, _)| events).sum();
        assert!(events >= most, "{tenths}/10: {readable:?}");
        most = events;
        let (listed, damage) = store.list_intact().await.unwrap();
        let listed_events = listed.iter().map(|log| log.summary.events).sum::<u64>();
        assert_eq!((listed.len(), listed_events), (LOGS, events));
        assert!(
            matches!(&damage, Some(StoreError::Damaged { intact, .. }) if *intact == events),
            "{damage:?}"
        );
        // Nothing is written to what is left.
        let refused = store.claim(&id("log-0")).await.unwrap_err();
        let kept = store.read_intact(&id("log-0")).await.unwrap().events.len() as u64;
        assert!(matches!(refused, StoreError::Damaged { intact, .. } if intact == kept), "{refused:?}");
        let refused = store.create(&id("new"), &polylogue_core::Meta::default()).await.unwrap_err();
        assert_eq!(Some(refused), damage);
        drop(store);
        assert_eq!(fs::read(&place).unwrap().len(), sound.len() * tenths / 10);
    }
    assert!(most > 60 * 6, "{most}");
}

/// One query counts the rows: what no list can contain shows that none is made.
#[tokio::test]
async fn logs_are_counted_without_a_list() {
    let (_dir, place) = database(3, 1).await;
    edit(&place, "UPDATE logs SET id = 'no id' WHERE id = 'log-1'");
    let store = Sqlite::open(&place).unwrap();
    assert_eq!(store.list(&ListQuery::default()).await.unwrap().logs.len(), 2);
    assert_eq!(store.count().await, Ok(3));
}
