//! W47: logs that are archived, read, continued and removed.

use std::time::Duration;

use polylogue_core::{
    BlobId, Due, Features, InboxMessage, Instruction, LeaseNumber, Meta, Queue as _, Store as _, StoreError,
    Timestamp,
};
use polylogue_postgres::Postgres;
use polylogue_test::postgres::PostgresServer;

use crate::support::{assert_events, id, open, opened, said, some};

/// Everything of the events of a log that is in the tables, in its order.
fn stored(server: &PostgresServer) -> String {
    server.sql("SELECT seq, json, chain FROM polylogue.events ORDER BY seq")
}

/// Stores a log of so many events that no process has.
async fn released(store: &Postgres, events: u64) {
    let claim = store.create(&id("a"), &Meta::default()).await.unwrap();
    store.append(&claim, &some(0, events)).await.unwrap();
    store.release(claim).await.unwrap();
}

#[tokio::test]
async fn an_archived_log_is_read_as_before_and_a_claim_unpacks_the_same_bytes() {
    let Some((server, store)) = opened() else { return };
    let claim = store.create(&id("a"), &Meta::default()).await.unwrap();
    store.append(&claim, &some(0, 300)).await.unwrap();
    assert!(matches!(store.archive(&id("a")).await, Err(StoreError::Busy { .. })), "its writer is alive");
    store.release(claim).await.unwrap();
    store.schedule(&id("a"), Due::Now, None).await.unwrap();
    assert_eq!(store.archive(&id("a")).await, Err(StoreError::Queued { id: id("a") }));
    store.schedule(&id("a"), Due::Never, None).await.unwrap();
    let before = stored(&server);
    assert!(store.archive(&id("a")).await.unwrap());
    assert_eq!(stored(&server), "", "nothing is left in the table of events");
    let packed: usize = server.sql("SELECT sum(length(bytes)) FROM polylogue.archives").parse().unwrap();
    assert!(packed * 2 < before.len(), "{packed} of {} bytes", before.len());
    // Read whole, in part, and checked.
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 300);
    let last = store.read(&id("a"), 299).await.unwrap();
    assert_eq!(last.iter().map(|event| event.seq).collect::<Vec<_>>(), [299]);
    assert!(store.read_intact(&id("a")).await.unwrap().damage.is_none());
    assert!(store.archive(&id("a")).await.unwrap(), "again");
    // A claim unpacks it.
    let claim = open(&server).claim(&id("a")).await.unwrap();
    assert_eq!(stored(&server), before);
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.archives"), "0");
    drop(claim);
    assert!(matches!(store.archive(&id("nosuch")).await, Err(StoreError::NotFound { .. })));
}

/// A claim would leave of it only what can be unpacked.
#[tokio::test]
async fn an_archive_that_is_damaged_stays_until_it_is_repaired() {
    let Some((server, store)) = opened() else { return };
    released(&store, 300).await;
    store.archive(&id("a")).await.unwrap();
    let _ = server.sql("UPDATE polylogue.archives SET bytes = substr(bytes, 1, length(bytes) / 2)");
    let archive = || server.sql("SELECT md5(bytes) FROM polylogue.archives");
    let before = archive();
    let claim = store.claim(&id("a")).await.unwrap();
    assert!(matches!(store.read(&id("a"), 0).await, Err(StoreError::Damaged { .. })));
    store.release(claim).await.unwrap();
    assert_eq!((archive(), stored(&server)), (before, String::new()));
    let kept = store.repair(&id("a")).await.unwrap();
    assert!((1..300).contains(&kept), "{kept}");
    assert_events(&store.read(&id("a"), 0).await.unwrap(), kept);
    // Where nothing was appended, nothing is lost.
    let claim = store.create(&id("empty"), &Meta::default()).await.unwrap();
    store.release(claim).await.unwrap();
    store.archive(&id("empty")).await.unwrap();
    drop(store.claim(&id("empty")).await.unwrap());
    assert_eq!(archive(), "");
}

/// What it appended would be in another place than the events before.
#[tokio::test]
async fn a_process_that_stood_still_appends_nothing_to_what_was_archived_meanwhile() {
    let Some(server) = PostgresServer::start() else { return };
    let (frozen, other) = (open(&server), open(&server));
    let a = id("a");
    let claim = frozen.create(&a, &Meta::default()).await.unwrap();
    frozen.append(&claim, &some(0, 3)).await.unwrap();
    let expired = |seconds: u32| {
        let _ = server
            .sql(&format!("UPDATE polylogue.logs SET lease = now() - make_interval(secs => {seconds})"));
    };
    // The clock of the database may have jumped.
    expired(30);
    assert!(matches!(other.archive(&a).await, Err(StoreError::Busy { .. })), "its lease has just expired");
    expired(120);
    assert!(other.archive(&a).await.unwrap());
    assert_eq!(frozen.append(&claim, &some(3, 4)).await, Err(StoreError::Fenced { id: a.clone() }));
    assert_eq!(frozen.heartbeat(&[claim]).await, Ok(Vec::new()));
    assert_eq!(stored(&server), "");
    // Its next claim unpacks it.
    let claim = frozen.claim(&a).await.unwrap();
    frozen.append(&claim, &some(3, 4)).await.unwrap();
    let packed = server.sql("SELECT count(*) FROM polylogue.archives");
    assert_eq!((server.sql("SELECT count(*) FROM polylogue.events"), packed), ("4".into(), "0".into()));
    // A message that its process did not take has a worker continue it.
    let instruction = Instruction::Answer { question: 1, text: "yes".into(), by: None };
    let message = InboxMessage { key: "k".into(), request: None, posted: Timestamp(1), instruction };
    other.post(&a, &message).await.unwrap();
    expired(120);
    assert_eq!(other.archive(&a).await, Err(StoreError::Queued { id: a.clone() }));
    let claims = other.claim_due(9, &Features::none(), &[], LeaseNumber::ALL).await.unwrap();
    assert_eq!(claims.iter().map(|claim| &claim.id).collect::<Vec<_>>(), [&a]);
}

/// A worker's claim unpacks, too, and what is appended follows.
#[tokio::test]
async fn a_worker_continues_an_archived_log() {
    let Some((server, store)) = opened() else { return };
    released(&store, 3).await;
    store.archive(&id("a")).await.unwrap();
    store.schedule(&id("a"), Due::Now, None).await.unwrap();
    let claims = store.claim_due(9, &Features::none(), &[], LeaseNumber::ALL).await.unwrap();
    store.append(&claims[0], &[said(3, "3")]).await.unwrap();
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 4);
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.events"), "4");
}

#[tokio::test]
async fn a_log_that_cannot_be_unpacked_keeps_no_other_from_its_worker() {
    let Some((server, store)) = opened() else { return };
    released(&store, 3).await;
    store.archive(&id("a")).await.unwrap();
    let claim = store.create(&id("b"), &Meta::default()).await.unwrap();
    store.release(claim).await.unwrap();
    for name in ["a", "b"] {
        store.schedule(&id(name), Due::Now, None).await.unwrap();
    }
    let _ = server.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the disk is full'; END $$;
        CREATE TRIGGER a BEFORE DELETE ON polylogue.archives FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let claims = store.claim_due(9, &Features::none(), &[], LeaseNumber::ALL).await.unwrap();
    assert_eq!(claims.iter().map(|claim| claim.id.as_str()).collect::<Vec<_>>(), ["b"]);
    let failed = "SELECT holder IS NULL, due > now(), tries, failure LIKE '%the disk is full%'
        FROM polylogue.logs WHERE id = 'a'";
    assert_eq!(server.sql(failed), "t|t|1|t");
}

/// Blobs are packed with their log if they get smaller, and are read as before.
#[tokio::test]
async fn blobs_of_an_archived_log_take_less_space() {
    let Some((server, store)) = opened() else { return };
    released(&store, 3).await;
    let mut seed = 7_u32;
    let noise = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed.to_be_bytes()[0]
    });
    let texts: [Vec<u8>; 2] = [b"a line of a long result\n".repeat(5_000), noise.take(5_000).collect()];
    for text in &texts {
        assert!(store.store_blob(&id("a"), &BlobId::of(text), text).await.unwrap());
    }
    store.archive(&id("a")).await.unwrap();
    let sizes = server.sql("SELECT string_agg(length(bytes) || ' ' || is_packed, ', ' ORDER BY length(bytes)) FROM polylogue.blobs");
    let packed: usize = sizes.split(' ').next().unwrap().parse().unwrap();
    assert!(packed < 2_000 && sizes.ends_with("true, 5000 false"), "{sizes}");
    for text in &texts {
        assert_eq!(store.stored_blob(&id("a"), &BlobId::of(text)).await.unwrap().as_deref(), Some(&**text));
    }
    // One that was changed in the table is noticed.
    let _ = server.sql("UPDATE polylogue.blobs SET bytes = '\\x0102' WHERE is_packed");
    let error = store.stored_blob(&id("a"), &BlobId::of(&texts[0])).await.unwrap_err();
    assert!(error.to_string().contains("it is not what was stored"), "{error}");
}

/// The session is killed within packing and unpacking: the log is whole in one of the two places.
#[tokio::test]
async fn a_log_whose_packing_was_killed_is_whole_in_one_place() {
    let Some((server, store)) = opened() else { return };
    released(&store, 20).await;
    let _ = server.sql(
        "CREATE SEQUENCE done; CREATE SEQUENCE last;
        CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('done') = (SELECT last_value FROM last) THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER a AFTER INSERT OR DELETE ON polylogue.events FOR EACH ROW EXECUTE FUNCTION die();
        CREATE TRIGGER b AFTER INSERT OR DELETE ON polylogue.archives FOR EACH ROW EXECUTE FUNCTION die()",
    );
    // Packing and unpacking change 21 rows each.
    for last in 1..=21 {
        for is_packed in [false, true] {
            let _ = server.sql(&format!("SELECT setval('last', {last}), setval('done', 1, false)"));
            // It is tried again after the kill, by the same store.
            match is_packed {
                false => assert!(store.archive(&id("a")).await.unwrap()),
                true => store.release(store.claim(&id("a")).await.unwrap()).await.unwrap(),
            }
            let places = server.sql(
                "SELECT (SELECT count(*) FROM polylogue.events), (SELECT count(*) FROM polylogue.archives)",
            );
            assert_eq!(places, if is_packed { "20|0" } else { "0|1" }, "row {last}");
            // A sequence counts on when a statement is undone.
            let rows: u32 = server.sql("SELECT last_value FROM done").parse().unwrap();
            assert!(rows > 21, "row {last}: {rows} rows, so nothing was killed");
            assert_events(&store.read(&id("a"), 0).await.unwrap(), 20);
        }
    }
}

/// A removed log leaves nothing, wherever its parts are.
#[tokio::test]
async fn a_removed_log_leaves_nothing() {
    let Some((server, store)) = opened() else { return };
    let meta = Meta { title: "s3cret".into(), team: serde_json::json!("s3cret"), ..Meta::default() };
    for (name, is_archived) in [("a", false), ("b", true)] {
        let claim = store.create(&id(name), &meta).await.unwrap();
        store.append(&claim, &[said(0, "s3cret")]).await.unwrap();
        store.store_blob(&id(name), &BlobId::of(b"s3cret"), b"s3cret").await.unwrap();
        store.release(claim).await.unwrap();
        if is_archived {
            store.archive(&id(name)).await.unwrap();
        }
        store.remove(&id(name)).await.unwrap();
    }
    for table in ["logs", "teams", "events", "inbox", "blobs", "archives", "set_aside", "budget_logs"] {
        assert_eq!(server.sql(&format!("SELECT count(*) FROM polylogue.{table}")), "0", "{table}");
    }
}

/// Waits until a statement waits for a lock.
async fn until_one_waits(server: &PostgresServer) {
    for _ in 0..500 {
        if server.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") != "0" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What is being stored when a log is removed is removed with it, or not stored.
#[tokio::test]
async fn nothing_is_stored_of_a_log_while_it_is_removed() {
    let Some((server, store)) = opened() else { return };
    released(&store, 3).await;
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let driven = tokio::spawn(connection);
    let storing = "BEGIN;
        UPDATE polylogue.logs SET posted = posted + 1;
        INSERT INTO polylogue.inbox(log, nr, key, json) SELECT nr, posted, 'key', 's3cret' FROM polylogue.logs;
        INSERT INTO polylogue.blobs(log, id, bytes) SELECT nr, 'blob', 's3cret' FROM polylogue.logs";
    client.batch_execute(storing).await.unwrap();
    let a = id("a");
    let (removed, ()) = tokio::join!(store.remove(&a), async {
        until_one_waits(&server).await;
        client.batch_execute("COMMIT").await.unwrap();
    });
    assert_eq!(removed, Ok(()));
    let left = || {
        ["logs", "events", "inbox", "blobs"]
            .map(|table| server.sql(&format!("SELECT count(*) FROM polylogue.{table}")))
    };
    assert_eq!(left(), ["0", "0", "0", "0"]);
    // The removal is first.
    released(&store, 3).await;
    client.batch_execute("BEGIN; SELECT polylogue.remove(tenant, id) FROM polylogue.logs").await.unwrap();
    let (blob, bytes) = (BlobId::of(b"s3cret"), b"s3cret");
    let (stored, ()) = tokio::join!(store.store_blob(&a, &blob, bytes), async {
        until_one_waits(&server).await;
        client.batch_execute("COMMIT").await.unwrap();
    });
    assert_eq!(stored, Err(StoreError::NotFound { id: a.clone() }));
    assert_eq!(left(), ["0", "0", "0", "0"]);
    drop(client);
    driven.await.unwrap().unwrap();
}
