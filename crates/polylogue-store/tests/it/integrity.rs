//! Whatever is read is what was written, or an error says what is wrong: logs that are changed at random.

use std::fs;
use std::path::{Path, PathBuf};

use polylogue_core::chain::{Link, seal, unseal};
use polylogue_core::{
    Event, InboxMessage, Instruction, ListQuery, Meta, RecoveredEvents, Store, StoreError, Summary, Timestamp,
};
use polylogue_store::{Jsonl, Sqlite};
use polylogue_test::random::Random;
use rusqlite::Connection;

use crate::processes::{BOTH, seed};
use crate::support::{Kind, assert_events, begin, contents, event, events, id, list, seqs};

const EVENTS: u64 = 12;

/// How many mutated logs each test reads: `POLYLOGUE_TEST_MUTATIONS`, or few enough for every day.
fn mutations(usually: u64) -> u64 {
    std::env::var("POLYLOGUE_TEST_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(usually)
}

/// Changes `bytes` in a way that depends on chance alone, unless an earlier change has left none.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let mut at = |limit: usize| usize::try_from(random.below(limit.max(1) as u64)).unwrap();
    let (start, other, len) = (at(bytes.len()), at(bytes.len()), at(64));
    let end = (start + len).min(bytes.len());
    match at(8) {
        0 => bytes[start] ^= 1 << at(8),
        1 => bytes[start] = u8::try_from(at(256)).unwrap(),
        2 => bytes.truncate(start),
        3 => drop(bytes.drain(start..end)),
        4 => bytes[start..end].fill(0),
        5 => {
            let piece = bytes[start..end].to_vec();
            bytes.splice(other..other, piece);
        }
        6 => bytes.swap(start, other),
        _ => {
            // A digit or a letter, so that it stays a text that can be read.
            let letter = bytes.iter().skip(start).position(u8::is_ascii_alphanumeric);
            if let Some(letter) = letter {
                bytes[start + letter] = b'a' + u8::try_from(at(10)).unwrap();
            }
        }
    }
}

/// What is read of the log, which had the events before `EVENTS` and the title `a`: all of it, or an error that says how much of
/// the beginning is left.
async fn check(store: &impl Store, what: &str) -> bool {
    let wanted: Vec<Event> = events(0, EVENTS).iter().map(|event| Event::clone(event)).collect();
    let read = store.read(&id("a"), 0).await;
    if let Ok(read) = &read {
        assert!(*read == wanted, "{what}: other content without a word: {:?}", seqs(read));
    }
    if let Ok(meta) = store.meta(&id("a")).await {
        assert_eq!(meta, Meta { title: "a".into(), ..Meta::default() }, "{what}");
    }
    if let Ok(behind) = store.read(&id("a"), EVENTS / 2).await {
        assert_events(&behind, EVENTS / 2, EVENTS);
    }
    if let Ok(part) = store.read_range(&id("a"), 4..8).await {
        assert_events(&part, 4, 8);
    }
    if let Ok(RecoveredEvents { events, damage }) = store.read_intact(&id("a")).await {
        assert_eq!(damage.is_none(), read.is_ok(), "{what}: {damage:?}");
        let whole = match damage {
            Some(StoreError::Damaged { intact, .. }) => usize::try_from(intact).unwrap(),
            Some(error) => panic!("{what}: {error:?}"),
            None => events.len(),
        };
        assert!(events[..whole] == wanted[..whole], "{what}: the intact beginning is another one");
    }
    for listing in store.list(&ListQuery::default()).await.unwrap_or_default().logs {
        let summary = Summary::of(&wanted, listing.has_team);
        let is_whole = listing.summary == summary;
        assert!(is_whole || listing.is_damaged, "{what}: another summary is listed: {:?}", listing.summary);
    }
    read.is_ok()
}

/// A closed store with the log `a`, and all its files.
async fn sound(kind: Kind) -> (tempfile::TempDir, Vec<(String, Vec<u8>)>) {
    let dir = tempfile::tempdir().unwrap();
    let store = kind.open(dir.path()).unwrap();
    let claim = begin(&store, "a", 5).await;
    store.append(&claim, &events(5, EVENTS)).await.unwrap();
    store.release(claim).await.unwrap();
    drop(store);
    let files = contents(dir.path());
    (dir, files)
}

fn put(dir: &Path, files: &[(String, Vec<u8>)]) {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(dir.join(name), bytes).unwrap());
}

async fn mutated(kind: Kind, name: &str, times: u64) {
    let (dir, files) = sound(kind).await;
    let (seed, mut whole, mut refused) = (seed(), 0, 0);
    for nth in 0..times {
        let mut files = files.clone();
        let (_, bytes) = files.iter_mut().find(|(file, _)| file == name).unwrap();
        let before = bytes.clone();
        // Each follows from the seed and its number, so that it can be had again alone.
        let mut random = Random::new(seed.wrapping_add(nth << 20));
        (0..=random.below(2)).for_each(|_| mutate(bytes, &mut random));
        let is_same = *bytes == before;
        put(dir.path(), &files);
        let what = format!("{kind:?}, seed {seed}, mutation {nth}");
        let Ok(store) = kind.open(dir.path()) else {
            refused += 1;
            continue;
        };
        let is_whole = check(&store, &what).await;
        assert!(is_whole || !is_same, "{what}: what was not changed cannot be read");
        whole += u64::from(is_whole);
    }
    println!(
        "{kind:?}: of {times} changed logs, {whole} were read as they were and {refused} places were refused"
    );
    assert!(whole < times, "no change did anything");
}

#[tokio::test]
async fn a_changed_line_is_never_read_as_something_else() {
    mutated(Kind::Jsonl, "a.jsonl", mutations(10_000)).await;
}

#[tokio::test]
async fn a_changed_database_is_never_read_as_something_else() {
    mutated(Kind::Sqlite, "chats.db", mutations(2_000)).await;
}

/// Seed 1 of the changes above found it, with the lengths of another format.
#[tokio::test]
async fn an_event_with_the_number_of_a_lost_one_is_not_intact() {
    let (dir, _) = sound(Kind::Jsonl).await;
    let place = dir.path().join("a.jsonl");
    let text = fs::read_to_string(&place).unwrap();
    let changed = text.replacen("{\"seq\":10,", "{\"seq:10,", 1).replacen("{\"seq\":11,", "{\"seq\":10,", 1);
    fs::write(&place, changed).unwrap();
    let store = Kind::Jsonl.open(dir.path()).unwrap();
    let RecoveredEvents { events, damage } = store.read_intact(&id("a")).await.unwrap();
    let Some(StoreError::Damaged { intact, .. }) = damage else { panic!("{damage:?}") };
    assert_eq!(intact, 10);
    assert_events(&events[..10], 0, 10);
}

#[tokio::test]
async fn a_changed_word_of_an_event_is_reported_with_its_number() {
    for kind in BOTH {
        let (dir, _) = sound(kind).await;
        let place = dir.path();
        match kind {
            Kind::Jsonl => {
                let text = fs::read_to_string(place.join("a.jsonl")).unwrap();
                fs::write(place.join("a.jsonl"), text.replacen("\"7: ", "\"8: ", 1)).unwrap();
            }
            Kind::Sqlite => {
                let sql = "UPDATE events SET json = replace(json, '\"7: ', '\"8: ') WHERE seq = 7";
                Connection::open(place.join("chats.db")).unwrap().execute_batch(sql).unwrap();
            }
        }
        let store = kind.open(place).unwrap();
        let damage = store.read(&id("a"), 0).await.unwrap_err();
        let StoreError::Damaged { why, intact: 7, .. } = &damage else { panic!("{kind:?}: {damage:?}") };
        assert_eq!(why, "event 7 is not what was written");
        let intact = store.read_intact(&id("a")).await.unwrap();
        assert_eq!(seqs(&intact.events), [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11]);
        // It can be repaired up to the damage, and continued.
        assert_eq!(store.repair(&id("a")).await, Ok(7));
        assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, 7);
        let claim = store.claim(&id("a")).await.unwrap();
        store.append(&claim, &[event(7)]).await.unwrap();
        drop(store);
        assert_events(&kind.open(place).unwrap().read(&id("a"), 0).await.unwrap(), 0, 8);
        let kept = contents(place).into_iter().any(|(name, bytes)| {
            name.contains("damaged") && String::from_utf8_lossy(&bytes).contains("\"11: ")
        });
        assert!(kept, "{kind:?}: events after the damage are kept");
    }
}

#[tokio::test]
async fn events_that_are_gone_from_the_end_are_missed() {
    for kind in BOTH {
        let (dir, _) = sound(kind).await;
        match kind {
            Kind::Jsonl => {
                let path = dir.path().join("a.jsonl");
                let text = fs::read_to_string(&path).unwrap();
                let lines: Vec<&str> = text.lines().collect();
                fs::write(path, lines[..lines.len() - 2].join("\n") + "\n").unwrap();
            }
            Kind::Sqlite => {
                let sql = "DELETE FROM events WHERE seq > 9";
                Connection::open(dir.path().join("chats.db")).unwrap().execute_batch(sql).unwrap();
            }
        }
        let store = kind.open(dir.path()).unwrap();
        let damage = store.read(&id("a"), 0).await.unwrap_err();
        let StoreError::Damaged { why, intact: 10, .. } = &damage else { panic!("{kind:?}: {damage:?}") };
        assert_eq!(why, "it has 10 events, and 12 were acknowledged: the last are lost");
        // The database lists what the log's writer wrote down of it, which is still there.
        let listed = &list(&store).await[0];
        assert_eq!(listed.is_damaged, kind == Kind::Jsonl, "{kind:?}: {listed:?}");
        assert_eq!(store.repair(&id("a")).await, Ok(10));
        assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, 10);
    }
}

/// Appends `json` to the log, with the link that follows, as a later version would.
fn append_later(kind: Kind, place: &Path, json: &str) {
    match kind {
        Kind::Jsonl => {
            let path = place.join("a.jsonl");
            let text = fs::read_to_string(&path).unwrap();
            let link = unseal(&mut text.lines().last().unwrap().as_bytes().to_vec()).unwrap();
            fs::write(path, format!("{text}{}\n", seal(json, link.next(json.as_bytes())))).unwrap();
        }
        Kind::Sqlite => {
            let database = Connection::open(place.join("chats.db")).unwrap();
            let sql = "SELECT chain FROM events ORDER BY seq DESC LIMIT 1";
            let link: Vec<u8> = database.query_row(sql, [], |row| row.get(0)).unwrap();
            let next = Link::from_bytes(&link).unwrap().next(json.as_bytes());
            let sql = "INSERT INTO events(log, seq, json, chain) SELECT log, seq + 1, ?1, ?2 FROM events ORDER BY seq DESC LIMIT 1";
            database.execute(sql, (json, next.bytes())).unwrap();
            database.execute("UPDATE heads SET events = events + 1, chain = ?1", [next.bytes()]).unwrap();
        }
    }
}

#[tokio::test]
async fn an_event_that_only_a_later_version_knows_is_kept_and_refused() {
    let json = r#"{"seq":12,"time_ms":0,"type":"hologram_shown","of":"Ann"}"#;
    for kind in BOTH {
        let (dir, _) = sound(kind).await;
        append_later(kind, dir.path(), json);
        let store = kind.open(dir.path()).unwrap();
        let refused = store.read(&id("a"), 0).await.unwrap_err();
        let StoreError::UnknownEvent { seq: 12, kind: name, .. } = &refused else {
            panic!("{kind:?}: {refused:?}")
        };
        assert_eq!(name, "hologram_shown");
        assert!(refused.to_string().contains("only a later version of Polylogue knows"), "{refused}");
        assert!(refused.hint().unwrap().contains("update Polylogue"), "{refused:?}");
        let intact = store.read_intact(&id("a")).await.unwrap();
        assert_events(&intact.events, 0, EVENTS);
        assert_eq!(intact.damage, Some(refused.clone()));
        // A repair would drop it.
        assert_eq!(store.repair(&id("a")).await, Err(refused));
        drop(store);
        let all = contents(dir.path());
        assert!(
            all.iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("hologram_shown")),
            "{kind:?}"
        );
        assert!(!all.iter().any(|(name, _)| name.contains("damaged")), "{kind:?}: nothing was set aside");
    }
}

/// Puts a message with the key `later` into the inbox of the log, which has one, as a later version would.
fn post_later(kind: Kind, place: &Path, instruction: &str) {
    let json = format!(r#"{{"key":"later","posted_ms":1,"instruction":{instruction}}}"#);
    match kind {
        Kind::Jsonl => {
            let path = place.join("a.inbox");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, format!("{text}{json}\n")).unwrap();
        }
        Kind::Sqlite => {
            let database = Connection::open(place.join("chats.db")).unwrap();
            let sql = "INSERT INTO inbox(log, nr, key, json) SELECT log, nr + 1, 'later', ?1 FROM inbox";
            database.execute(sql, [json]).unwrap();
        }
    }
}

/// W43.
#[tokio::test]
async fn an_instruction_that_only_a_later_version_knows_is_kept_and_refused() {
    let message = |key: &str| {
        let (posted, instruction) = (Timestamp(1), Instruction::Pause);
        InboxMessage { key: key.into(), request: None, posted, instruction }
    };
    for kind in BOTH {
        let (dir, _) = sound(kind).await;
        let store = kind.open(dir.path()).unwrap();
        assert_eq!(store.post(&id("a"), &message("first")).await, Ok(1));
        drop(store);
        post_later(kind, dir.path(), r#"{"dim":{"by":3}}"#);
        let store = kind.open(dir.path()).unwrap();
        let refused = store.inbox(&id("a"), 0).await.unwrap_err();
        let StoreError::UnknownInstruction { number: 2, kind: name, .. } = &refused else {
            panic!("{kind:?}: {refused:?}")
        };
        assert_eq!(name, "dim");
        assert!(refused.to_string().contains("only a later version of Polylogue knows"), "{refused}");
        // It stays where it is, and others can be posted after it.
        assert_eq!(store.post(&id("a"), &message("later")).await, Ok(2), "{kind:?}: its key is known");
        assert_eq!(store.post(&id("a"), &message("last")).await, Ok(3), "{kind:?}");
        assert_eq!(store.inbox(&id("a"), 1).await, Err(refused));
        assert_eq!(store.inbox(&id("a"), 2).await, Ok(vec![(3, message("last"))]));
    }
}

#[tokio::test]
async fn an_event_of_an_unknown_type_with_another_link_is_damaged() {
    for kind in BOTH {
        let (dir, _) = sound(kind).await;
        append_later(kind, dir.path(), r#"{"seq":12,"time_ms":0,"type":"hologram_shown","of":"Ann"}"#);
        match kind {
            Kind::Jsonl => {
                let path = dir.path().join("a.jsonl");
                let text = fs::read_to_string(&path).unwrap();
                fs::write(path, text.replace("\"of\":\"Ann\"", "\"of\":\"Bob\"")).unwrap();
            }
            Kind::Sqlite => {
                let sql = "UPDATE events SET json = replace(json, 'Ann', 'Bob') WHERE seq = 12";
                Connection::open(dir.path().join("chats.db")).unwrap().execute_batch(sql).unwrap();
            }
        }
        let store = kind.open(dir.path()).unwrap();
        let damage = store.read(&id("a"), 0).await.unwrap_err();
        assert!(matches!(damage, StoreError::Damaged { intact: 12, .. }), "{kind:?}: {damage:?}");
    }
}

/// A database whose process died with three events of `a` in the database and the rest in the journal.
async fn killed() -> (tempfile::TempDir, Vec<(String, Vec<u8>)>) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("live");
    fs::create_dir(&place).unwrap();
    let store = Sqlite::open(place.join("chats.db")).unwrap();
    let claim = begin(&store, "a", 3).await;
    Connection::open(place.join("chats.db"))
        .unwrap()
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    for nth in 3..EVENTS {
        store.append(&claim, &[event(nth)]).await.unwrap();
    }
    // A copy of all files is what a kill leaves: locks are not copied.
    let mut files = contents(&place);
    files.retain(|(name, _)| !name.ends_with("-shm") && !name.ends_with(".writers"));
    let writers = contents(&place.join("chats.db.writers"));
    files.extend(writers.into_iter().map(|(name, bytes)| (format!("chats.db.writers/{name}"), bytes)));
    drop(store);
    (dir, files)
}

fn put_all(dir: &Path, files: &[(String, Vec<u8>)]) {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir.join("chats.db.writers")).unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(dir.join(name), bytes).unwrap());
}

#[tokio::test]
async fn acknowledged_events_that_a_damaged_journal_loses_are_missed() {
    let (dir, files) = killed().await;
    let place: PathBuf = dir.path().join("copy");
    put_all(&place, &files);
    check(&Sqlite::open(place.join("chats.db")).unwrap(), "a sound journal").await;
    let (seed, mut lost) = (seed(), 0);
    for nth in 0..mutations(300) {
        let mut files = files.clone();
        let (_, journal) = files.iter_mut().find(|(name, _)| name.ends_with("-wal")).unwrap();
        let mut random = Random::new(seed.wrapping_add(nth << 20));
        mutate(journal, &mut random);
        put_all(&place, &files);
        let what = format!("seed {seed}, mutation {nth}");
        let Ok(store) = Sqlite::open(place.join("chats.db")) else { continue };
        if check(&store, &what).await {
            continue;
        }
        lost += 1;
        // It stays known when other conversations continue in the database, and when that is closed.
        drop(begin(&store, "b", 2).await);
        drop(store);
        let store = Sqlite::open(place.join("chats.db")).unwrap();
        let read = store.read(&id("a"), 0).await;
        assert!(read.is_err(), "{what}: the loss is forgotten");
        if nth % 8 == 0 {
            let kept = store.repair(&id("a")).await.unwrap();
            assert_events(&store.read(&id("a"), 0).await.unwrap(), 0, kept);
        }
    }
    println!("{lost} journals had lost events");
    assert!(lost > 20, "{lost}");
}

#[tokio::test]
async fn a_log_exchanged_for_another_is_found() {
    let (dir, _) = sound(Kind::Jsonl).await;
    let other = tempfile::tempdir().unwrap();
    let store = Jsonl::open(other.path()).unwrap();
    let claim = store.create(&id("a"), &Meta { title: "other".into(), ..Meta::default() }).await.unwrap();
    store.append(&claim, &events(0, EVENTS)).await.unwrap();
    drop(store);
    fs::copy(other.path().join("a.jsonl"), dir.path().join("a.jsonl")).unwrap();
    let read = Jsonl::open(dir.path()).unwrap().read(&id("a"), 0).await;
    assert!(matches!(read, Err(StoreError::Damaged { .. })), "{read:?}");
}
