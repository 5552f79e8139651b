//! W47: logs in a database that are archived, read, continued and removed.

use std::path::Path;

use polylogue_core::{BlobId, Due, Features, LeaseNumber, Queue as _, Store as _, StoreError};
use polylogue_store::Sqlite;
use rusqlite::Connection;

use crate::support::{assert_events, begin, events, id};

/// What a query of the database returns, as text.
fn get(place: &Path, sql: &str) -> String {
    let connection = Connection::open(place).unwrap();
    connection.query_row(sql, [], |row| row.get::<_, Option<String>>(0)).unwrap().unwrap_or_default()
}

const ROWS: &str = "SELECT group_concat(seq || json || hex(chain), '\n') FROM events";
const COUNTS: &str = "SELECT (SELECT count(*) FROM events) || ' ' || (SELECT count(*) FROM archives)";

#[tokio::test]
async fn an_archived_log_takes_less_space_and_a_claim_unpacks_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("chats.db");
    let store = Sqlite::open(&place).unwrap();
    store.release(begin(&store, "a", 300).await).await.unwrap();
    let long = b"a line of a long result\n".repeat(5_000);
    for blob in [&long[..], b"x"] {
        assert!(store.store_blob(&id("a"), &BlobId::of(blob), blob).await.unwrap());
    }
    let before = get(&place, ROWS);
    assert!(store.archive(&id("a")).await.unwrap());
    assert_eq!(get(&place, COUNTS), "0 1");
    let packed: usize = get(&place, "SELECT '' || length(bytes) FROM archives").parse().unwrap();
    assert!(packed * 2 < before.len(), "{packed} of {} bytes", before.len());
    let blobs = get(
        &place,
        "SELECT group_concat((length(bytes) < 2000) || ' ' || is_packed, ', ') FROM (SELECT * FROM blobs ORDER BY is_packed)",
    );
    assert_eq!(blobs, "1 0, 1 1", "one gets no smaller");
    // Reading unpacks nothing; a claim does.
    assert_events(&store.read(&id("a"), 250).await.unwrap(), 250, 300);
    assert_eq!(get(&place, COUNTS), "0 1");
    let claim = store.claim(&id("a")).await.unwrap();
    assert_eq!(get(&place, COUNTS), "300 0");
    assert_eq!(get(&place, ROWS), before);
    store.append(&claim, &events(300, 301)).await.unwrap();
    // A worker's claim, too.
    store.release(claim).await.unwrap();
    store.archive(&id("a")).await.unwrap();
    store.schedule(&id("a"), Due::Now, None).await.unwrap();
    let claims = store.claim_due(9, &Features::none(), &[], LeaseNumber::ALL).await.unwrap();
    store.append(&claims[0], &events(301, 302)).await.unwrap();
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, 302);
    assert_eq!(get(&place, COUNTS), "302 0");
    store.release_until(claims[0].clone(), Due::Never).await.unwrap();
    store.archive(&id("a")).await.unwrap();
    store.remove(&id("a")).await.unwrap();
    for table in ["logs", "events", "archives", "blobs", "heads", "queue"] {
        assert_eq!(get(&place, &format!("SELECT '' || count(*) FROM {table}")), "0", "{table}");
    }
}

/// Packing and unpacking fail at any of the rows that they change: the log is whole in one of the two places.
#[tokio::test]
async fn a_log_whose_packing_failed_is_whole_in_one_place() {
    const EVENTS: u64 = 6;
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("chats.db");
    let store = Sqlite::open(&place).unwrap();
    store.release(begin(&store, "a", EVENTS).await).await.unwrap();
    let edit = |sql: &str| Connection::open(&place).unwrap().execute_batch(sql).unwrap();
    for at in 0..EVENTS {
        for is_packed in [false, true] {
            let table = if is_packed { ("INSERT", "new") } else { ("DELETE", "old") };
            edit(&format!(
                "CREATE TRIGGER fails AFTER {} ON events WHEN {}.seq = {at} BEGIN SELECT RAISE(ABORT, 'a fault'); END",
                table.0, table.1
            ));
            let failed = match is_packed {
                false => store.archive(&id("a")).await.map(drop),
                true => store.claim(&id("a")).await.map(drop),
            };
            assert!(failed.unwrap_err().to_string().contains("a fault"));
            assert_eq!(get(&place, COUNTS), if is_packed { "0 1" } else { "6 0" }, "row {at}");
            assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, EVENTS);
            edit("DROP TRIGGER fails");
            match is_packed {
                false => assert!(store.archive(&id("a")).await.unwrap()),
                true => store.release(store.claim(&id("a")).await.unwrap()).await.unwrap(),
            }
        }
    }
}

/// What can be read of a damaged archive is not lost by claiming its log, and is kept by repairing it.
#[tokio::test]
async fn a_damaged_archive_is_kept_until_it_is_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("chats.db");
    let store = Sqlite::open(&place).unwrap();
    store.release(begin(&store, "a", 200).await).await.unwrap();
    store.archive(&id("a")).await.unwrap();
    let cut = "UPDATE archives SET bytes = substr(bytes, 1, length(bytes) / 2)";
    Connection::open(&place).unwrap().execute_batch(cut).unwrap();
    assert!(matches!(store.read(&id("a"), 0).await, Err(StoreError::Damaged { .. })));
    assert!(matches!(store.archive(&id("a")).await, Err(StoreError::Damaged { .. })));
    let claim = store.claim(&id("a")).await.unwrap();
    let refused = store.append(&claim, &events(200, 201)).await;
    assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
    store.release(claim).await.unwrap();
    assert_eq!(get(&place, COUNTS), "0 1");
    let kept = store.repair(&id("a")).await.unwrap();
    assert!((1..200).contains(&kept), "{kept}");
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, kept);
    assert_eq!(get(&place, "SELECT '' || count(*) FROM archives"), "0");
    let claim = store.claim(&id("a")).await.unwrap();
    store.append(&claim, &events(kept, kept + 1)).await.unwrap();
}
