//! All stores keep all promises.

use polylogue_core::AnyStore;
use polylogue_store::{Jsonl, Memory, Sqlite};
use polylogue_test::store;

#[tokio::test]
async fn memory_conforms() {
    store::conforms(|| AnyStore::new(Memory::new())).await;
}

#[tokio::test]
async fn jsonl_conforms() {
    let dir = tempfile::tempdir().unwrap();
    let mut folders = (0..).map(|n| dir.path().join(format!("store {n}")));
    let folders = std::cell::RefCell::new(&mut folders);
    let make = || AnyStore::new(Jsonl::open(folders.borrow_mut().next().unwrap()).unwrap());
    store::conforms(make).await;
}

#[tokio::test]
async fn jsonl_survives() {
    let dir = tempfile::tempdir().unwrap();
    store::survives(|| AnyStore::new(Jsonl::open(dir.path()).unwrap())).await;
}

#[tokio::test]
async fn sqlite_conforms() {
    let dir = tempfile::tempdir().unwrap();
    let mut places = (0..).map(|n| dir.path().join(format!("folder {n}/store?{n}#%20.db")));
    let places = std::cell::RefCell::new(&mut places);
    let make = || AnyStore::new(Sqlite::open(places.borrow_mut().next().unwrap()).unwrap());
    store::conforms(make).await;
}

#[tokio::test]
async fn sqlite_survives() {
    let dir = tempfile::tempdir().unwrap();
    store::survives(|| AnyStore::new(Sqlite::open(dir.path().join("chats.db")).unwrap())).await;
}
