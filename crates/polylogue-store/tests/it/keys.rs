//! Keys that are reserved for requests, until the reservation ends.

use std::fs;

use polylogue_core::{KEY_RESERVATION, ListQuery, Store};
use polylogue_store::{Jsonl, Memory, Sqlite};

use crate::queue::Time;

/// Another request can have a key once the time of the first one has passed.
async fn keys_are_free_in_time(store: &impl Store, time: &Time) {
    assert_eq!(store.reserve_key("a", "first").await.unwrap(), "first");
    time.pass(KEY_RESERVATION / 2);
    assert_eq!(store.reserve_key("b", "first").await.unwrap(), "first");
    assert_eq!(store.reserve_key("a", "second").await.unwrap(), "first");
    time.pass(KEY_RESERVATION / 2);
    assert_eq!(store.reserve_key("a", "second").await.unwrap(), "second");
    assert_eq!(store.reserve_key("b", "second").await.unwrap(), "first");
}

#[tokio::test]
async fn memory_reserves_keys_for_a_time() {
    let time = Time::new();
    keys_are_free_in_time(&Memory::with_clock(time.clock()), &time).await;
}

#[tokio::test]
async fn sqlite_reserves_keys_for_a_time_and_keeps_none_after_it() {
    let (time, dir) = (Time::new(), tempfile::tempdir().unwrap());
    let place = dir.path().join("chats.db");
    let store = Sqlite::open_with_clocks(&place, time.clock(), time.steady()).unwrap();
    keys_are_free_in_time(&store, &time).await;
    time.pass(KEY_RESERVATION);
    store.reserve_key("c", "first").await.unwrap();
    let connection = rusqlite::Connection::open(&place).unwrap();
    let keys: String =
        connection.query_row("SELECT group_concat(key) FROM reserved_keys", [], |row| row.get(0)).unwrap();
    assert_eq!(keys, "c");
}

#[tokio::test]
async fn jsonl_reserves_keys_for_a_time_and_keeps_few_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let (store, file) = (Jsonl::open(dir.path()).unwrap(), dir.path().join(".keys"));
    for key in ["a", "b", "c"] {
        store.reserve_key(key, "first").await.unwrap();
    }
    // The times of the first two lines have passed.
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let expired = |line: &str| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["until_ms"] = 1.into();
        line.to_string()
    };
    // Torn by a crash: it was not acknowledged.
    let torn = "{\"key\":\"d\",\"request\":\"first\"";
    let text = [expired(lines[0]).as_str(), &expired(lines[1]), lines[2], torn].join("\n");
    fs::write(&file, text).unwrap();
    for key in ["a", "c", "d"] {
        let holder = store.reserve_key(key, "second").await.unwrap();
        assert_eq!(holder, if key == "c" { "first" } else { "second" }, "{key}");
    }
    let text = fs::read_to_string(&file).unwrap();
    let keys: Vec<&str> = text.lines().filter_map(|line| line.split('"').nth(3)).collect();
    assert_eq!(keys, ["c", "a", "d"], "{text}");
    assert!(store.list(&ListQuery::default()).await.unwrap().logs.is_empty(), "it is no log");
}
