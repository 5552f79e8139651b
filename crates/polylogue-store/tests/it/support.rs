//! What several tests need.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use polylogue_core::{
    AnyStore, Body, Claim, Event, ListQuery, Listing, LogId, Message, Meta, Name, Path as ChatPath, Store,
    StoreError, Timestamp,
};
use polylogue_store::{Jsonl, Sqlite};

/// A store that outlives its process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Jsonl,
    Sqlite,
}

impl Kind {
    pub(crate) fn open(self, dir: &Path) -> Result<AnyStore, StoreError> {
        match self {
            Self::Jsonl => Jsonl::open(dir).map(AnyStore::new),
            Self::Sqlite => Sqlite::open(dir.join("chats.db")).map(AnyStore::new),
        }
    }
}

pub(crate) fn id(text: &str) -> LogId {
    LogId::new(text).unwrap()
}

/// Event number `seq`. Its text follows from the number, and is now short and now long.
pub(crate) fn event(seq: u64) -> Arc<Event> {
    let text = format!("{seq}: {}", "é!".repeat(usize::try_from(seq * seq % 499).unwrap()));
    let body = Body::Message(Message::new(Name::user(), text));
    Arc::new(Event { seq, chat: ChatPath::root(), time: Timestamp(seq), ran_ms: 0, inbox: None, body })
}

pub(crate) fn events(from: u64, to: u64) -> Vec<Arc<Event>> {
    (from..to).map(event).collect()
}

/// Whether `found` are the events `from` to before `to`.
#[track_caller]
pub(crate) fn assert_events(found: &[Event], from: u64, to: u64) {
    let wanted: Vec<Event> = events(from, to).iter().map(|event| Event::clone(event)).collect();
    assert!(found == wanted, "found {:?}, wanted {from}..{to}", seqs(found));
}

pub(crate) fn seqs(found: &[Event]) -> Vec<u64> {
    found.iter().map(|event| event.seq).collect()
}

/// A new log with the events before `to`, still claimed.
pub(crate) async fn begin(store: &impl Store, name: &str, to: u64) -> Claim {
    let claim = store.create(&id(name), &Meta { title: name.into(), ..Meta::default() }).await.unwrap();
    store.append(&claim, &events(0, to)).await.unwrap();
    claim
}

/// All logs of a store.
pub(crate) async fn list(store: &impl Store) -> Vec<Listing> {
    store.list(&ListQuery::default()).await.unwrap().logs
}

/// Names and contents of all files in a folder.
pub(crate) fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap_or_default()))
        .collect();
    files.sort();
    files
}
