//! W44: migrations, by a list that has one more than this version, and what processes of this version do then (W43).

use std::sync::Arc;

use polylogue_core::{
    Body, Claim, Due, Event, Features, InboxMessage, Instruction, LeaseNumber, ListQuery, LogId, Message,
    Meta, Name, Path, Queue as _, Store as _, StoreError, Timestamp, WorkerInfo,
};
use polylogue_test::postgres::PostgresServer;

use super::*;
use crate::address::Address;
use crate::schema::{FORMAT, FORMATS, Formats, Migration};
use crate::store::Postgres;

const NEXT: u64 = FORMAT + 1;

/// Three statements that change tables, and two that change rows.
const COLORS: &str =
    "ALTER TABLE polylogue.logs ADD COLUMN color text; CREATE TABLE polylogue.colors(name text PRIMARY KEY);
    INSERT INTO polylogue.colors VALUES('red'); UPDATE polylogue.logs SET color = 'red';
    CREATE INDEX logs_color ON polylogue.logs(color)";

/// Those of a later version.
fn later(oldest_reader: u64, sql: &'static str) -> Formats {
    let migration = Migration { format: NEXT, oldest_reader, sql };
    [FORMATS, &[migration]].concat().leak()
}

fn open(server: &PostgresServer, formats: Formats) -> Postgres {
    Postgres::open_with(Address::parse(&server.url()).unwrap(), formats).unwrap()
}

/// A store of this version that has connected.
async fn connected(server: &PostgresServer) -> Postgres {
    let store = open(server, FORMATS);
    store.check().await.unwrap();
    store
}

fn id(text: &str) -> LogId {
    LogId::new(text).unwrap()
}

async fn append(store: &Postgres, claim: &Claim, seq: u64) -> Result<(), StoreError> {
    let body = Body::Message(Message::new(Name::user(), "hello"));
    let event = Event { seq, chat: Path::root(), time: Timestamp(seq), ran_ms: 0, inbox: None, body };
    store.append(claim, &[Arc::new(event)]).await
}

async fn claim_due(store: &Postgres, room: usize) -> Result<Vec<Claim>, StoreError> {
    store.claim_due(room, &Features::none(), &[], LeaseNumber::ALL).await
}

/// The format, and the oldest one that can read it.
fn stored_format(server: &PostgresServer) -> String {
    server.sql("SELECT format, oldest_reader FROM polylogue.format")
}

fn is_newer<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Newer { found: NEXT, known: FORMAT, .. }))
}

#[tokio::test]
async fn tables_are_migrated_when_that_is_asked_for_and_once_by_processes_at_once() {
    // Timeouts of the database do not count in a migration, which is a transaction of several statements.
    let Some(server) = PostgresServer::start_with(&["idle_in_transaction_session_timeout=1ms"]) else {
        return;
    };
    let old = open(&server, FORMATS);
    let nothing = Migrated { from: FORMAT, to: FORMAT, released: 0 };
    assert_eq!(old.migrate().await, Ok(nothing), "they were created");
    let claim = old.create(&id("a"), &Meta::default()).await.unwrap();
    append(&old, &claim, 0).await.unwrap();
    old.release(claim).await.unwrap();
    let formats = later(FORMAT, COLORS);
    // A use migrates nothing.
    let refused = open(&server, formats).list(&ListQuery::default()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unsuitable { .. }), "{refused:?}");
    assert!(
        refused.to_string().contains(&format!("format {FORMAT}, and this version uses format {NEXT}")),
        "{refused}"
    );
    assert!(refused.hint().unwrap_or_default().contains("`polylogue migrate`"), "{refused:?}");
    assert_eq!(stored_format(&server), format!("{FORMAT}|{FORMAT}"));
    let (one, other) = (open(&server, formats), open(&server, formats));
    let (first, second) = tokio::join!(one.migrate(), other.migrate());
    let mut both = [first.unwrap(), second.unwrap()];
    both.sort_by_key(|migrated| migrated.from);
    let [did, found] = both;
    assert_eq!(did, Migrated { from: FORMAT, to: NEXT, released: 0 });
    assert_eq!(found, Migrated { from: NEXT, to: NEXT, released: 0 });
    assert_eq!(stored_format(&server), format!("{NEXT}|{FORMAT}"));
    assert_eq!(server.sql("SELECT color FROM polylogue.logs"), "red");
    // Everything is there, and continues.
    let claim = one.claim(&id("a")).await.unwrap();
    append(&one, &claim, 1).await.unwrap();
    assert_eq!(other.read(&id("a"), 0).await.unwrap().len(), 2);
}

#[test]
fn tables_that_another_program_has_locked_for_long_can_be_migrated_later() {
    let address = Address::parse("postgres://ann@db.example.com/chats").unwrap();
    let canceled = unsuitable(&address, "canceling statement due to lock timeout", "a longer one");
    let error = is_locked(&address, Failure::Again(canceled)).give_up(&address);
    assert!(error.to_string().contains("another program has locked its tables"), "{error}");
    assert!(error.hint().unwrap_or_default().contains("migrate again"), "{error:?}");
    let deadlock = StoreError::Io { place: address.to_string(), why: "deadlock detected".into() };
    assert_eq!(is_locked(&address, Failure::Again(deadlock.clone())).give_up(&address), deadlock);
}

#[tokio::test]
async fn a_migration_that_fails_or_is_killed_at_any_statement_leaves_the_old_format() {
    let Some(server) = PostgresServer::start() else { return };
    let old = open(&server, FORMATS);
    let claim = old.create(&id("a"), &Meta::default()).await.unwrap();
    old.release(claim).await.unwrap();
    let is_old = || {
        assert_eq!(stored_format(&server), format!("{FORMAT}|{FORMAT}"));
        assert_eq!(server.sql("SELECT to_regclass('polylogue.colors') IS NULL"), "t", "nothing has changed");
    };
    let failing = later(FORMAT, "CREATE TABLE polylogue.colors(name text); SELECT 1 / 0");
    let failed = open(&server, failing).migrate().await.unwrap_err();
    assert!(failed.to_string().contains("division by zero"), "{failed}");
    is_old();
    let refusal_of = async |format: u64| {
        let _ = server.sql(&format!("UPDATE polylogue.format SET format = {format}"));
        open(&server, later(FORMAT, COLORS)).migrate().await.unwrap_err()
    };
    let (older, newer) = (refusal_of(1).await, refusal_of(99).await);
    assert!(matches!(older, StoreError::Older { found: 1, known: NEXT, .. }), "{older:?}");
    assert!(matches!(newer, StoreError::Newer { found: 99, known: NEXT, .. }), "{newer:?}");
    let _ = server.sql(&format!("UPDATE polylogue.format SET format = {FORMAT}"));
    // Ends the session after so many statements that change tables. A sequence counts on when a transaction is undone.
    let _ = server.sql(
        "CREATE SEQUENCE made; CREATE SEQUENCE last;
        CREATE FUNCTION die() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('made') = (SELECT last_value FROM last) THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
        END $$;
        CREATE EVENT TRIGGER die ON ddl_command_end EXECUTE FUNCTION die()",
    );
    let mut killed = 0;
    loop {
        let next = killed + 1;
        let _ = server.sql(&format!("SELECT setval('last', {next}), setval('made', 1, false)"));
        if open(&server, later(FORMAT, COLORS)).migrate().await.is_ok() {
            break;
        }
        is_old();
        // The version before still runs.
        let claim = old.claim(&id("a")).await.unwrap();
        append(&old, &claim, killed).await.unwrap();
        old.release(claim).await.unwrap();
        killed = next;
    }
    assert_eq!(killed, 3, "once at each statement that changes tables");
    assert_eq!(stored_format(&server), format!("{NEXT}|{FORMAT}"));
    assert_eq!(open(&server, later(FORMAT, COLORS)).read(&id("a"), 0).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_migration_releases_all_claims_and_processes_of_the_earlier_format_write_nothing_more() {
    let Some(server) = PostgresServer::start() else { return };
    let running = connected(&server).await;
    for name in ["a", "b"] {
        let claim = running.create(&id(name), &Meta::default()).await.unwrap();
        running.release_until(claim, Due::Now).await.unwrap();
    }
    let held = claim_due(&running, 1).await.unwrap().remove(0);
    append(&running, &held, 0).await.unwrap();
    let (a, meta) = (held.id.clone(), Meta::default());
    let mut old = Vec::new();
    for _ in 0..10 {
        old.push(connected(&server).await);
    }
    let new = open(&server, later(FORMAT, COLORS));
    assert_eq!(new.migrate().await, Ok(Migrated { from: FORMAT, to: NEXT, released: 1 }));
    assert_eq!(append(&running, &held, 1).await, Err(StoreError::Fenced { id: a.clone() }));
    // Each by a process that does not know yet.
    let message = InboxMessage {
        key: "key".into(),
        request: None,
        posted: Timestamp(1),
        instruction: Instruction::Pause,
    };
    let worker = WorkerInfo::default();
    let results = [
        ("claim_due", claim_due(&old[0], 1).await.map(|_| ())),
        ("claim", old[1].claim(&a).await.map(|_| ())),
        ("create", old[2].create(&id("c"), &meta).await.map(|_| ())),
        ("post", old[3].post(&a, &message).await.map(|_| ())),
        ("schedule", old[4].schedule(&a, Due::Now, None).await),
        ("set_needs", old[5].set_needs(&a, &Features::none()).await),
        ("announce", old[6].announce(Some(&worker)).await),
        ("check_writable", old[7].check_writable().await),
        ("archive", old[8].archive(&a).await.map(|_| ())),
        ("reserve_key", old[9].reserve_key("key", "request").await.map(|_| ())),
    ];
    for (what, result) in results {
        assert!(is_newer(&result), "{what}: {result:?}");
    }
    // Who knows writes nothing, and reads.
    assert!(is_newer(&old[0].heartbeat(std::slice::from_ref(&held)).await));
    assert_eq!(old[0].read(&a, 0).await.unwrap().len(), 1);
    let claims = claim_due(&new, 9).await.unwrap();
    assert_eq!(claims.len(), 2, "both are due, and nothing was created");
    let continued = claims.iter().find(|claim| claim.id == a).unwrap();
    append(&new, continued, 1).await.unwrap();
}

#[tokio::test]
async fn tables_that_the_earlier_version_cannot_read_are_refused_as_soon_as_it_notices() {
    let Some(server) = PostgresServer::start() else { return };
    let old = connected(&server).await;
    let claim = old.create(&id("a"), &Meta::default()).await.unwrap();
    append(&old, &claim, 0).await.unwrap();
    open(&server, later(NEXT, COLORS)).migrate().await.unwrap();
    assert!(is_newer(&claim_due(&old, 1).await));
    assert!(is_newer(&old.read(&id("a"), 0).await));
    assert!(is_newer(&old.list(&ListQuery::default()).await));
}
