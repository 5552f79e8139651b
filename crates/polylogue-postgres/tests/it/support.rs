//! What several tests need.

use std::sync::Arc;

use polylogue_core::{Body, Event, LogId, Message, Name, Path, Timestamp};
use polylogue_postgres::{Address, Postgres};
use polylogue_test::postgres::PostgresServer;

pub(crate) fn id(text: &str) -> LogId {
    LogId::new(text).unwrap()
}

pub(crate) fn said(seq: u64, text: &str) -> Arc<Event> {
    let body = Body::Message(Message::new(Name::user(), text));
    Arc::new(Event { seq, chat: Path::root(), time: Timestamp(seq), ran_ms: 0, inbox: None, body })
}

/// Events `from` to before `to`, each with its number as text.
pub(crate) fn some(from: u64, to: u64) -> Vec<Arc<Event>> {
    (from..to).map(|seq| said(seq, &seq.to_string())).collect()
}

#[track_caller]
pub(crate) fn assert_events(found: &[Event], to: u64) {
    let wanted: Vec<Event> = some(0, to).iter().map(|event| Event::clone(event)).collect();
    let seqs: Vec<u64> = found.iter().map(|event| event.seq).collect();
    assert!(found == wanted, "found {seqs:?}, wanted 0..{to}");
}

pub(crate) fn open(server: &PostgresServer) -> Postgres {
    Postgres::open(Address::parse(&server.url()).unwrap()).unwrap()
}

/// A server of its own, and a store there; none where no server can be started.
pub(crate) fn opened() -> Option<(PostgresServer, Postgres)> {
    let server = PostgresServer::start()?;
    let store = open(&server);
    Some((server, store))
}

/// Ends the lease of every claim, as if its holder had been silent for long.
pub(crate) fn expire(server: &PostgresServer) {
    let _ = server.sql("UPDATE polylogue.logs SET lease = '-infinity' WHERE lease IS NOT NULL");
}
