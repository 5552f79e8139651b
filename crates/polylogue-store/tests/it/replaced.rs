//! A store that is replaced, removed or changed while it is written.

use std::fs;
use std::path::{Path, PathBuf};

use polylogue_core::{AnyStore, Claim, Store, StoreError};

use crate::processes::BOTH;
use crate::support::{Kind, assert_events, begin, event, id};

fn file(kind: Kind, dir: &Path) -> PathBuf {
    dir.join(if let Kind::Jsonl = kind { "a.jsonl" } else { "chats.db" })
}

/// A store with three events of `a`, claimed.
async fn writing(kind: Kind) -> (tempfile::TempDir, AnyStore, Claim) {
    let dir = tempfile::tempdir().unwrap();
    let store = kind.open(dir.path()).unwrap();
    let claim = begin(&store, "a", 3).await;
    (dir, store, claim)
}

async fn is_noticed(kind: Kind, store: &AnyStore, claim: &Claim) {
    let refused = store.append(claim, &[event(3)]).await;
    assert!(matches!(refused, Err(StoreError::Replaced { .. })), "{kind:?}: {refused:?}");
    let renewed = store.renew(claim).await;
    assert!(matches!(renewed, Err(StoreError::Replaced { .. })), "{kind:?}: {renewed:?}");
    // It stays so: nothing is acknowledged that others do not find.
    assert!(store.append(claim, &[event(3)]).await.is_err(), "{kind:?}");
}

#[tokio::test]
async fn a_copy_that_takes_the_place_of_the_file_is_noticed_by_the_next_append() {
    for kind in BOTH {
        let (dir, store, claim) = writing(kind).await;
        let (file, copy) = (file(kind, dir.path()), dir.path().join("copy"));
        // As `sed -i`, editors and synchronizers do, and those who restore.
        fs::copy(&file, &copy).unwrap();
        fs::rename(&copy, &file).unwrap();
        is_noticed(kind, &store, &claim).await;
    }
}

#[tokio::test]
async fn a_file_that_is_removed_is_noticed_by_the_next_append() {
    for kind in BOTH {
        let (dir, store, claim) = writing(kind).await;
        fs::remove_file(file(kind, dir.path())).unwrap();
        is_noticed(kind, &store, &claim).await;
    }
}

#[tokio::test]
async fn a_journal_that_is_removed_is_noticed_by_the_next_append() {
    let (dir, store, claim) = writing(Kind::Sqlite).await;
    fs::remove_file(dir.path().join("chats.db-wal")).unwrap();
    is_noticed(Kind::Sqlite, &store, &claim).await;
}

#[tokio::test]
async fn an_older_state_that_is_written_over_the_file_is_noticed_by_the_next_append() {
    let dir = tempfile::tempdir().unwrap();
    let store = Kind::Jsonl.open(dir.path()).unwrap();
    let claim = begin(&store, "a", 2).await;
    let path = file(Kind::Jsonl, dir.path());
    let old = fs::read(&path).unwrap();
    store.append(&claim, &[event(2)]).await.unwrap();
    fs::write(&path, old).unwrap();
    is_noticed(Kind::Jsonl, &store, &claim).await;
}

#[tokio::test]
async fn a_file_that_is_only_touched_stays_open() {
    let (dir, store, claim) = writing(Kind::Jsonl).await;
    let file = fs::File::options().write(true).open(file(Kind::Jsonl, dir.path())).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    store.append(&claim, &[event(3)]).await.unwrap();
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, 4);
}

#[tokio::test]
async fn a_reader_reads_the_database_that_is_there_now() {
    let (dir, store, _claim) = writing(Kind::Sqlite).await;
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, 3);
    let other = tempfile::tempdir().unwrap();
    let begun = Kind::Sqlite.open(other.path()).unwrap();
    drop(begin(&begun, "a", 2).await);
    drop(begun);
    for end in ["-wal", "-shm"] {
        fs::remove_file(dir.path().join(format!("chats.db{end}"))).unwrap();
    }
    fs::remove_dir_all(dir.path().join("chats.db.writers")).unwrap();
    fs::rename(other.path().join("chats.db"), dir.path().join("chats.db")).unwrap();
    assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, 2);
}
